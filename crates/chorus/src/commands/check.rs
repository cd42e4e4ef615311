//! `chorus check FILE`: every problem of a configuration at once.

use crate::cli::Check;
use crate::policy_file::{Findings, Policy};
use crate::setup;
use crate::terminal::say;
use chorus_signals::{Equipment, Extractor, Folders, Problem};
use chorus_spec::{Diagnostic, Severity, Spec, Variable};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Status 0: it loads; 1: it does not.
pub(crate) fn run(flags: &Check) -> anyhow::Result<ExitCode> {
    let policy = Policy::read(&flags.file, flags.base.as_deref())?;
    let folders = setup::folders(Some(&flags.file), flags.base.as_deref(), flags.knowledge.as_deref());
    let unready = policy.spec.iter().flat_map(|spec| unprepared(spec, &folders)).collect();
    let policy = policy.with(unready);
    let variables = policy.spec.as_ref().map(Spec::variables).unwrap_or_default();
    let (errors, warnings) = (policy.count(Severity::Error), policy.count(Severity::Warning));
    let good = errors == 0 && !(flags.strict && warnings > 0);
    if flags.json {
        let digest = policy.spec.as_ref().map(|spec| spec.digest.to_string());
        let files: Vec<Value> = policy
            .findings
            .iter()
            .map(|of| json!({ "file": of.text.name, "diagnostics": of.sorted() }))
            .collect();
        let diagnostics = policy.findings.first().map(Findings::sorted);
        let report = json!({
            "file": policy.name(), "ok": good, "errors": errors, "warnings": warnings, "digest": digest,
            "diagnostics": diagnostics, "files": files, "variables": variables, "unset": unset(&variables),
        });
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for of in &policy.findings {
            of.sorted().iter().for_each(|it| say(&it.render(&of.text.name, &of.text.text)));
        }
        if !variables.is_empty() {
            say(&environment(&variables));
        }
        say(&summary(policy.name(), good, errors, warnings));
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
