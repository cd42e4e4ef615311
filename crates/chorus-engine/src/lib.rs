//! One resolved Mixture-of-Models: resolve → extract → decide → constrain → execute → record.
//!
//! The engine composes the rooms below it and gives the doors two things: [`Engine::run`] for a live request and
//! [`Engine::evaluate`] for what would happen. It knows no HTTP; doors own status codes, the binary owns the
//! environment.
//!
//! **Invariant:** the hot path never rewrites policy: a [`Mom`] is immutable once built, and swapped whole.

mod account;
pub mod backends;
pub mod budget;
pub mod calls;
pub mod classify;
pub mod constrain;
mod engine;
pub mod env;
pub mod evaluate;
pub mod fault;
pub mod identity;
pub mod ledger;
pub mod life;
mod limits;
pub mod local;
pub mod loopers;
mod mom;
mod options;
mod overlay;
pub mod plan;
pub mod plugins;
mod reasoning;
mod record;
pub mod reload;
pub mod route;
pub mod run;
pub mod served;
mod swap;
mod tailor;
mod vocabulary;

pub use budget::Limits;
pub use chorus_signals::Folders;
pub use chorus_signals::{Caller, Voucher};
pub use engine::Engine;
pub use env::Env;
pub use evaluate::{Evaluation, SelectionStatus};
pub use fault::{Blame, Code, Fault, Retry};
pub use local::LocalModels;
pub use mom::Mom;
pub use options::{Options, StartFault};
pub use reload::{Configuration, Supply};
pub use run::{AnswerHead, Inbound, Part, Path, Progress, RouteHead, Run};
