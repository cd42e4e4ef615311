//! Which path leads to which handler, on each plane.

use crate::door::Door;
use crate::{chat, health, manage, models, reply};
use axum::Router;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderValue, StatusCode};
use std::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;

/// The data plane.
pub(crate) fn data(door: Door) -> Router {
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat::chat))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one));
    finished(routes, door)
}

/// The management plane.
pub(crate) fn management(door: Door) -> Router {
    finished(manage::routes(), door)
}

fn finished(routes: Router<Door>, door: Door) -> Router {
    routes
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .fallback(|| async {
            reply::refusal(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path")
        })
        .method_not_allowed_fallback(|| async {
            reply::refusal(
                StatusCode::METHOD_NOT_ALLOWED,
                "method_not_allowed",
                "this path takes another method",
            )
        })
        .layer(CatchPanicLayer::custom(|_| {
            tracing::error!("a request ended in a panic");
            reply::refusal(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal",
                "the request failed badly; see the log",
            )
        }))
        .layer(from_fn(access_log))
        .with_state(door)
}

/// One line an answer, whatever layer gave it, and an id for it (case I03).
async fn access_log(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let given = request.headers().get("x-request-id").cloned();
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    if let Some(id) = given {
        headers.insert("x-request-id", id);
    } else if !headers.contains_key("x-request-id") {
        let id = chorus_store::RunId::new().to_string().replace("run_", "req_");
        headers.extend(
            HeaderValue::try_from(id).ok().map(|id| (http::HeaderName::from_static("x-request-id"), id)),
        );
    }
    let status = response.status().as_u16();
    let head_ms = started.elapsed().as_millis();
    tracing::info!(%method, path, status, head_ms, "answered");
    response
}
