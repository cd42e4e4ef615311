//! `ReMoM` over scripted models: each test pins one rule, named after its case where it has one.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod failures;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod rounds;
#[cfg(test)]
mod stage;
#[cfg(test)]
#[expect(dead_code, reason = "the stage of all loopers; each uses its part")]
#[path = "../support/mod.rs"]
mod support;
