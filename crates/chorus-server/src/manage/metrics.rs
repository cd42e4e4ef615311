//! `GET /metrics`: what is counted, as text for Prometheus.

use super::endpoint::{Endpoint, Route};
use crate::door::Door;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::CONTENT_TYPE;

/// OpenMetrics, as Prometheus asks for it.
const TEXT: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What is counted.
pub(super) fn routes() -> Vec<Route> {
    let does = "what is counted, as text for Prometheus (OpenMetrics)";
    vec![Route::new(Endpoint::new("GET", "/metrics", "metrics.read", does), get(metrics))]
}

async fn metrics(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    let text = serving.meters.text(&serving.backends.states());
    ([(CONTENT_TYPE, TEXT)], text).into_response()
}
