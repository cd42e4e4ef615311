//! The rated ensemble over scripted models: each test pins one rule, named after its case where it has one.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod aggregate;
#[cfg(test)]
mod measured;
#[cfg(test)]
mod page;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod review;
#[cfg(test)]
mod stage;
#[cfg(test)]
#[expect(dead_code, reason = "shared by the tests of all loopers")]
#[path = "../support/mod.rs"]
mod support;
