//! `chorus policy …`: the policy language on the command line.
//!
//! One function a verb; the language itself is `chorus_spec::dsl`. It knows files and how to print. **Invariant:** a verb
//! that found something wrong says where, and ends with status 1.

mod graph;
mod rewrite;
mod test;
mod verify;

use crate::cli::{Policy as Verb, PolicyCheck};
use crate::policy_file::{Policy, put};
use crate::terminal::say;
use anyhow::Context;
use chorus_spec::Severity;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;

/// Runs the verb that was asked for.
pub(crate) async fn run(verb: Verb) -> anyhow::Result<ExitCode> {
    match verb {
        Verb::Compile { file, base, out } => rewrite::compile(&file, base.as_deref(), out.as_ref()),
        Verb::Decompile { file, out } => rewrite::decompile(&file, out.as_ref()),
        Verb::Fmt { files, check } => rewrite::fmt(&files, check),
        Verb::Check(flags) => check(&flags),
        Verb::Test { file, source } => test::run(&file, &source).await,
        Verb::Graph { file, base, recipe, out } => {
            draw(&Policy::read(&file, base.as_deref())?, recipe.as_deref(), out.as_ref())
        }
        Verb::Verify { folder } => verify::run(&folder),
    }
}

/// Status 0: it loads; 1: it does not.
fn check(flags: &PolicyCheck) -> anyhow::Result<ExitCode> {
    let policy = Policy::read(&flags.file, flags.base.as_deref())?;
    let (errors, warnings) = (policy.count(Severity::Error), policy.count(Severity::Warning));
    let good = errors == 0 && !(flags.strict && warnings > 0);
    if flags.json {
        let files = policy
            .findings
            .iter()
            .map(|it| json!({ "file": it.text.name, "diagnostics": it.all().collect::<Vec<_>>() }));
        let digest = policy.spec.as_ref().map(|spec| spec.digest.to_string());
        let report = json!({
            "ok": good, "errors": errors, "warnings": warnings, "digest": digest,
            "tests": policy.tests.len(), "files": files.collect::<Vec<_>>(),
        });
        say(&serde_json::to_string_pretty(&report)?);
    } else {
        for of in &policy.findings {
            of.all().for_each(|it| say(&it.render(&of.text.name, &of.text.text)));
        }
        let verdict = if good { "loads" } else { "does not load" };
        say(&format!("{} {verdict}: {errors} error(s), {warnings} warning(s)", policy.name()));
    }
    Ok(if good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn draw(policy: &Policy, recipe: Option<&str>, out: Option<&PathBuf>) -> anyhow::Result<ExitCode> {
    let spec = policy.spec()?;
    let name = recipe.unwrap_or("default");
    let known = || spec.recipes.iter().map(|it| it.name.as_str()).collect::<Vec<_>>().join(", ");
    let recipe =
        spec.recipe(name).with_context(|| format!("there is no recipe `{name}`; there is {}", known()))?;
    put(out, &graph::draw(recipe))?;
    Ok(ExitCode::SUCCESS)
}
