//! Offline learning: trains the heads that the engine carries, and measures them.
//!
//! It knows datasets, regression and metrics; it knows no request and no server. Invariant: the same data and the
//! same encoder give the same head, byte by byte.

mod card;
mod complexity;
mod corpus;
mod domain;
mod embeddings;
mod example;
mod fault;
mod metrics;
mod minimise;
mod regression;
mod report;
mod task;
mod train;

pub use embeddings::CachedEncoder;
pub use fault::LabFault;
pub use metrics::{Metrics, auroc};
pub use report::{EvaluatedSet, Report};
pub use task::Task;
pub use train::TrainHead;
