//! Offline learning: trains the heads that the engine carries, and measures them.
//!
//! It knows datasets, regression and metrics; it knows no request and no server. Invariant: the same data and the
//! same encoder give the same head, byte by byte.

mod cache_eval;
mod cache_intents;
mod cache_pairs;
mod calibrate;
mod card;
mod complexity;
mod corpus;
mod domain;
mod embeddings;
mod example;
mod fact_check;
mod fault;
mod feedback;
pub mod floor;
mod halu;
mod injection;
mod injection_data;
mod injection_eval;
mod injection_fit;
mod metrics;
mod minimise;
mod modality;
mod nli;
mod pairs;
mod phrases;
mod pii;
mod regression;
mod replay;
mod report;
mod select;
mod task;
mod train;

pub use cache_eval::{CacheReport, CacheRow, EvalCache};
pub use cache_pairs::Relation;
pub use calibrate::{Calibrate, CalibrationReport};
pub use embeddings::CachedEncoder;
pub use fault::LabFault;
pub use floor::{CalibrateFloor, Floor};
pub use halu::{HaluReport, measure as measure_halu};
pub use injection::TrainInjection;
pub use injection_eval::{EvalInjection, InjectionReport};
pub use metrics::{Metrics, Reported, auroc};
pub use nli::{EvalNli, NliReport};
pub use pii::{EvalPii, NamesReport, PiiReport, TrainNames, TypeFigures};
pub use replay::{Interval, LearnedCascade, Replay, ReplayReport, StrategyRow};
pub use report::{EvaluatedSet, PhraseFigures, Report};
pub use select::{LeftOut, SelectorKind, SelectorReport, TrainSelector};
pub use task::Task;
pub use train::TrainHead;
