//! `chorus policy test FILE`: the cases of its `TEST` blocks, asked of the engine. No model is called.

use crate::cli::Source;
use crate::policy_file::Policy;
use crate::stock;
use crate::terminal::say;
use anyhow::{Context, bail};
use chorus_engine::Engine;
use chorus_spec::Spec;
use chorus_spec::dsl::TestCase;
use chorus_wire::{ChatRequest, Message, Role};
use std::path::Path;
use std::process::ExitCode;

/// Status 0: every case reached its route.
pub(super) async fn run(file: &Path, source: &Source) -> anyhow::Result<ExitCode> {
    let policy = Policy::read(file, source.base.as_deref())?;
    let spec = policy.spec()?.clone();
    if policy.tests.is_empty() {
        bail!("{} has no TEST block", policy.name());
    }
    let names: Vec<String> =
        policy.tests.iter().map(|case| model_name(&spec, case)).collect::<Result<_, _>>()?;
    let engine = stock::engine_with(spec, Some(file), source, None).await?;
    let mut failed = 0_usize;
    for (case, name) in policy.tests.iter().zip(&names) {
        let reached = reached(&engine, name, case).await?;
        let good = reached.as_deref() == Some(case.route.as_str());
        failed += usize::from(!good);
        say(&line(policy.name(), case, reached.as_deref(), good));
    }
    let total = policy.tests.len();
    say(&format!("{} of {total} cases reached their route", total - failed));
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The model name by which a client would reach the case's recipe.
fn model_name(spec: &Spec, case: &TestCase) -> anyhow::Result<String> {
    let Some(recipe) = &case.recipe else {
        return spec.global.auto_names.first().cloned().context("the configuration has no automatic name");
    };
    let entrypoint = spec.entrypoints.iter().find(|it| it.recipe == *recipe);
    let name = entrypoint.and_then(|it| it.model_names.first()).cloned();
    name.with_context(|| format!("nothing leads to the recipe `{recipe}`: add an ENTRYPOINT to test it"))
}

async fn reached(engine: &Engine, name: &str, case: &TestCase) -> anyhow::Result<Option<String>> {
    let request = ChatRequest::new(name, vec![Message::new(Role::User, &case.query)]);
    let evaluation = engine.evaluate(request).await.map_err(|fault| anyhow::anyhow!(fault.public))?;
    Ok(evaluation.decision)
}

fn line(file: &str, case: &TestCase, reached: Option<&str>, good: bool) -> String {
    let TestCase { test, query, route, place, .. } = case;
    if good {
        return format!("✓ {test}: {query:?} → {route}");
    }
    let reached = reached.unwrap_or("no route");
    format!("✗ {test}: {query:?} → {reached}, not {route} ({file}:{}:{})", place.line, place.column)
}
