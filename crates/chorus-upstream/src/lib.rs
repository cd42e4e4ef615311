//! Calls to models over HTTP: one file a dialect, one pooled client, faults as data.
//!
//! This crate knows sockets, time limits and what backends get wrong on the wire. It does not know routing, prices,
//! budgets, fallbacks or the status codes that our own doors answer with; it makes one attempt and says how it went.
//!
//! **Invariant:** an answer is `Ok` only if the backend said that it was whole: a stream that stops without `[DONE]`
//! or a finish reason is a [`UpstreamFault::Truncated`], never a short answer.

mod body;
pub mod client;
mod connect;
pub mod fault;
mod json;
pub mod openai;
mod reshape;
pub mod target;

pub use client::{ClientOptions, TlsFault, Upstream};
pub use fault::{Blame, Retry, Stage, UpstreamFault};
pub use openai::ChunkStream;
pub use target::{Secret, Target, TargetBuilder, TargetFault, Timeouts};
