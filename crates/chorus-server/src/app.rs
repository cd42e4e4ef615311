//! Which path leads to which handler, on each plane, and what is done to every request on its way in and out.
//!
//! The path that nearly all requests take is dispatched before the router; it passes the same guard.

use crate::chat;
use crate::door::Door;
use crate::handover::Gateway;
use crate::headers::{REQUEST, RUN};
use crate::{embeddings, guard, health, manage, messages, models, recall, reply, responses, traces};
use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{get, post};
use chorus_engine::placed;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::header::ALLOW;
use http::{HeaderValue, Method, StatusCode};
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;
use tower::{Service, ServiceExt};

/// The path of chat completions.
const CHAT: &str = "/v1/chat/completions";

/// The data plane.
pub(crate) fn data(door: Door) -> Plane {
    let routes = Router::new()
        .route("/v1/messages", post(messages::create))
        .route("/v1/messages/count_tokens", post(messages::count))
        .route("/v1/embeddings", post(embeddings::create))
        .merge(responses::routes(&door))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .merge(recall::routes());
    let guarded = routes.layer(from_fn_with_state(door.clone(), guard::data));
    Plane::of("data", door.clone(), finished(guarded, door), Some(CHAT))
}

/// The management plane.
pub(crate) fn management(door: Door) -> Plane {
    let guarded = manage::routes().layer(from_fn_with_state(door.clone(), guard::management));
    Plane::of("management", door.clone(), finished(guarded, door), None)
}

fn finished(routes: Router<Door>, door: Door) -> Router {
    routes
        .route("/health", get(health::health))
        .route("/ready", get(health::ready))
        .fallback(|| async {
            reply::refusal(StatusCode::NOT_FOUND, "not_found", "there is nothing at this path")
        })
        .method_not_allowed_fallback(|| async { not_allowed() })
        .layer(from_fn(with_route))
        .with_state(door)
}

fn not_allowed() -> Response {
    reply::refusal(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path takes another method")
}

/// Notes on the response which route it came by.
async fn with_route(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(route);
    }
    response
}

/// One plane: all of its requests pass here, in and out. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Plane(Arc<Shared>);

struct Shared {
    /// Its name in the metrics.
    name: &'static str,
    door: Door,
    router: Router,
    /// Where it answers chat completions, if it does.
    chat: Option<&'static str>,
}

impl Plane {
    fn of(name: &'static str, door: Door, router: Router, chat: Option<&'static str>) -> Self {
        Self(Arc::new(Shared { name, door, router, chat }))
    }

    /// One count an answer, whatever came of the request, and an id for it (case I03); one line where no run has a line of
    /// its own.
    async fn answered(&self, request: Request) -> Response {
        let door = &self.0.door;
        let started = Instant::now();
        let (method, uri) = (request.method().clone(), request.uri().clone());
        let chat = self.0.chat.filter(|chat| *chat == uri.path());
        let given = request.headers().get(&REQUEST).cloned();
        let parent = door.traces().and_then(|_| traces::parent(request.headers()));
        let dispatched = AssertUnwindSafe(self.dispatched(request, chat.is_some())).catch_unwind();
        let response = dispatched.await.unwrap_or_else(|_| panicked());
        let mut response = messages::shaped(uri.path(), response).await;
        let route = response.extensions_mut().remove::<MatchedPath>();
        let headers = response.headers_mut();
        if let (Some(traces), Some(parent)) = (door.traces(), parent)
            && let Some(run) = headers.get(&RUN).and_then(|run| run.to_str().ok())
        {
            traces.join(run, parent);
        }
        if let Some(id) = given {
            headers.insert(REQUEST.clone(), id);
        } else if !headers.contains_key(&REQUEST) {
            let id = chorus_store::RunId::new().to_string().replace("run_", "req_");
            headers.extend(HeaderValue::try_from(id).ok().map(|id| (REQUEST.clone(), id)));
        }
        let has_run = headers.contains_key(&RUN);
        let status = response.status().as_u16();
        let route = chat.or(route.as_ref().map(MatchedPath::as_str)).unwrap_or("other");
        door.engine.serving().meters.responded(self.0.name, route, status);
        if !has_run {
            let head_ms = started.elapsed().as_millis();
            tracing::info!(%method, path = uri.path(), status, head_ms, "answered");
        }
        response
    }

    async fn dispatched(&self, request: Request, is_chat: bool) -> Response {
        if !is_chat {
            return match self.0.router.clone().oneshot(request).await {
                Ok(response) => response,
                Err(never) => match never {},
            };
        }
        let (head, body) = request.into_parts();
        let named = match guard::admitted(&self.0.door, &head.headers).await {
            Ok(named) => named,
            Err(refusal) => return refusal,
        };
        if head.method != Method::POST {
            let mut response = not_allowed();
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        let gateway = head.extensions.get::<Gateway>().copied();
        let answer = pin!(chat::chat(self.0.door.clone(), gateway, head.headers, body));
        guard::naming(named, answer).await
    }
}

impl Service<Request> for Plane {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let plane = self.clone();
        placed(|| async move { Ok(plane.answered(request).await) })
    }
}

fn panicked() -> Response {
    tracing::error!("a request ended in a panic");
    reply::refusal(StatusCode::INTERNAL_SERVER_ERROR, "internal", "the request failed badly; see the log")
}
