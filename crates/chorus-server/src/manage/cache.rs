//! `/api/v1/response-cache/…`: what is kept of earlier answers, and how it is taken out.
//!
//! It knows no answer's text, and shows none. Source: contract §4.2; case F09.

use super::endpoint::{Endpoint, Field, Route};
use super::words::{self, Answered};
use crate::door::Door;
use crate::reply;
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::{delete, get, post};
use chorus_engine::answer_cache::{
    CACHE_AUDIT_ROWS, CACHE_BYTES, CACHE_ENTRY_BYTES, CACHE_LIST_ROWS, CacheFilter,
};
use chorus_engine::{CacheTrial, Code, Fault, try_cache};
use chorus_store::AnswersFault;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// What must be said for everything to be taken out.
const CONFIRMATION: &str = "flush response cache";

const FILTER: &[Field] = &[
    Field::new("dry_run", "boolean", "only count what would be taken out; true unless it says `false`"),
    Field::new("id", "string", "that answer"),
    Field::new("recipe", "string", "answers of that recipe"),
    Field::new("decision", "string", "answers of that decision"),
    Field::new("model", "string", "answers of that model"),
    Field::new("owner", "string", "answers of that owner, by the digest that a listing shows"),
    Field::new("older_than_seconds", "integer", "answers at least so old"),
];
const FLUSH: &[Field] = &[Field::needed("confirm", "string", "the words `flush response cache`")];
const TRIAL: &[Field] = &[
    Field::needed("kept", "string", "a message whose answer would be kept"),
    Field::needed("asked", "string", "a message that might be given it"),
    Field::new("similarity_threshold", "number", "least similarity; the served file's, or the built-in one"),
];

/// What can be asked of the cache, and done to it.
pub(super) fn routes() -> Vec<Route> {
    let read = |path, does| Endpoint::new("GET", path, "cache.read", does);
    let manage = |path, does| Endpoint::new("POST", path, "cache.manage", does);
    let invalidate = "takes out the answers that the filter names; a dry run unless told otherwise";
    let one = "/api/v1/response-cache/entries/{id}";
    vec![
        Route::new(
            read("/api/v1/response-cache/capabilities", "modes, scopes, stores and bounds of the cache"),
            get(capabilities),
        ),
        Route::new(read("/api/v1/response-cache/health", "whether the served file has a cache"), get(health)),
        Route::new(
            read("/api/v1/response-cache/stats", "hits, misses, what is kept, and the epoch"),
            get(stats),
        ),
        Route::new(
            read(
                "/api/v1/response-cache/audit",
                "what was taken out by hand, each row with the digest of the last",
            ),
            get(audit),
        ),
        Route::new(
            read(
                "/api/v1/response-cache/entries",
                "the answers that are kept, newest first; the filter's fields as query",
            ),
            get(entries),
        ),
        Route::new(Endpoint::new("DELETE", one, "cache.invalidate", "takes out one answer"), delete(evict)),
        Route::new(
            Endpoint::new("POST", "/api/v1/response-cache/invalidate", "cache.invalidate", invalidate)
                .taking(FILTER),
            post(self::invalidate),
        ),
        Route::new(
            manage("/api/v1/response-cache/flush", "takes out every answer and begins another epoch")
                .taking(FLUSH),
            post(flush),
        ),
        Route::new(
            manage(
                "/api/v1/response-cache/test",
                "whether one message would be given the answer to another, and why not",
            )
            .taking(TRIAL),
            post(test),
        ),
    ]
}

async fn capabilities() -> Response {
    words::answer(Ok(json!({
        "modes": ["exact", "semantic", "exact_then_semantic"],
        "scopes": ["user", "team", "global"],
        "backends": ["memory", "redis", "valkey"],
        "eviction_policies": ["fifo", "lru"],
        "request_directives": ["no-cache", "no-store", "bypass", "max-age", "ttl"],
        "bounds": {
            "cache_bytes": CACHE_BYTES,
            "cache_entry_bytes": CACHE_ENTRY_BYTES,
            "cache_audit_rows": CACHE_AUDIT_ROWS,
            "cache_list_rows": CACHE_LIST_ROWS,
        },
    })))
}

