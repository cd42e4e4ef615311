//! `chorus new DIR`: a source directory that builds.
//!
//! It knows the files of the template and nothing of what they mean.

use super::disk;
use crate::terminal::say;
use anyhow::{Context, bail};
use std::path::Path;
use std::process::ExitCode;

/// The template's files by name; `FAMILY` stands for the name that was chosen.
const FILES: [(&str, &str); 5] = [
    ("mom.yaml", include_str!("template/mom.yaml")),
    ("policy.yaml", include_str!("template/policy.yaml")),
    ("prompts/direct.md", include_str!("template/direct.md")),
    ("suites/smoke.jsonl", include_str!("template/smoke.jsonl")),
    ("README.md", include_str!("template/README.md")),
];

/// Writes the template; an existing directory is left alone.
pub(super) fn run(dir: &Path, family: Option<&str>) -> anyhow::Result<ExitCode> {
    let name = dir.file_name().context("the directory needs a name")?.to_string_lossy();
    let family = family.unwrap_or(&name);
    if dir.exists() {
        bail!("{} is there already", dir.display());
    }
    for (name, text) in FILES {
        disk::put(&dir.join(name), text.replace("FAMILY", family).as_bytes())?;
    }
    let bundle = disk::build(dir)?;
    let dir = dir.display();
    say(&format!(
        "{dir} holds {} {}; `chorus build {dir}` makes its bundle",
        bundle.mom.family, bundle.mom.version
    ));
    Ok(ExitCode::SUCCESS)
}
