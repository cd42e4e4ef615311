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
pub(crate) struct Text {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl Text {
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {name}"))?;
        Ok(Self { name, text })
    }
}

/// A policy that was read, with everything there is to say about it.
pub(crate) struct Policy {
    pub(crate) spec: Option<Spec>,
    /// The v0.3 text that was read: as written, or what the policy compiles to.
    pub(crate) yaml: String,
    pub(crate) tests: Vec<TestCase>,
    /// What there is to say, by text.
    pub(crate) findings: Vec<Findings>,
}

/// What there is to say about one text.
pub(crate) struct Findings {
    pub(crate) text: Text,
    /// Of its parts: what the reader says.
    read: Vec<Diagnostic>,
    /// Of the policy as a whole.
    lint: Vec<Diagnostic>,
}

impl Findings {
    /// All of it.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Diagnostic> {
        self.read.iter().chain(&self.lint)
    }

    /// All of it, by place.
    pub(crate) fn sorted(&self) -> Vec<&Diagnostic> {
        let mut all: Vec<&Diagnostic> = self.all().collect();
        all.sort_by_key(|it| it.place);
        all
    }
}

impl Policy {
    /// Reads and checks, also as a whole.
    pub(crate) fn read(file: &Path, base: Option<&Path>) -> anyhow::Result<Self> {
        let own = Text::read(file)?;
        if !is_policy(file) {
            if base.is_some() {
                bail!("--base is for a policy (`.dsl`); {} is a whole configuration", own.name);
            }
            let checked = chorus_spec::read(&own.text);
            let lint = checked.spec.as_ref().map(chorus_spec::lint).unwrap_or_default();
            let yaml = own.text.clone();
            let findings = vec![Findings { text: own, read: checked.diagnostics, lint }];
            return Ok(Self { spec: checked.spec, yaml, tests: Vec::new(), findings });
        }
        let base = base.map(Text::read).transpose()?;
        let reading = dsl::read(&own.text, base.as_ref().map(|base| base.text.as_str()));
        let (lint, base_lint) = reading.lint();
        let mut findings = vec![Findings { text: own, read: reading.diagnostics, lint }];
        if let Some(text) = base {
            findings.push(Findings { text, read: reading.base_diagnostics, lint: base_lint });
        }
        let yaml = reading.document.to_yaml();
        Ok(Self { spec: reading.spec, yaml, tests: reading.tests, findings })
    }

    /// The same, with what was found out about it elsewhere.
    pub(crate) fn with(mut self, found: Vec<Diagnostic>) -> Self {
        let (own, base) = dsl::by_text(found);
        for (of, more) in self.findings.iter_mut().zip([own, base]) {
            of.lint.extend(more);
        }
        self
    }

    /// The checked configuration; errors go to standard error, and what the reader warns of where there are none.
    ///
    /// # Errors
    /// It does not load.
    pub(crate) fn spec(&self) -> anyhow::Result<&Spec> {
        let errors = self.count(Severity::Error);
        for Findings { text, read, .. } in &self.findings {
            let shown = read.iter().filter(|it| errors == 0 || it.severity == Severity::Error);
            shown.for_each(|it| note(&it.render(&text.name, &text.text)));
        }
        let why = || format!("{} does not load: {errors} error(s), see above", self.name());
        self.spec.as_ref().with_context(why)
    }

    /// How many findings of that severity there are.
    pub(crate) fn count(&self, severity: Severity) -> usize {
        self.findings.iter().flat_map(Findings::all).filter(|it| it.severity == severity).count()
    }

    pub(crate) fn name(&self) -> &str {
        self.findings.first().map(|it| it.text.name.as_str()).unwrap_or_default()
    }
}

/// Whether the file is policy text.
pub(crate) fn is_policy(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("dsl"))
}

/// Prints text, or writes it to a file.
pub(crate) fn put(out: Option<&PathBuf>, text: &str) -> anyhow::Result<()> {
    match out {
        Some(path) => std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display())),
        None => {
            crate::terminal::stream(text);
            Ok(())
        }
    }
}

/// Shows findings on standard error.
pub(crate) fn tell(text: &Text, found: &[Diagnostic]) {
    for diagnostic in found {
        note(&diagnostic.render(&text.name, &text.text));
    }
}
