//! `POST /api/v1/classify/batch` and `/combined`: several classifiers, or several texts.
//!
//! **Invariant:** an item is what the single endpoint says of its text, in the order of the texts (case D02).

use super::classify::{
    FactCheckAnswer, FeedbackAnswer, PiiAnswer, PiiOptions, SecurityAnswer, fact_check_of, feedback_of,
    pii_of, security_of,
};
use super::endpoint::{Endpoint, Field, Route};
use super::intent::{IntentAnswer, intent_of};
use super::words::{self, Answered};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::routing::post;
use chorus_engine::Fault;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Instant;

/// What answers with several.
pub(super) fn routes() -> Vec<Route> {
    let ask = |path, does, fields| Endpoint::new("POST", path, "classify.invoke", does).taking(fields);
    vec![
        Route::new(ask("/api/v1/classify/combined", "all of them for one text", ONE), post(combined)),
        Route::new(
            ask("/api/v1/classify/batch", "intent, pii and security of many texts", MANY),
            post(batch),
        ),
    ]
}

const ONE: &[Field] = &[Field::needed("text", "string", "the text")];

const MANY: &[Field] = &[
    Field::needed("texts", "array", "1 to 100 texts"),
    Field::new("task_type", "string", "`intent`, `pii`, `security` or `all` (default)"),
];

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Task {
    Intent,
    Pii,
    Security,
    #[default]
    All,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchRequest {
    texts: Vec<String>,
    #[serde(default)]
    task_type: Task,
}

#[derive(Debug, Default, Serialize)]
struct BatchAnswer {
    intent_results: Vec<IntentAnswer>,
    pii_results: Vec<PiiAnswer>,
    security_results: Vec<SecurityAnswer>,
    processing_time_ms: u64,
    total_texts: usize,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CombinedRequest {
    text: String,
}

#[derive(Debug, Serialize)]
struct CombinedAnswer {
    intent: IntentAnswer,
    pii: PiiAnswer,
    security: SecurityAnswer,
    fact_check: FactCheckAnswer,
    user_feedback: FeedbackAnswer,
    processing_time_ms: u64,
}

/// Many texts.
async fn batch(State(door): State<Door>, body: Body) -> Answered {
    let asked: BatchRequest = words::read(&door, body).await?;
    Ok(words::answer(batch_of(&door, asked).await))
}

async fn batch_of(door: &Door, asked: BatchRequest) -> Result<BatchAnswer, Fault> {
    let started = Instant::now();
    words::bounded(&asked.texts, "texts")?;
    // One configuration for the whole batch, whatever is swapped meanwhile.
    let mom = door.engine.serving();
    let wants = |task| asked.task_type == task || asked.task_type == Task::All;
    let mut answer = BatchAnswer { total_texts: asked.texts.len(), ..BatchAnswer::default() };
    for text in asked.texts {
        if wants(Task::Intent) {
            answer.intent_results.push(intent_of(&mom, &door.limits.request, &as_body(&text)).await?);
        }
        if wants(Task::Security) {
            answer.security_results.push(security_of(&mom, &text, false).await?);
        }
        if wants(Task::Pii) {
            answer.pii_results.push(pii_of(&mom, text, PiiOptions::default()).await?);
        }
    }
    answer.processing_time_ms = words::millis(started);
    Ok(answer)
}

/// All of them.
async fn combined(State(door): State<Door>, body: Body) -> Answered {
    let asked: CombinedRequest = words::read(&door, body).await?;
    Ok(words::answer(combined_of(&door, asked.text).await))
}

async fn combined_of(door: &Door, text: String) -> Result<CombinedAnswer, Fault> {
    let started = Instant::now();
    let mom = door.engine.serving();
    Ok(CombinedAnswer {
        intent: intent_of(&mom, &door.limits.request, &as_body(&text)).await?,
        security: security_of(&mom, &text, false).await?,
        fact_check: fact_check_of(&mom, &text, None).await?,
        user_feedback: feedback_of(&mom, &text, None).await?,
        pii: pii_of(&mom, text, PiiOptions::default()).await?,
        processing_time_ms: words::millis(started),
    })
}

fn as_body(text: &str) -> Vec<u8> {
    json!({"text": text}).to_string().into_bytes()
}
