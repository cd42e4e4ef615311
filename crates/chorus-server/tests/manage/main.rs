//! The management plane over real sockets: what it says, what it changes, and that a change loses no request.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod adviser;
mod classify;
mod config;
mod house;
mod parts;
mod purpose;
mod rollout;
mod swaps;
mod watch;
