//! Which path leads to which handler, on each plane.

use crate::door::Door;
use crate::{chat, embeddings, guard, health, manage, messages, models, recall, reply, responses, traces};
use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderValue, StatusCode};
use std::time::Instant;
use tower_http::catch_panic::CatchPanicLayer;

/// The data plane.
pub(crate) fn data(door: Door) -> Router {
    let routes = Router::new()
        .route("/v1/chat/completions", post(chat::chat))
        .route("/v1/messages", post(messages::create))
        .route("/v1/messages/count_tokens", post(messages::count))
        .route("/v1/embeddings", post(embeddings::create))
        .merge(responses::routes(&door))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .merge(recall::routes());
    let guarded = routes.layer(from_fn_with_state(door.clone(), guard::data));
    finished(guarded, door, "data")
}

/// The management plane.
pub(crate) fn management(door: Door) -> Router {
    let guarded = manage::routes().layer(from_fn_with_state(door.clone(), guard::management));
    finished(guarded, door, "management")
}

fn finished(routes: Router<Door>, door: Door, plane: &'static str) -> Router {
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
        .layer(from_fn_with_state(Plane { door: door.clone(), name: plane }, access_log))
        .with_state(door)
}

/// Whose answers are logged and counted.
#[derive(Clone)]
struct Plane {
    door: Door,
    name: &'static str,
}

/// One count an answer, whatever layer gave it, and an id for it (case I03); one line where no run has a line of its own.
async fn access_log(State(plane): State<Plane>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let given = request.headers().get("x-request-id").cloned();
    let parent = plane.door.traces().and_then(|_| traces::parent(request.headers()));
    let mut response = messages::shaped(&path, next.run(request).await).await;
    let headers = response.headers_mut();
    if let (Some(traces), Some(parent)) = (plane.door.traces(), parent)
        && let Some(run) = headers.get("x-vsr-replay-id").and_then(|run| run.to_str().ok())
    {
        traces.join(run, parent);
    }
    if let Some(id) = given {
        headers.insert("x-request-id", id);
    } else if !headers.contains_key("x-request-id") {
        let id = chorus_store::RunId::new().to_string().replace("run_", "req_");
        headers.extend(
            HeaderValue::try_from(id).ok().map(|id| (http::HeaderName::from_static("x-request-id"), id)),
        );
    }
    let has_run = headers.contains_key("x-vsr-replay-id");
    let status = response.status().as_u16();
    let route = route.as_ref().map_or("other", MatchedPath::as_str);
    plane.door.engine.serving().meters.responded(plane.name, route, status);
    if !has_run {
        let head_ms = started.elapsed().as_millis();
        tracing::info!(%method, path, status, head_ms, "answered");
    }
    response
}
