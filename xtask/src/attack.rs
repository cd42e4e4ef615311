//! `cargo xtask attack`: every attempt and every text with personal data through every door and every way to work.
//!
//! It knows where the test is, and nothing of what it sends. The encoder must be in the model store.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Runs it, and prints its tables.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let words = ["test", "--package", "chorus-server", "--test", "attack", "--", "--ignored", "--nocapture"];
    let status =
        Command::new("cargo").args(words).current_dir(root).status().context("cargo does not start")?;
    ensure!(status.success(), "a policy was bypassed, or the run did not come to its end");
    Ok(())
}
