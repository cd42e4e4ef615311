//! `/config/rollout`: a candidate shown copies of requests, answering a share of conversations, promoted, or taken back.
//!
//! It knows words and statuses; how requests are shared out is the engine's.

use super::config::{managed, writing};
use super::endpoint::{Endpoint, Field, Route};
use super::words::{Answered, Refused};
use super::{refusal, words};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::routing::{get, patch, post};
use chorus_engine::reload::{Refusal, Rollout, Source};
use chorus_engine::rollout::{Share, Stage, Trial};
use chorus_engine::{Code, Fault};
use http::header::HeaderMap;
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::PathBuf;

const BEGIN: &[Field] = &[
    Field::needed(
        "path",
        "string",
        "the bundle, the v0.3 file or the policy, as the server's machine knows it",
    ),
    Field::new("binding", "string", "a bundle's binding"),
    Field::new("lock", "string", "a bundle's lock"),
    Field::new("stage", "string", "`shadow` (the default) or `canary`"),
    Field::new(
        "percent",
        "number",
        "of how many conversations, 0 to 100; all of them for a shadow, 5 for a canary",
    ),
];

const CHANGE: &[Field] = &[
    Field::needed("stage", "string", "`shadow` or `canary`"),
    Field::needed("percent", "number", "of how many conversations, 0 to 100"),
];

/// What the plane does with candidates.
pub(super) fn routes() -> Vec<Route> {
    let does = "what is being rolled out, and how far";
    let write = |method, path, does| Endpoint::new(method, path, "config.write", does).conditional();
    vec![
        Route::new(Endpoint::new("GET", "/config/rollout", "config.read", does), get(show)),
        Route::new(
            write("POST", "/config/rollout", "tries a candidate beside what is served").taking(BEGIN),
            post(begin),
        ),
        Route::new(
            write("PATCH", "/config/rollout", "tries it at another stage, or for another share")
                .taking(CHANGE),
            patch(change),
        ),
        Route::new(
            write("POST", "/config/rollout/promote", "serves the candidate from the next request on"),
            post(promote),
        ),
        Route::new(
            write(
                "POST",
                "/config/rollout/rollback",
                "tries it no more; if it was promoted, serves what was before",
            ),
            post(rollback),
        ),
    ]
}

/// Share of conversations that a canary answers where nobody says.
const CANARY_PERCENT: f64 = 5.0;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    path: PathBuf,
    binding: Option<PathBuf>,
    lock: Option<PathBuf>,
    stage: Option<Stage>,
    percent: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    stage: Stage,
    percent: f64,
}

async fn show(State(door): State<Door>) -> Answered {
    let rollout = managed(&door)?.rollout();
    Ok(words::answer(Ok(json!({ "rollout": rollout }))))
}

async fn begin(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    let Begin { path, binding, lock, stage, percent } = words::read(&door, body).await?;
    let stage = stage.unwrap_or(Stage::Shadow);
    let usual = if stage == Stage::Canary { CANARY_PERCENT } else { Share::ALL.as_percent() };
    let trial = trial(stage, percent.unwrap_or(usual))?;
    let source = Source { path, binding, lock };
    to_its_end(async move { configuration.roll_out(&source, trial, &basis).await.map(|it| told(&it)) }).await
}

async fn change(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    let Change { stage, percent } = words::read(&door, body).await?;
    let trial = trial(stage, percent)?;
    to_its_end(async move { configuration.retry(trial, &basis).await.map(|it| told(&it)) }).await
}

async fn promote(State(door): State<Door>, headers: HeaderMap) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    to_its_end(async move { configuration.promote(&basis).await.map(|it| told(&it)) }).await
}

async fn rollback(State(door): State<Door>, headers: HeaderMap) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    to_its_end(async move {
        let state = configuration.withdraw(&basis).await?;
        Ok(json!({"rollout": null, "digest": state.digest, "generation": state.generation}))
    })
    .await
}

fn trial(stage: Stage, percent: f64) -> Result<Trial, Refused> {
    let share = Share::percent(percent);
    let share = share.ok_or_else(|| words::fault(&words::invalid("`percent` is 0 to 100").at("percent")))?;
    Ok(Trial { stage, share })
}

fn told(rollout: &Rollout) -> Value {
    json!({ "rollout": rollout })
}

/// A change comes to its end also when whoever asked for it hangs up.
async fn to_its_end(change: impl Future<Output = Result<Value, Refusal>> + Send + 'static) -> Answered {
    let outcome = tokio::spawn(change).await;
    let outcome = outcome
        .map_err(|_| words::fault(&Fault::new(Code::Internal, "the change failed badly; see the log")))?;
    Ok(words::answer(Ok(outcome.map_err(|why| refusal::of(&why))?)))
}
