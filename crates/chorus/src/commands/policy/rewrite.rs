//! `chorus policy compile | decompile | fmt`: one text becomes another.

use crate::policy_file::{Text, put, tell};
use crate::terminal::{note, say};
use anyhow::{Context, bail};
use chorus_spec::dsl;
use chorus_spec::{Document, Severity};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// A policy as YAML; over its base, as a whole configuration.
pub(super) fn compile(file: &Path, base: Option<&Path>, out: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let own = Text::read(file)?;
    let base = base.map(Text::read).transpose()?;
    let reading = dsl::read(&own.text, base.as_ref().map(|base| base.text.as_str()));
    if reading.has_errors() {
        let errors = |all: Vec<chorus_spec::Diagnostic>| {
            all.into_iter().filter(|it| it.severity == Severity::Error).collect::<Vec<_>>()
        };
        tell(&own, &errors(reading.diagnostics));
        if let Some(base) = &base {
            tell(base, &errors(reading.base_diagnostics));
        }
        bail!("{} does not compile: see above", own.name);
    }
    // Without a base the document under check has stand-ins for providers, which nobody wrote.
    let document = match base {
        Some(_) => reading.document,
        None => dsl::compile(&own.text).ok().context("a policy without errors compiles")?,
    };
    put(out, &document.to_yaml())?;
    Ok(ExitCode::SUCCESS)
}

/// A configuration's routing part as a policy.
pub(super) fn decompile(file: &Path, out: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let own = Text::read(file)?;
    let document = match Document::parse(&own.text) {
        Ok(document) => document,
        Err(faults) => {
            tell(&own, &faults);
            bail!("{} is not a configuration: see above", own.name);
        }
    };
    let policy = dsl::decompile(&document);
    for key in &policy.left_out {
        note(&format!("left out: {key}, which no block can hold"));
    }
    put(out, &policy.text)?;
    Ok(if policy.left_out.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Policies in the one way in which they are written: rewritten in place, or only compared.
pub(super) fn fmt(files: &[PathBuf], check: bool) -> anyhow::Result<ExitCode> {
    let mut good = true;
    for path in files {
        let own = Text::read(path)?;
        match dsl::format(&own.text) {
            Err(faults) => {
                tell(&own, &faults);
                good = false;
            }
            Ok(printed) if printed == own.text => {}
            Ok(_) if check => {
                say(&format!("{} is written otherwise; `chorus policy fmt` rewrites it", own.name));
                good = false;
            }
            Ok(printed) => {
                std::fs::write(path, printed).with_context(|| format!("cannot write {}", own.name))?;
                note(&format!("rewrote {}", own.name));
            }
        }
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
