//! The poll over scripted models.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod steps;
#[cfg(test)]
#[path = "../support/mod.rs"]
#[expect(dead_code, reason = "shared by the loopers' tests")]
mod support;
