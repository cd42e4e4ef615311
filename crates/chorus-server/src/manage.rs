//! The management plane: what can be asked and changed beside the data plane, and the one table that says so.
//!
//! Handlers, the catalog, the OpenAPI description and the manual come from the same rows. It stays on loopback, which is
//! all that protects it. Source: contract §4.2.

mod cache;
mod classify;
mod classify_batch;
mod compression;
mod config;
mod data_plane;
mod endpoint;
mod info;
mod intent;
mod metrics;
mod openapi;
mod outcomes;
mod parts;
mod recall;
mod refusal;
mod replay;
mod rollout;
mod vectors;
mod words;

use crate::door::Door;
use crate::{eval, models, reply};
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use endpoint::{Endpoint, Field, Route};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, StatusCode};

/// Every endpoint of the plane, with its handler.
fn all() -> Vec<Route> {
    let mut all = docs();
    all.extend(classify::routes());
    all.extend(classify_batch::routes());
    all.extend(vectors::routes());
    all.extend(info::routes());
    all.extend(config::routes());
    all.extend(parts::routes());
    all.extend(rollout::routes());
    all.extend(metrics::routes());
    all.extend(recall::routes());
    all.extend(cache::routes());
    all.extend(compression::routes());
    all.extend(replay::routes());
    all.extend(outcomes::routes());
    all
}

const EVAL: &[Field] = &[
    Field::new("text", "string", "one user message; this or `messages`"),
    Field::new("messages", "array", "a conversation, as in a chat request"),
    Field::new("model", "string", "the name asked for; the first auto name by default"),
    Field::new("options", "object", "`trace`: each decision's proof and the projections"),
];

fn docs() -> Vec<Route> {
    let does = "which decision a request reaches, and why; no model is called, nothing is recorded";
    let eval = Endpoint::new("POST", "/api/v1/eval", "classify.invoke", does).taking(EVAL);
    vec![
        Route::new(
            Endpoint::new("GET", "/api/v1", "docs.read", "every endpoint of this plane"),
            get(catalog),
        ),
        Route::new(
            Endpoint::new("GET", "/openapi.json", "docs.read", "both planes as OpenAPI 3.1"),
            get(description),
        ),
        Route::new(
            Endpoint::new(
                "GET",
                "/docs",
                "docs.read",
                "this plane as a page, which loads nothing from elsewhere",
            ),
            get(page),
        ),
        Route::new(
            Endpoint::new("GET", "/v1/models", "config.read", "the public model names"),
            get(models::list),
        ),
        Route::new(eval, post(eval::eval)),
    ]
}

/// Served on both planes.
const BOTH: [Endpoint; 2] = [
    Endpoint::new("GET", "/health", "health.read", "200 while the process lives"),
    Endpoint::new("GET", "/ready", "ready.read", "200 when it can serve"),
];

/// What the plane offers, in order of path.
fn endpoints() -> Vec<Endpoint> {
    let mut endpoints: Vec<Endpoint> = all().into_iter().map(|route| route.endpoint).chain(BOTH).collect();
    endpoints.sort_by_key(|endpoint| (endpoint.path, endpoint.method));
    endpoints
}

/// `GET /api/v1`: the table as a list.
async fn catalog() -> Response {
    words::answer(Ok(openapi::list(&endpoints())))
}

/// `GET /openapi.json`: the table as OpenAPI.
async fn description() -> Response {
    let body = openapi::document(&endpoints()).into_bytes();
    reply::json(StatusCode::OK, HeaderMap::new(), body)
}

/// `GET /docs`: the table as a page.
async fn page() -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(
        CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'"),
    );
    (StatusCode::OK, headers, openapi::page(&endpoints())).into_response()
}

/// The permission that a path needs; `None` for what is not in the table.
pub(crate) fn permission(method: &str, path: &str) -> Option<&'static str> {
    let row =
        |it: &Endpoint| it.path == path && (it.method == method || method == "HEAD" && it.method == "GET");
    endpoints().into_iter().find(row).map(|endpoint| endpoint.permission)
}

/// The plane's paths.
pub(crate) fn routes() -> Router<Door> {
    all().into_iter().fold(Router::new(), |router, route| router.route(route.endpoint.path, route.handler))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_endpoint_is_in_the_manual_with_an_example() {
        let page = include_str!("../../../docs/http.md");
        let examples: Vec<&str> = page.lines().filter(|line| line.contains("$MANAGE/")).collect();
        for Endpoint { method, path, .. } in all().into_iter().map(|route| route.endpoint) {
            assert!(page.contains(&format!("`{method} {path}`")), "docs/http.md lacks `{method} {path}`");
            let shown = path.split('{').next().unwrap();
            let example = |line: &&str| line.contains(&format!("$MANAGE{shown}"));
            assert!(examples.iter().any(example), "docs/http.md has no example of {path}");
        }
    }

    #[test]
    fn the_committed_description_is_the_one_that_is_served() {
        let committed = include_str!("../../../docs/openapi.json");
        assert!(
            committed == openapi::document(&endpoints()),
            "docs/openapi.json is old: curl -s localhost:8080/openapi.json > docs/openapi.json"
        );
    }
}
