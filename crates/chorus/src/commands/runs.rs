//! `chorus runs list|show`: the records of past requests.

use crate::cli::{Runs, Status};
use crate::stores;
use crate::terminal::{say, table, usd};
use crate::trace::calls;
use anyhow::{Context, bail};
use chorus_store::{Outcome, Page, RunFilter, RunId, RunRecord, RunStatus};
use std::process::ExitCode;

/// Lists or shows.
pub(crate) async fn run(command: Runs) -> anyhow::Result<ExitCode> {
    match command {
        Runs::List { limit, decision, status, json, at } => {
            let kept = stores::named(at.config.as_deref(), None)?;
            let store = stores::existing_records(&kept, at.runs_file).await?;
            let status = status.map(|s| match s {
                Status::Ok => RunStatus::Ok,
                Status::Failed => RunStatus::Failed,
                Status::Cancelled => RunStatus::Cancelled,
            });
            let filter = RunFilter { decision, status, ..RunFilter::default() };
            let runs = store.list(filter, Page { limit, before: None }).await?;
            if json {
                for run in &runs {
                    say(&serde_json::to_string(run)?);
                }
            } else {
                say(&listing(&runs));
            }
        }
        Runs::Show { id, json, at } => {
            let kept = stores::named(at.config.as_deref(), None)?;
            let store = stores::existing_records(&kept, at.runs_file.clone()).await?;
            let id = RunId::parse(&id)
                .with_context(|| format!("`{id}` is not a run id (run_ and 32 hex digits)"))?;
            let Some(run) = store.get(&id).await? else { bail!("there is no run {id}") };
            let outcomes = stores::outcomes(&kept, at.runs_file)?.of(&id).await?;
            if json {
                let mut run = serde_json::to_value(&run)?;
                if let Some(run) = run.as_object_mut().filter(|_| !outcomes.is_empty()) {
                    run.insert("outcomes".to_owned(), serde_json::to_value(&outcomes)?);
                }
                say(&serde_json::to_string_pretty(&run)?);
            } else {
                say(&show(&run));
                outcomes.iter().for_each(|it| say(&told(it)));
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn listing(runs: &[RunRecord]) -> String {
    let mut rows =
        vec![["id", "status", "model asked", "decision", "calls", "tokens", "cost", "ms"].map(str::to_owned)];
    rows.extend(runs.iter().map(|run| {
        [
            run.id.to_string(),
            status(run),
            run.requested_model.to_string(),
            run.decision.as_deref().unwrap_or("-").to_owned(),
            run.calls.len().to_string(),
            run.usage.total_tokens.to_string(),
            usd(run.cost_micro_usd),
            run.duration_ms.to_string(),
        ]
    }));
    table(&rows)
}

/// One verdict on a run, for people.
fn told(outcome: &Outcome) -> String {
    let word = |value: serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let (target, verdict) =
        (word(serde_json::json!(outcome.target)), word(serde_json::json!(outcome.verdict)));
    let of = outcome.target_ref.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
    let why = outcome.reason.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("outcome   {target}{of} {verdict}{why}")
}

/// One run, for people.
pub(crate) fn show(run: &RunRecord) -> String {
    let mut lines = vec![
        format!("run       {}", run.id),
        format!("status    {}", status(run)),
        format!("asked     {}{}", run.requested_model, if run.streaming { " (streamed)" } else { "" }),
        format!("decision  {}", run.decision.as_deref().unwrap_or("none")),
        format!("algorithm {}", run.algorithm.as_deref().unwrap_or("-")),
        format!("spec      {}", run.spec_digest),
        format!(
            "took      {} ms, {} tokens, {}",
            run.duration_ms,
            run.usage.total_tokens,
            usd(run.cost_micro_usd)
        ),
    ];
    for (word, digest) in [
        ("point", &run.operating_point),
        ("bundle", &run.bundle),
        ("binding", &run.binding),
        ("lock", &run.lock),
    ] {
        lines.extend(digest.as_ref().map(|digest| format!("{word:<9} {digest}")));
    }
    if !run.degraded.is_empty() {
        lines.push(format!("degraded  {}", run.degraded.join(", ")));
    }
    lines.push(String::new());
    lines.push(calls(run));
    lines.push(String::new());
    lines.extend(run.checks.iter().filter_map(|check| check.detail.clone()));
    lines.extend(run.proof.iter().map(|p| format!("{:<9} {}: {}", p.verdict, p.decision, p.because)));
    lines.extend(run.signals.iter().map(|s| {
        let confidence = s.confidence.map(|c| format!(" {c:.3}")).unwrap_or_default();
        let reason = s.reason.as_ref().map(|why| format!(" ({why})")).unwrap_or_default();
        format!("{:<9} {}{confidence}{reason}", format!("{:?}", s.state).to_lowercase(), s.key)
    }));
    lines.join("\n")
}

fn status(run: &RunRecord) -> String {
    match &run.error_code {
        Some(code) => format!("failed: {code}"),
        None => run.status.as_str().to_owned(),
    }
}
