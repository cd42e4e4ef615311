//! `GET /health`: the process lives. `GET /ready`: it can serve.

use crate::door::Door;
use crate::reply;
use axum::extract::State;
use axum::response::Response;
use http::{HeaderMap, StatusCode};
use serde_json::json;

/// Always 200 while the process answers at all.
pub(crate) async fn health() -> Response {
    reply::json(StatusCode::OK, HeaderMap::new(), br#"{"status":"ok"}"#.to_vec())
}

/// 200 when the configuration and the models it needs are loaded, 503 before that and while stopping. A change that was
/// refused does not end readiness: the configuration before it serves on (cases C11, C14).
pub(crate) async fn ready(State(door): State<Door>) -> Response {
    let ready = door.is_ready();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let word = if ready { "ready" } else { "not_ready" };
    let serving = door.engine.serving();
    // No more than that it was refused: the data plane may face strangers, and why is for the management plane.
    let refused =
        door.configuration.as_ref().map(|configuration| configuration.state().last.refused.is_some());
    let body = json!({
        "status": word, "spec_digest": serving.spec.digest, "generation": serving.generation,
        "last_change_refused": refused.unwrap_or_default(),
    });
    reply::json(status, HeaderMap::new(), body.to_string().into_bytes())
}
