//! `POST /v1/router/outcomes`: a verdict on a past run. Source: contract §4.2.
//!
//! **Invariant:** a verdict that is sent again under its key is neither kept nor counted again.

use super::endpoint::{Endpoint, Field, Route};
use super::words::{self, Answered};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::routing::post;
use chorus_engine::Fault;
use chorus_store::{Outcome, OutcomeTarget, OutcomeVerdict, RunId, Told};
use http::HeaderMap;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;

/// The header that makes sending again harmless.
const KEY: &str = "idempotency-key";
/// Longest key, in characters (`max_idempotency_key`).
const MAX_KEY: usize = 256;
/// Longest reason, in characters (`max_outcome_reason`).
const MAX_REASON: usize = 1_000;
/// Most facts of an outcome, and their longest name or value in characters (`max_outcome_metadata`).
const MAX_METADATA: (usize, usize) = (16, 200);

const OUTCOME: &[Field] = &[
    Field::needed("replay_id", "string", "the run, by its `x-vsr-replay-id`"),
    Field::needed("target", "string", "`model`, `route`, `policy`, `stability`, `provider` or `router`"),
    Field::needed("verdict", "string", "`good_fit`, `underpowered`, `overprovisioned` or `failed`"),
    Field::new("target_ref", "string", "which one: a model that the run called; its only one by default"),
    Field::new("reason", "string", "why, for people"),
    Field::new("score", "number", "a number of your own, in 0..=1"),
    Field::new("metadata", "object", "short texts of your own"),
];

/// What can be told.
pub(super) fn routes() -> Vec<Route> {
    let does = "takes a verdict on a past run, under a header `Idempotency-Key`; learning routes count those on models";
    let outcome = Endpoint::new("POST", "/v1/router/outcomes", "learning.ingest", does).taking(OUTCOME);
    vec![Route::new(outcome, post(tell))]
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    replay_id: String,
    target: OutcomeTarget,
    target_ref: Option<String>,
    verdict: OutcomeVerdict,
    reason: Option<String>,
    score: Option<f64>,
    #[serde(default)]
    metadata: BTreeMap<String, String>,
}

async fn tell(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let refused = |fault: Fault| words::fault(&fault);
    let key = key(&headers).map_err(refused)?;
    let body: Sent = words::read(&door, body).await?;
    let outcome = outcome(body).map_err(refused)?;
    let (run, target, verdict) = (outcome.run.clone(), outcome.target, outcome.verdict);
    let told = door.engine.tell(key, outcome).await.map_err(refused)?;
    let answer = json!({
        "replay_id": run.to_string(), "target": target, "verdict": verdict, "again": told == Told::Again,
    });
    Ok(words::answer(Ok(answer)))
}

fn key(headers: &HeaderMap) -> Result<String, Fault> {
    let key = headers.get(KEY).and_then(|value| value.to_str().ok()).map(str::trim).unwrap_or_default();
    match key.chars().count() {
        0 => Err(words::invalid("the header `Idempotency-Key` is missing").at("Idempotency-Key")),
        n if n > MAX_KEY => {
            let text = format!("the key has {n} characters; {MAX_KEY} are the most (max_idempotency_key)");
            Err(words::invalid(text).at("Idempotency-Key"))
        }
        _ => Ok(key.to_owned()),
    }
}

fn outcome(body: Sent) -> Result<Outcome, Fault> {
    let Sent { replay_id, target, target_ref, verdict, reason, score, metadata } = body;
    let run = RunId::parse(&replay_id)
        .ok_or_else(|| words::invalid("that is no run id (run_ and 32 hex digits)").at("replay_id"))?;
    if score.is_some_and(|score| !(0.0..=1.0).contains(&score)) {
        return Err(words::invalid("a score is in 0..=1").at("score"));
    }
    if reason.as_ref().is_some_and(|it| it.chars().count() > MAX_REASON) {
        let text = format!("a reason has at most {MAX_REASON} characters (max_outcome_reason)");
        return Err(words::invalid(text).at("reason"));
    }
    let (most, longest) = MAX_METADATA;
    let long = |it: &String| it.chars().count() > longest;
    if metadata.len() > most || metadata.iter().any(|(name, value)| long(name) || long(value)) {
        let text = format!("at most {most} facts of {longest} characters (max_outcome_metadata)");
        return Err(words::invalid(text).at("metadata"));
    }
    let (told_at_ms, decision) = (0, None);
    Ok(Outcome { run, told_at_ms, target, target_ref, decision, verdict, reason, score, metadata })
}
