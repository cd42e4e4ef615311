//! `cargo xtask ci`: the same for a person and for the machine.

use crate::{say, tidy};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Format, lints, tidy, licences (where `cargo-deny` is installed), tests.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    cargo(root, &["fmt", "--all", "--check"])?;
    tidy::run(root)?;
    cargo(root, &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"])?;
    if Command::new("cargo").args(["deny", "--version"]).output().is_ok_and(|out| out.status.success()) {
        cargo(root, &["deny", "--offline", "check", "bans", "licenses", "sources"])?;
    } else {
        say("note: cargo-deny is not installed; licences are not checked");
    }
    cargo(root, &["test", "--workspace", "--locked"])
}

fn cargo(root: &Path, words: &[&str]) -> anyhow::Result<()> {
    say(&format!("— cargo {}", words.join(" ")));
    let status =
        Command::new("cargo").args(words).current_dir(root).status().context("cargo does not start")?;
    ensure!(status.success(), "cargo {} failed", words.join(" "));
    Ok(())
}