async fn health(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    let store = &serving.spec.global.response_cache;
    let semantic = serving.classifiers.encoder().is_some();
    let status = if !store.enabled {
        "off"
    } else if serving.answer_cache.stats().await.is_err() {
        "unreachable"
    } else {
        "ok"
    };
    words::answer(Ok(json!({
        "status": status,
        "backend": store.backend.as_str(),
        "semantic": store.enabled && semantic,
    })))
}

async fn stats(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    let store = &serving.spec.global.response_cache;
    let stats = match serving.answer_cache.stats().await {
        Ok(stats) => stats,
        Err(why) => return words::fault(&unreachable(why)),
    };
    let mut body = serde_json::to_value(stats).unwrap_or_default();
    if let Value::Object(fields) = &mut body {
        fields.insert("max_entries".to_owned(), json!(store.max_entries));
        fields.insert("max_bytes".to_owned(), json!(CACHE_BYTES));
        fields.insert("ttl_seconds".to_owned(), json!(store.ttl.as_secs()));
    }
    words::answer(Ok(body))
}

/// The server that keeps the answers does not say.
fn unreachable(why: AnswersFault) -> Fault {
    Fault::new(Code::StoreUnavailable, why.to_string())
}

async fn audit(State(door): State<Door>) -> Response {
    words::answer(Ok(json!({ "acts": door.engine.serving().answer_cache.journal() })))
}

async fn entries(State(door): State<Door>, query: Result<Query<CacheFilter>, QueryRejection>) -> Answered {
    let filter = words::queried(query)?;
    let listed = door.engine.serving().answer_cache.list(&filter).await;
    Ok(words::answer(listed.map(|entries| json!({ "entries": entries })).map_err(unreachable)))
}

async fn evict(State(door): State<Door>, Path(id): Path<String>) -> Response {
    let filter = CacheFilter { id: Some(id.clone()), ..CacheFilter::default() };
    match door.engine.serving().answer_cache.invalidate(&filter, false).await {
        Ok(0) => {
            let shown: String = id.chars().take(80).collect();
            reply::refusal(StatusCode::NOT_FOUND, "not_found", &format!("no answer `{shown}` is kept"))
        }
        Ok(_) => words::answer(Ok(json!({ "id": id, "deleted": true }))),
        Err(why) => words::fault(&unreachable(why)),
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Invalidation {
    #[serde(default)]
    dry_run: Option<bool>,
    id: Option<String>,
    recipe: Option<String>,
    decision: Option<String>,
    model: Option<String>,
    owner: Option<String>,
    older_than_seconds: Option<u64>,
}

async fn invalidate(State(door): State<Door>, body: Body) -> Answered {
    let Invalidation { dry_run, id, recipe, decision, model, owner, older_than_seconds } =
        words::read(&door, body).await?;
    let filter = CacheFilter { id, recipe, decision, model, owner, older_than_seconds };
    if filter == CacheFilter::default() {
        let text = "the filter names nothing; POST /api/v1/response-cache/flush takes out everything";
        return Err(words::fault(&words::invalid(text)).into());
    }
    let dry_run = dry_run.unwrap_or(true);
    let matched = door.engine.serving().answer_cache.invalidate(&filter, dry_run).await;
    let told = |matched| json!({ "dry_run": dry_run, "matched": matched, "removed": if dry_run { 0 } else { matched } });
    Ok(words::answer(matched.map(told).map_err(unreachable)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Flush {
    confirm: String,
}

async fn flush(State(door): State<Door>, body: Body) -> Answered {
    let Flush { confirm } = words::read(&door, body).await?;
    if confirm != CONFIRMATION {
        let text = format!("`confirm` must be `{CONFIRMATION}`");
        return Err(words::fault(&words::invalid(text).at("confirm")).into());
    }
    let cache = &door.engine.serving().answer_cache;
    let flushed = async {
        let removed = cache.flush().await?;
        Ok(json!({ "removed": removed, "epoch": cache.stats().await?.epoch }))
    };
    Ok(words::answer(flushed.await.map_err(unreachable)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Trial {
    kept: String,
    asked: String,
    similarity_threshold: Option<f64>,
}

async fn test(State(door): State<Door>, body: Body) -> Answered {
    let Trial { kept, asked, similarity_threshold } = words::read(&door, body).await?;
    let trial: Result<CacheTrial, _> =
        try_cache(&door.engine.serving(), kept, asked, similarity_threshold).await;
    Ok(words::answer(trial))
}
