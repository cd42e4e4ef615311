//! What keeps one bad backend from taking the answer with it, as small machines of their own.
//!
//! Time and randomness are arguments: nothing here reads a clock, sleeps or calls. Who composes them is the engine.
//!
//! **Invariant:** the same calls with the same times and random numbers give the same decisions.

pub mod balance;
pub mod breaker;
pub mod latency;
pub mod pace;
pub mod retry;

pub use balance::{Balance, Place};
pub use breaker::{Breaker, BreakerSettings, BreakerState};
pub use latency::Latencies;
pub use pace::{Pace, PaceFault};
pub use retry::{RetryBudget, RetryOn, Wait};
