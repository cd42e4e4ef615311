//! The artifact: a Mixture-of-Models as one immutable, content-addressed bundle.
//!
//! A source directory ([`source`]) is read strictly and compiled ([`Bundle::build`]) to an OCI image layout whose
//! manifest's digest is its identity; [`verify`] reads one that somebody else may have written, [`archive`] makes one
//! file of it, [`diff`] says what changed. docs/mom-spec.md specifies the format. Bytes go in and come out: it knows no
//! file system, network, clock or environment.
//!
//! **Invariant:** the same source gives the same bytes, on any machine; nothing is handed out that was not checked whole.

pub mod archive;
pub mod attest;
pub mod binding;
mod bundle;
pub mod calibration;
pub mod canonical;
pub mod diff;
pub mod dsse;
mod fault;
pub mod graph;
pub mod import;
pub mod lock;
mod mom;
pub mod mount;
pub mod oci;
pub mod path;
pub mod place;
pub mod source;
pub mod trust;
pub mod verify;

pub use bundle::Bundle;
pub use fault::{BundleFault, FAULT_CODES};
pub use mom::{
    Bounds, Capabilities, Component, DataPolicy, Decimal, Defaults, FORMAT, Gate, Mom, OperatingPoint,
    Reasoning, Suite, Weights,
};
pub use path::Files;
