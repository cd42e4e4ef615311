//! `chorus check FILE`: every problem of a configuration at once.

use crate::cli::Check;
use crate::setup;
use crate::terminal::say;
use anyhow::Context;
use chorus_signals::{Equipment, Extractor, Folders, Problem};
use chorus_spec::{Diagnostic, Severity, Spec, Variable};
use serde_json::json;
use std::process::ExitCode;

/// Status 0: it loads; 1: it does not.
pub(crate) fn run(flags: &Check) -> anyhow::Result<ExitCode> {
    let file = flags.file.display().to_string();
    let text = std::fs::read_to_string(&flags.file).with_context(|| format!("cannot read {file}"))?;
    let checked = chorus_spec::read(&text);
    let mut diagnostics = checked.diagnostics;
    diagnostics.extend(checked.spec.iter().flat_map(chorus_spec::lint));
    let folders = setup::folders(Some(&flags.file), flags.knowledge.as_deref());
    diagnostics.extend(checked.spec.iter().flat_map(|spec| unprepared(spec, &folders)));
    diagnostics.sort_by_key(|diagnostic| diagnostic.place);
    let variables = checked.spec.as_ref().map(Spec::variables).unwrap_or_default();
    let count = |severity| diagnostics.iter().filter(|d| d.severity == severity).count();
    let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
    let good = errors == 0 && !(flags.strict && warnings > 0);
    if flags.json {
        let digest = checked.spec.as_ref().map(|spec| spec.digest.to_string());
        let report = json!({
            "file": file, "ok": good, "errors": errors, "warnings": warnings, "digest": digest,
            "diagnostics": diagnostics, "variables": variables, "unset": unset(&variables),
        });
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for diagnostic in &diagnostics {
            say(&diagnostic.render(&file, &text));
        }
        if !variables.is_empty() {
            say(&environment(&variables));
        }
        say(&summary(&file, good, errors, warnings));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Signals that read and cannot be prepared: a knowledge base without exemplars, a head that is not there. No encoder
/// is loaded for it.
fn unprepared(spec: &Spec, folders: &Folders) -> Vec<Diagnostic> {
    let mut found: Vec<Diagnostic> = Vec::new();
    for recipe in &spec.recipes {
        let equipment = Equipment { folders: folders.clone(), ..Equipment::default() };
        let fault = Extractor::prepare_with(recipe, &spec.global, equipment).err();
        let problems = fault.iter().flat_map(|fault| &fault.problems).map(Problem::diagnostic);
        // Recipes share knowledge bases.
        let new: Vec<Diagnostic> = problems.filter(|problem| !found.contains(problem)).collect();
        found.extend(new);
    }
    found
}

/// The variables that must be set and are not (an empty one counts as unset).
fn unset(variables: &[Variable]) -> Vec<&str> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    variables.iter().filter(|it| it.is_required && !is_set(&it.name)).map(|it| it.name.as_str()).collect()
}

/// What the file reads from the environment, and what of it is missing here.
fn environment(variables: &[Variable]) -> String {
    let names: Vec<&str> = variables.iter().map(|it| it.name.as_str()).collect();
    let missing = unset(variables);
    let missing =
        if missing.is_empty() { String::new() } else { format!("; not set here: {}", missing.join(", ")) };
    format!("reads from the environment: {}{missing}", names.join(", "))
}

fn summary(file: &str, good: bool, errors: usize, warnings: usize) -> String {
    let plural = |n: usize, word: &str| format!("{n} {word}{}", if n == 1 { "" } else { "s" });
    let verdict = if good { "loads" } else { "does not load" };
    format!("{file} {verdict}: {}, {}", plural(errors, "error"), plural(warnings, "warning"))
}
