//! Both planes over real sockets: a client in front, a scripted backend behind. Each test pins one case.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod bad_backend;
mod bad_request;
mod body;
mod budgets;
mod fusion;
mod leaving;
mod loopers;
mod lossless;
mod panics;
mod progress;
mod stopping;
mod streams;
mod support;
mod together;
mod trace;
