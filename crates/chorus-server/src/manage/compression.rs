//! `/api/v1/context-compression/…`: what routes shorten, what that came to, and what a route would make of a prompt.
//!
//! It shows no text but that of the request which a preview is asked for. Source: contract §4.2.

use super::endpoint::{Endpoint, Field, Route};
use super::words::{self, Answered};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use chorus_engine::plugins::compression_preview::{preview, routes as with_plugin};
use chorus_wire::ChatRequest;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

const PREVIEW: &[Field] = &[
    Field::needed("request", "object", "a chat completions request"),
    Field::new("decision", "string", "the route; the first one with the plugin by default"),
];
const FORGET: &[Field] = &[
    Field::new("run", "string", "the run whose originals are forgotten"),
    Field::new("all", "boolean", "`true` forgets the originals of all runs"),
];

/// What can be asked of the plugin, and done to what it keeps.
pub(super) fn routes() -> Vec<Route> {
    let read = |path, does| Endpoint::new("GET", path, "compression.read", does);
    let at = |path, permission, does| Endpoint::new("POST", path, permission, does);
    vec![
        Route::new(
            read(
                "/api/v1/context-compression/capabilities",
                "modes, parts, scorings and stores of the plugin",
            ),
            get(capabilities),
        ),
        Route::new(
            read(
                "/api/v1/context-compression/health",
                "how many routes shorten, and what waits to be asked for",
            ),
            get(health),
        ),
        Route::new(
            read("/api/v1/context-compression/stats", "what has become of requests since the start"),
            get(stats),
        ),
        Route::new(
            at(
                "/api/v1/context-compression/preview",
                "compression.preview",
                "what a route would make of a prompt; no model is called and nothing is kept",
            )
            .taking(PREVIEW),
            post(previewed),
        ),
        Route::new(
            at(
                "/api/v1/context-compression/recovery/invalidate",
                "compression.manage",
                "forgets originals that models could still ask for",
            )
            .taking(FORGET),
            post(forget),
        ),
    ]
}

async fn capabilities(State(door): State<Door>) -> Response {
    let encoder = door.engine.serving().classifiers.encoder().is_some();
    let scorings: &[&str] = if encoder { &["bm25", "embedding", "hybrid"] } else { &["bm25"] };
    words::answer(Ok(json!({
        "modes": ["auto", "always"],
        "targets": ["tool_outputs", "history", "rag", "memory"],
        "target_modes": ["preserve", "extractive", "recoverable"],
        "scoring_methods": scorings,
        "failure_modes": ["fail_open", "fail_closed"],
        "recovery_stores": ["memory"],
        "request_directives": ["bypass", "target"],
    })))
}

async fn health(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    let routes = with_plugin(&serving);
    let (originals, bytes) = serving.shelf.originals();
    words::answer(Ok(json!({
        "status": if routes > 0 { "ok" } else { "off" },
        "routes": routes,
        "semantic": serving.classifiers.encoder().is_some(),
        "originals": originals,
        "original_bytes": bytes,
    })))
}

async fn stats(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    let (originals, bytes) = serving.shelf.originals();
    let mut body = serde_json::to_value(serving.meters.compression()).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.insert("originals".to_owned(), json!(originals));
        fields.insert("original_bytes".to_owned(), json!(bytes));
    }
    words::answer(Ok(body))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Preview {
    request: Box<RawValue>,
    decision: Option<String>,
}

async fn previewed(State(door): State<Door>, body: Body) -> Answered {
    let Preview { request, decision } = words::read(&door, body).await?;
    let request = ChatRequest::parse(request.get().as_bytes(), &door.limits.request)
        .map_err(|why| words::fault(&words::invalid(why.to_string()).at("request")))?;
    Ok(words::answer(preview(&door.engine.serving(), request, decision.as_deref()).await))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Forget {
    run: Option<String>,
    #[serde(default)]
    all: bool,
}

async fn forget(State(door): State<Door>, body: Body) -> Answered {
    let Forget { run, all } = words::read(&door, body).await?;
    if run.is_some() == all {
        let text = "name a `run`, or say `all: true`";
        return Err(words::fault(&words::invalid(text).at("run")).into());
    }
    let removed = door.engine.serving().shelf.forget_originals(run.as_deref());
    Ok(words::answer(Ok(json!({ "removed": removed }))))
}
