//! `cargo xtask docs`: the pages that are generated from the code, one function a set of pages.
//!
//! Knows which crate writes which pages; the texts are theirs, and a test of theirs holds the pages up to date.

use crate::{bounds, say};
use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Writes every set of pages.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    // First what needs no build.
    bounds::write(root)?;
    signals(root)?;
    projections(root)?;
    diagnostics(root)?;
    selectors(root)?;
    plugins(root)?;
    loopers(root)
}

/// `docs/signals.md` and a page a signal below `docs/signals`.
fn signals(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-signals", "manual")?;
    say("docs/signals.md and docs/signals are written");
    Ok(())
}

/// `docs/projections.md` and a page a kind below `docs/projections`.
fn projections(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-policy", "projections")?;
    say("docs/projections.md and docs/projections are written");
    Ok(())
}

/// `docs/diagnostics.md` and a page a code below `docs/diagnostics`.
fn diagnostics(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-spec", "diagnostics")?;
    say("docs/diagnostics.md and docs/diagnostics are written");
    Ok(())
}

/// A page a selector below `docs/selectors`.
fn selectors(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-select", "selectors")?;
    say("docs/selectors is written");
    Ok(())
}

/// `docs/plugins/README.md` and a page a plugin below `docs/plugins`.
fn plugins(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-engine", "plugins")?;
    say("docs/plugins is written");
    Ok(())
}

/// The tables of parameters in the pages below `docs/loopers`.
fn loopers(root: &Path) -> anyhow::Result<()> {
    example(root, "chorus-spec", "loopers")?;
    say("the tables of docs/loopers are written");
    Ok(())
}

/// Runs an example that writes pages into the folder `docs`.
fn example(root: &Path, package: &str, name: &str) -> anyhow::Result<()> {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--quiet", "--package", package, "--example", name, "--", "docs"]).current_dir(root);
    let status = cargo.status().context("cargo does not start")?;
    ensure!(status.success(), "the example {name} of {package} failed");
    Ok(())
}
