//! The rules of the house that a machine can check; each names the file and line that breaks it.

mod direction;
mod files;
mod functions;
mod modules;
mod papers;

use crate::say;
use anyhow::bail;
use std::path::Path;

/// Checks every rule; all problems at once.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let sources = files::sources(root)?;
    let mut problems = files::check(&sources);
    problems.extend(functions::check(&sources));
    problems.extend(modules::check(&sources));
    problems.extend(direction::check(root)?);
    problems.extend(papers::check(root, &sources)?);
    for problem in &problems {
        say(problem);
    }
    if !problems.is_empty() {
        bail!("tidy found {} problem(s)", problems.len());
    }
    say(&format!("tidy: {} files keep the rules of the house", sources.len()));
    Ok(())
}
