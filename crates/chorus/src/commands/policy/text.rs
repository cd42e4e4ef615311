//! A policy of the command line: a `.dsl` file with its base, or a v0.3 file by itself.
//!
//! It knows the file system, and nothing of what a policy says. **Invariant:** what is told about a text is shown with
//! the lines of that text.

use crate::terminal::note;
use anyhow::{Context, bail};
use chorus_spec::dsl::{self, TestCase};
use chorus_spec::{Diagnostic, Severity, Spec};
use std::path::{Path, PathBuf};

/// A file and its text.
pub(super) struct Text {
    pub(super) name: String,
    pub(super) text: String,
}

impl Text {
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Self { name, text })
    }
}

/// A policy that was read, with everything there is to say about it.
pub(super) struct Policy {
    pub(super) spec: Option<Spec>,
    pub(super) tests: Vec<TestCase>,
    /// Findings by the text that they are of.
    pub(super) findings: Vec<(Text, Vec<Diagnostic>)>,
}

impl Policy {
    /// Reads and checks, also as a whole.
    pub(super) fn read(file: &Path, base: Option<&Path>) -> anyhow::Result<Self> {
        let own = Text::read(file)?;
        if !is_policy(file) {
            if base.is_some() {
                bail!("--base is for a policy (`.dsl`); {} is a whole configuration", own.name);
            }
            let checked = chorus_spec::read(&own.text);
            let mut found = checked.diagnostics;
            found.extend(checked.spec.as_ref().map(chorus_spec::lint).unwrap_or_default());
            return Ok(Self { spec: checked.spec, tests: Vec::new(), findings: vec![(own, found)] });
        }
        let base = base.map(Text::read).transpose()?;
        let reading = dsl::read(&own.text, base.as_ref().map(|base| base.text.as_str()));
        let (lint, base_lint) = reading.lint();
        let mut findings = vec![(own, [reading.diagnostics, lint].concat())];
        if let Some(base) = base {
            findings.push((base, [reading.base_diagnostics, base_lint].concat()));
        }
        Ok(Self { spec: reading.spec, tests: reading.tests, findings })
    }

    /// The checked configuration; what stands against it goes to standard error.
    pub(super) fn spec(&self) -> anyhow::Result<&Spec> {
        if self.spec.is_none() {
            for (text, found) in &self.findings {
                for diagnostic in found.iter().filter(|it| it.severity == Severity::Error) {
                    note(&diagnostic.render(&text.name, &text.text));
                }
            }
        }
        self.spec.as_ref().with_context(|| format!("{} does not load: see above", self.name()))
    }

    pub(super) fn name(&self) -> &str {
        self.findings.first().map(|(text, _)| text.name.as_str()).unwrap_or_default()
    }
}

/// Whether the file is policy text.
pub(super) fn is_policy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dsl"))
}

/// Prints text, or writes it to a file.
pub(super) fn put(out: Option<&PathBuf>, text: &str) -> anyhow::Result<()> {
    match out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => {
            crate::terminal::stream(text);
            Ok(())
        }
    }
}

/// Shows findings on standard error.
pub(super) fn tell(text: &Text, found: &[Diagnostic]) {
    for diagnostic in found {
        note(&diagnostic.render(&text.name, &text.text));
    }
}
