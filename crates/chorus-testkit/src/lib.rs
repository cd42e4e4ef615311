//! A backend that does what its script says, at the level of the socket: bytes, pauses, resets, statuses.
//!
//! It serves tests (and anyone who wants to see Chorus work without a model). It speaks HTTP/1.1 by hand, because a
//! proper server would refuse to do the wrong things that backends do: half a code point, a chunk that never ends, a
//! connection that dies between two letters. Beside it stands a real Redis server, for tests that want one. It knows no other crate
//! of ours.
//!
//! Sockets are real, therefore so is time: use short limits, or a [`Gate`] where the order of events matters. Under
//! tokio's paused clock a wait for a socket counts as idle and time jumps.
//!
//! **Invariant:** what a script says is on the wire in that order, byte for byte; what arrives is recorded unchanged.

mod board;
mod connection;
mod inbound;
pub mod openai;
pub mod received;
pub mod redis;
pub mod script;
pub mod upstream;

pub use board::IdleRule;
pub use openai::ChatAnswer;
pub use received::{Outcome, Received};
pub use redis::RedisServer;
pub use script::{Gate, Script, Step};
pub use upstream::ScriptedUpstream;
