//! `cargo xtask bench`: the benchmarks behind docs/benchmarks.md, each with both sides in one run.

use anyhow::{Context, ensure};
use std::path::Path;
use std::process::Command;

/// Package and bench target of each benchmark.
const ALL: [(&str, &str); 12] = [
    ("chorus-policy", "decide"),
    ("chorus-signals", "heuristics"),
    ("chorus-signals", "pii"),
    ("chorus-signals", "recipe"),
    ("chorus-infer", "encoder"),
    ("chorus-infer", "generator"),
    ("chorus-engine", "bundle"),
    ("chorus-engine", "cache"),
    ("chorus-collab", "simulation"),
    ("chorus-server", "overhead"),
    ("chorus-server", "fusion"),
    ("chorus-server", "loopers"),
];

/// Runs those named, or all.
pub(crate) fn run(root: &Path, names: &[&str]) -> anyhow::Result<()> {
    for (package, bench) in ALL.iter().filter(|(_, bench)| names.is_empty() || names.contains(bench)) {
        let words = ["bench", "--package", package, "--bench", bench];
        let status =
            Command::new("cargo").args(words).current_dir(root).status().context("cargo does not start")?;
        ensure!(status.success(), "the benchmark {bench} failed");
    }
    Ok(())
}
