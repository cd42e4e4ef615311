//! Fusion over scripted models: each test pins one rule, named after its case where it has one.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod judge;
#[cfg(test)]
mod panel;
#[cfg(test)]
mod stages;
#[cfg(test)]
#[expect(dead_code, reason = "shared by the tests of all loopers")]
#[path = "../support/mod.rs"]
mod support;
#[cfg(test)]
mod synthesis;
