//! Answers to earlier requests: under which keys they are kept, which of them fits a request of the same meaning, and
//! which one makes room for another.
//!
//! It knows requests and vectors, not encoders, clocks or callers: time is an argument, whose answer it is stands in the
//! key. **Invariant:** an answer is found only under a key that covers everything besides the last user message, word for
//! word; and where that message is worded otherwise, only past every guard.

mod answers;
pub mod guard;
mod key;
pub mod mirror;

pub use answers::{
    Answers, Bounds, CANDIDATES, Filter, Found, Labels, Listed, Looked, NewAnswer, Question, Refused, Tally,
    Worded,
};
pub use guard::{Difference, Least, Reading, WORDING, difference, least_alike, least_alike_by, shared};
pub use key::{Alike, Keys, Whose, keys};
pub use mirror::Mirror;
