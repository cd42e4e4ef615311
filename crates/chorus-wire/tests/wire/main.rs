//! The wire's cases, one test binary; tests are named after the case that they pin.
#![cfg(test)]

mod chunks;
mod losslessness;
mod never_panics;
mod reply;
mod request;
mod sse;
mod stream;
mod tool_calls;
