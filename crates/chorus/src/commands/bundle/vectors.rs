//! Canonical JSON against vectors of others (RFC 8785): every file of `input` must become the one of `output`.

use crate::terminal::say;
use anyhow::{Context, bail};
use chorus_bundle::canonical;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

/// Prints a line a vector; status 1 when one differs.
pub(super) fn run(folder: &Path) -> anyhow::Result<ExitCode> {
    let Ok(entries) = fs::read_dir(folder.join("input")) else {
        bail!(
            "no vectors: {} has no folder `input` (the data is not part of this repository)",
            folder.display()
        );
    };
    let mut names: Vec<_> = entries.flatten().map(|it| it.file_name()).collect();
    names.sort();
    let mut same = 0;
    for name in &names {
        let input = fs::read(folder.join("input").join(name))?;
        let wanted = fs::read(folder.join("output").join(name)).context("a vector has no output")?;
        let is_same = canonical::canonical(&input).is_ok_and(|form| form == wanted.trim_ascii_end());
        same += usize::from(is_same);
        say(&format!("{} {}", if is_same { "✓" } else { "✗" }, name.display()));
    }
    say(&format!("{same} of {} vectors have the canonical form that they should", names.len()));
    Ok(if same == names.len() && same > 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
