//! What backends do on the wire, case by case, over real sockets.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod answers;
mod bench;
mod connections;
mod streams;
mod ways;
