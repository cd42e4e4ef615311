//! What selection keeps: the selectors of a configuration, statistics of live calls, conversations, and the words in which
//! a choice is told.
//!
//! It knows no request's life; that is `choosing`. **Invariant:** only live requests change what is kept (case D24).

mod board;
mod conversations;
mod experience;
mod fault;
mod prepare;
mod sessions;
mod sight;
mod trace;

pub(crate) use experience::Experience;
pub use fault::SelectorFault;
pub(crate) use prepare::{Ready, Selection, Shared};
pub use sessions::SessionWords;
pub(crate) use sessions::{goes_on, in_tool_loop, key};
pub(crate) use sight::SessionSight;
pub use sight::Sight;
pub use trace::Trace;
