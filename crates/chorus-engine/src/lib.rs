//! One resolved Mixture-of-Models: resolve → extract → decide → constrain → execute → record.
//!
//! The engine composes the rooms below it and gives the doors two things: [`Engine::run`] for a live request and
//! [`Engine::evaluate`] for what would happen. It knows no HTTP; doors own status codes, the binary owns the
//! environment.
//!
//! **Invariant:** the hot path never rewrites policy: a [`Mom`] is immutable once built, and swapped whole.

mod account;
pub mod adviser;
pub mod answer_cache;
pub mod artifact;
pub mod backends;
pub mod budget;
pub mod calls;
mod choosing;
pub mod classify;
pub mod constrain;
mod course;
mod deliver;
mod dispatch;
mod engine;
pub mod entail;
pub mod env;
pub mod evaluate;
mod execute;
pub mod fault;
mod form;
mod forward;
pub mod ground;
mod guard;
pub mod identity;
pub mod ingest;
pub mod ledger;
pub mod life;
mod limits;
pub mod local;
pub mod loopers;
pub mod meters;
mod mom;
mod options;
mod outcomes;
mod overlay;
mod parts;
mod placed;
pub mod plan;
pub mod plugins;
mod private_folder;
mod publish;
pub mod qdrant_link;
mod quota;
mod reasoning;
mod record;
pub mod reload;
pub mod rollout;
pub mod route;
pub mod run;
pub mod scorers;
mod selection;
pub mod served;
pub mod shelf;
mod states;
mod swap;
mod tailor;
pub mod tally;
pub mod tape;
mod toolbox;
pub mod trace_context;
mod turns;
mod verdicts;
mod vocabulary;
mod watch;

pub use artifact::{Artifact, Point};
pub use budget::Limits;
pub use chorus_signals::Folders;
pub use chorus_signals::{Caller, Voucher};
pub use dispatch::Dispatched;
pub use engine::{Engine, VectorsAnswer, VectorsAsk};
pub use env::Env;
pub use evaluate::{Evaluation, SelectionStatus};
pub use fault::{Blame, Code, Fault, Retry};
pub use forward::{Forward, Passed};
pub use local::LocalModels;
pub use meters::Meters;
pub use mom::Mom;
pub use options::{Options, StartFault};
pub use placed::placed;
pub use plugins::response_cache::{CacheTrial, try_cache};
pub use reload::{Configuration, Supply};
pub use run::{AnswerHead, Controls, Inbound, Part, Path, Progress, RouteHead, Run};
pub use selection::{SelectorFault, SessionWords, Sight, Trace};
pub use shelf::Shelf;
pub use states::StatesFault;
pub use tape::{Tape, Tapes};
pub use trace_context::{TraceParent, Tracing};
pub use verdicts::HEAR_EVERY;
