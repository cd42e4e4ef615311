//! One resolved Mixture-of-Models: resolve → extract → decide → constrain → execute → record.
//!
//! The engine composes the rooms below it and gives the doors two things: [`Engine::run`] for a live request and
//! [`Engine::evaluate`] for what would happen. It knows no HTTP; doors own status codes, the binary owns the
//! environment.
//!
//! **Invariant:** the hot path never rewrites policy: an [`Engine`] is immutable once built (DESIGN.md §5.10).

pub mod backends;
pub mod budget;
pub mod calls;
pub mod constrain;
mod engine;
pub mod env;
pub mod evaluate;
pub mod fault;
mod fuse;
pub mod identity;
pub mod ledger;
pub mod life;
pub mod local;
mod mom;
mod overlay;
pub mod plan;
pub mod plugins;
mod reasoning;
mod record;
pub mod route;
pub mod run;
pub mod served;

pub use budget::Limits;
pub use engine::{Engine, Options, StartFault};
pub use env::Env;
pub use evaluate::{Evaluation, SelectionStatus};
pub use fault::{Blame, Code, Fault, Retry};
pub use local::LocalModels;
pub use mom::Mom;
pub use run::{AnswerHead, Inbound, Part, Path, Progress, RouteHead, Run};
