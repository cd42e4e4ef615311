//! Both planes over real sockets: a client in front, a scripted backend behind. Each test pins one case.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test that cannot go on should say where"
)]

mod answer_checks;
mod bad_backend;
mod bad_request;
mod body;
mod budgets;
mod cache;
mod callers;
mod eligible;
mod embeddings;
mod envoy;
mod every_door;
mod features;
mod forms;
mod fusion;
mod image_gen;
mod leaving;
mod loop_streams;
mod loopers;
mod lossless;
mod messages;
mod momentum;
mod outcomes;
mod panics;
mod points;
mod progress;
mod responses;
mod selectors;
mod sessions;
mod shared_cache;
mod stopping;
mod streams;
mod sums;
mod support;
mod threads;
mod together;
mod tokens;
mod trace;
mod turns;
mod upstreams;
mod ways;
