//! `/v1/router_replay…`: run records in the contract's words.
//!
//! It knows records, not how they came about. A list shows no word of a conversation; one record shows what its route
//! asked to keep. Source: contract §4.2, §4.3.

use super::endpoint::{Endpoint, Route};
use super::words::{self, Answered};
use crate::door::Door;
use crate::reply;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use chorus_engine::{Code, Fault};
use chorus_store::{
    Excerpt, Page, RunFilter, RunId, RunRecord, RunStatus, RunStore, SignalState, StoreFault,
};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Runs that a list shows unless it is asked for more or less.
const PAGE: usize = 50;

/// Most runs that are looked at for one answer (`replay_rows`).
const REPLAY_ROWS: usize = 1_000;

/// Runs as they were.
pub(super) fn routes() -> Vec<Route> {
    let read = |path, does| Endpoint::new("GET", path, "replay.read", does);
    let list = "runs, latest first; `limit`, `before`, `decision`, `model`, `status` as query";
    let trajectory = "the runs of one conversation, oldest first: `session`, as a run's `session_id`";
    let one = "one run, with the bodies that its route keeps";
    vec![
        Route::new(read("/v1/router_replay", list), get(self::list)),
        Route::new(
            read("/v1/router_replay/aggregate", "counts and sums over the latest runs; the list's query"),
            get(aggregate),
        ),
        Route::new(read("/v1/router_replay/trajectory", trajectory), get(self::trajectory)),
        Route::new(Endpoint::new("GET", "/v1/router_replay/{id}", "replay.detail", one), get(detail)),
    ]
}

/// Which runs.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    limit: Option<usize>,
    before: Option<String>,
    decision: Option<String>,
    model: Option<String>,
    status: Option<String>,
}

impl Wanted {
    fn filter(&self) -> Result<RunFilter, Fault> {
        let status = match self.status.as_deref() {
            None => None,
            Some("completed") => Some(RunStatus::Ok),
            Some("failed") => Some(RunStatus::Failed),
            Some("aborted") => Some(RunStatus::Cancelled),
            Some(_) => {
                return Err(words::invalid("`status` is `completed`, `failed` or `aborted`").at("status"));
            }
        };
        Ok(RunFilter {
            decision: self.decision.clone(),
            requested_model: self.model.clone(),
            status,
            ..RunFilter::default()
        })
    }
}

async fn list(State(door): State<Door>, query: Result<Query<Wanted>, QueryRejection>) -> Answered {
    let wanted = words::queried(query)?;
    let filter = wanted.filter().map_err(|fault| words::fault(&fault))?;
    let limit = wanted.limit.unwrap_or(PAGE).clamp(1, REPLAY_ROWS);
    let before = wanted.before.as_deref().and_then(RunId::parse);
    let runs = runs(&door, filter, Page { limit, before }).await?;
    let next = (runs.len() == limit).then(|| runs.last().map(|run| run.id.to_string())).flatten();
    let data: Vec<Value> = runs.iter().map(|run| Value::Object(shown(run))).collect();
    Ok(words::answer(Ok(json!({ "object": "list", "data": data, "next_before": next }))))
}

async fn detail(State(door): State<Door>, Path(id): Path<String>) -> Answered {
    let unknown = || {
        let shown: String = id.chars().take(80).collect();
        reply::refusal(StatusCode::NOT_FOUND, "not_found", &format!("no run `{shown}` is kept"))
    };
    let parsed = RunId::parse(&id).ok_or_else(unknown)?;
    let run = records(&door)?.get(&parsed).await.map_err(|fault| unreadable(&fault))?;
    let run = run.ok_or_else(unknown)?;
    let mut body = shown(&run);
    body.extend(kept(&run));
    body.insert("route_diagnostics".to_owned(), diagnostics(&run));
    Ok(words::answer(Ok(Value::Object(body))))
}

