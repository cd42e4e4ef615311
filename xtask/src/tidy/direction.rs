//! Crates: each uses only rows below its own, sideways only where an arrow is drawn (ARCHITECTURE.md).

use anyhow::Context;
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// The rooms, row by row from the front.
const ROWS: &[&[&str]] = &[
    &["chorus"],
    &["chorus-server", "chorus-lab"],
    &["chorus-engine"],
    &["chorus-signals", "chorus-infer", "chorus-upstream", "chorus-store", "chorus-registry"],
    &["chorus-policy", "chorus-select", "chorus-cache", "chorus-collab", "chorus-recall", "chorus-bundle"],
    &["chorus-spec", "chorus-wire", "chorus-vectors"],
];

/// Arrows within a row.
const SIDEWAYS: &[(&str, &str)] = &[("chorus-signals", "chorus-infer")];

/// Rooms that only tests and chores may use.
const DEV: &[&str] = &["chorus-testkit", "xtask"];

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    kind: Option<String>,
}

/// Dependencies that point the wrong way.
pub(crate) fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let metadata = Command::new("cargo")
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .current_dir(root)
        .output()
        .context("cargo metadata does not start")?;
    let metadata: Metadata =
        serde_json::from_slice(&metadata.stdout).context("cargo metadata is not readable")?;
    let mut problems = Vec::new();
    for package in metadata.packages.iter().filter(|p| !DEV.contains(&p.name.as_str())) {
        let Some(from) = row(&package.name) else {
            problems.push(format!(
                "{}: the crate has no row; draw it in ARCHITECTURE.md and in xtask",
                package.name
            ));
            continue;
        };
        let ours =
            package.dependencies.iter().filter(|d| row(&d.name).is_some() || DEV.contains(&d.name.as_str()));
        for dependency in ours.filter(|d| d.kind.as_deref() != Some("dev")) {
            let below = row(&dependency.name).is_some_and(|to| to > from);
            let arrow = SIDEWAYS.contains(&(package.name.as_str(), dependency.name.as_str()));
            if !below && !arrow {
                problems.push(format!("{} uses {}, which is not below it", package.name, dependency.name));
            }
        }
    }
    Ok(problems)
}

fn row(name: &str) -> Option<usize> {
    ROWS.iter().position(|row| row.contains(&name))
}
