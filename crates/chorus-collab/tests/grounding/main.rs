//! Fusion with grounding: what is scored, told and dropped.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod policies;
#[cfg(test)]
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared by the loopers' tests")]
mod support;