async fn aggregate(State(door): State<Door>, query: Result<Query<Wanted>, QueryRejection>) -> Answered {
    let wanted = words::queried(query)?;
    let filter = wanted.filter().map_err(|fault| words::fault(&fault))?;
    let limit = wanted.limit.unwrap_or(REPLAY_ROWS).clamp(1, REPLAY_ROWS);
    let before = wanted.before.as_deref().and_then(RunId::parse);
    let runs = runs(&door, filter, Page { limit, before }).await?;
    let count = |of: &dyn Fn(&RunRecord) -> String| {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        runs.iter().for_each(|run| *counts.entry(of(run)).or_default() += 1);
        counts
    };
    let or_none = |word: Option<&str>| word.unwrap_or("none").to_owned();
    let sum = |of: &dyn Fn(&RunRecord) -> u64| runs.iter().map(of).sum::<u64>();
    let body = json!({
        "runs": runs.len(),
        "by_decision": count(&|run| or_none(run.decision.as_deref())),
        "by_model": count(&|run| or_none(run.models.last().map(AsRef::as_ref))),
        "by_state": count(&|run| lifecycle(run.status).to_owned()),
        "from_cache": runs.iter().filter(|run| cache(run).get("hit") == Some(&json!(true))).count(),
        "prompt_tokens": sum(&|run| run.usage.prompt_tokens),
        "completion_tokens": sum(&|run| run.usage.completion_tokens),
        "total_tokens": sum(&|run| run.usage.total_tokens),
        "actual_cost": dollars(sum(&|run| run.cost_micro_usd)),
        "currency": "USD",
        "mean_duration_ms": sum(&|run| run.duration_ms).checked_div(runs.len() as u64),
    });
    Ok(words::answer(Ok(body)))
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Session {
    session: String,
}

async fn trajectory(State(door): State<Door>, query: Result<Query<Session>, QueryRejection>) -> Answered {
    let Session { session } = words::queried(query)?;
    let page = Page { limit: REPLAY_ROWS, before: None };
    let mut runs = runs(&door, RunFilter::default(), page).await?;
    runs.retain(|run| self::session(run).as_deref() == Some(session.as_str()));
    runs.reverse();
    let data: Vec<Value> = (0..)
        .zip(&runs)
        .map(|(turn, run): (u64, _)| {
            let mut row = shown(run);
            row.insert("turn_index".to_owned(), turn.into());
            Value::Object(row)
        })
        .collect();
    Ok(words::answer(Ok(json!({ "object": "list", "session_id": session, "data": data }))))
}

fn records(door: &Door) -> Result<Arc<dyn RunStore>, words::Refused> {
    door.engine.records().cloned().ok_or_else(|| {
        let fault = Fault::new(Code::NotLoaded, "run records are not kept");
        words::fault(&fault).into()
    })
}

async fn runs(door: &Door, filter: RunFilter, page: Page) -> Result<Vec<RunRecord>, words::Refused> {
    records(door)?.list(filter, page).await.map_err(|fault| unreadable(&fault).into())
}

fn unreadable(fault: &StoreFault) -> Response {
    tracing::error!(%fault, "run records cannot be read");
    let code = if fault.is_of_a_shared_place() { Code::StoreUnavailable } else { Code::Internal };
    words::fault(&Fault::new(code, "run records cannot be read; see the log"))
}

/// A run without a word of its conversation.
fn shown(run: &RunRecord) -> Map<String, Value> {
    let matched = run.signals.iter().filter(|signal| signal.state == SignalState::Matched);
    let mut signals: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (family, name) in matched.filter_map(|signal| signal.key.split_once(':')) {
        signals.entry(family).or_default().push(name);
    }
    let confidences: BTreeMap<&str, f64> =
        run.signals.iter().filter_map(|it| Some((it.key.as_str(), it.confidence?))).collect();
    let values: BTreeMap<&str, f64> =
        run.signals.iter().filter_map(|it| Some((it.key.as_str(), it.raw?))).collect();
    let cache = cache(run);
    let hit = cache.get("hit") == Some(&json!(true));
    let fields = json!({
        "id": run.id, "timestamp": timestamp(run.started_at_ms), "request_id": run.id, "session_id": session(run),
        "recipe": run.recipe, "decision": run.decision,
        "original_model": run.requested_model, "selected_model": run.models.last(), "models": run.models,
        "selection_method": run.algorithm,
        "signals": signals, "signal_confidences": confidences, "signal_values": values,
        "lifecycle_state": lifecycle(run.status), "terminal_reason": run.error_code,
        "duration_ms": run.duration_ms, "streaming": run.streaming,
        "from_cache": hit,
        "cache_hit_kind": cache.get("kind"), "cache_similarity": cache.get("similarity"),
        "cache_entry_age_seconds": cache.get("age_seconds"), "cache_source": hit.then_some("memory"),
        "prompt_tokens": run.usage.prompt_tokens, "completion_tokens": run.usage.completion_tokens,
        "total_tokens": run.usage.total_tokens,
        "actual_cost": dollars(run.cost_micro_usd), "currency": "USD",
        "warnings": run.degraded,
    });
    match fields {
        Value::Object(mut fields) => {
            fields.retain(|_, value| !value.is_null());
            fields
        }
        _ => Map::new(),
    }
}

/// What the route keeps of the conversation.
fn kept(run: &RunRecord) -> Map<String, Value> {
    let mut fields = Map::new();
    let Some(content) = &run.content else { return fields };
    for (name, body) in [("request_body", &content.request_body), ("response_body", &content.response_body)] {
        if let Some(Excerpt { text, truncated }) = body {
            fields.insert(name.to_owned(), text.clone().into());
            fields.insert(format!("{name}_truncated"), (*truncated).into());
        }
    }
    if !content.tool_steps.is_empty() {
        let steps: Vec<Value> = content
            .tool_steps
            .iter()
            .map(|step| {
                let text = if step.kind == "call" { "arguments" } else { "output" };
                json!({"type": step.kind, "tool_name": step.tool, "tool_call_id": step.call_id,
                    text: step.text.text, "truncated": step.text.truncated})
            })
            .collect();
        let trace = json!({"steps": steps, "dropped_step_count": content.dropped_tool_steps});
        fields.insert("tool_trace".to_owned(), trace);
    }
    fields
}

/// Why the run went the way that it went.
fn diagnostics(run: &RunRecord) -> Value {
    json!({
        "proof": run.proof, "projections": run.projections, "checks": run.checks, "calls": run.calls,
        "traces": run.traces,
    })
}

fn cache(run: &RunRecord) -> Map<String, Value> {
    let trace = run.traces.get("plugins").and_then(|plugins| plugins.get("response_cache"));
    trace.and_then(Value::as_object).cloned().unwrap_or_default()
}

fn session(run: &RunRecord) -> Option<String> {
    let trace = run.traces.get("plugins")?.pointer("/router_replay/session")?;
    trace.as_str().map(str::to_owned)
}

/// Source: contract §4.3.
fn lifecycle(status: RunStatus) -> &'static str {
    match status {
        RunStatus::Ok => "completed",
        RunStatus::Failed => "failed",
        RunStatus::Cancelled => "aborted",
    }
}

fn dollars(micro: u64) -> f64 {
    micro as f64 / 1_000_000.0
}

/// Milliseconds since 1970 as RFC 3339 in UTC.
///
/// Source: the days-to-civil algorithm of Howard Hinnant's "chrono-Compatible Low-Level Date Algorithms".
fn timestamp(ms: u64) -> String {
    let (seconds, millis) = (ms / 1000, ms % 1000);
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (rest / 3_600, rest / 60 % 60, rest % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_as_people_read_it() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_767_225_599_999, "2025-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(timestamp(ms), text);
        }
    }
}
