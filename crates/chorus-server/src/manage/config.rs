//! `/config/…`: the configuration that is served: shown, checked, changed, and taken back.
//!
//! A change names what it is based on (`If-Match`), goes the same way as every other change, and is written to the
//! file. No literal credential is ever shown. Source: contract §4.2.

use super::endpoint::{Endpoint, Field, Route};
use super::words::{Answered, Refused};
use super::{refusal, words};
use crate::door::Door;
use crate::{body, reply};
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, patch, post, put};
use chorus_engine::reload::{Basis, KEPT_VERSIONS, Refusal};
use chorus_engine::{Code, Configuration, Fault, reload};
use chorus_spec::{Digest, Document, KbMetric, KnowledgeBase, Recipe, Severity, Spec};
use http::header::{ACCEPT, CONTENT_TYPE, ETAG, HOST, HeaderMap, HeaderValue, IF_MATCH, IF_NONE_MATCH};
use http::{StatusCode, Uri};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

const NUMBER: &[Field] =
    &[Field::new("version", "integer", "which; the latest that differs from what is served by default")];

/// What the plane says of the configuration.
pub(super) fn routes() -> Vec<Route> {
    let read = |path, does| Endpoint::new("GET", path, "config.read", does);
    let write = |method, path, does| Endpoint::new(method, path, "config.write", does).conditional();
    let check = Endpoint::new(
        "POST",
        "/config/router/validate",
        "config.read",
        "every problem of a configuration; nothing changes",
    );
    vec![
        Route::new(
            read("/config/router", "what is served, credentials masked; JSON, or YAML by `Accept`"),
            get(show),
        ),
        Route::new(
            write("PUT", "/config/router", "serves this configuration and writes it to the file"),
            put(replace),
        ),
        Route::new(
            write("PATCH", "/config/router", "merges a patch (RFC 7386) into what is served"),
            patch(merge),
        ),
        Route::new(check, post(validate)),
        Route::new(read("/config/router/versions", "what was served, latest first"), get(versions)),
        Route::new(
            write("POST", "/config/router/rollback", "serves an earlier version again").taking(NUMBER),
            post(rollback),
        ),
        Route::new(read("/config/router/recipes", "the recipes in short"), get(recipes)),
        Route::new(read("/config/router/recipes/{name}", "one recipe as written"), get(recipe)),
        Route::new(read("/config/kbs", "the knowledge bases, the built-in ones too"), get(knowledge_bases)),
        Route::new(read("/config/kbs/{name}", "one knowledge base"), get(knowledge_base)),
        Route::new(read("/config/hash", "the digest of what is served"), get(hash)),
        Route::new(
            read("/config/status", "generation, origin, and the last change that was asked for"),
            get(status),
        ),
    ]
}

async fn show(State(door): State<Door>, headers: HeaderMap) -> Answered {
    let state = managed(&door)?.state();
    if headers.get(IF_NONE_MATCH).is_some_and(|given| Tags::of(given).admit(&state.digest)) {
        return Ok(reply::json(StatusCode::NOT_MODIFIED, etag(&state.digest), Vec::new()));
    }
    let document = document(&state.text)?.masked();
    let wants_yaml = headers.get(ACCEPT).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("yaml"));
    if !wants_yaml {
        return Ok(reply::json(
            StatusCode::OK,
            etag(&state.digest),
            document.to_json().to_string().into_bytes(),
        ));
    }
    let mut response = reply::json(StatusCode::OK, etag(&state.digest), document.to_yaml().into_bytes());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/yaml"));
    Ok(response)
}

async fn replace(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    let text = text_of(&door, &headers, body).await?;
    to_its_end(async move { configuration.replace(text, &basis).await }).await
}

async fn merge(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    let text = text_of(&door, &headers, body).await?;
    let patch = document(&text)?.to_json();
    if !patch.is_object() {
        return Err(words::fault(&words::invalid("a patch is a mapping")).into());
    }
    to_its_end(async move { configuration.patch(&patch, &basis).await }).await
}

/// Which version to go back to.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    version: Option<u64>,
}

async fn rollback(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let (configuration, basis) = writing(&door, &headers)?;
    let bytes = body::read(body, &door.limits).await?;
    let wanted =
        if bytes.is_empty() { Ok(Wanted::default()) } else { serde_json::from_slice::<Wanted>(&bytes) };
    let wanted = wanted.map_err(|why| words::fault(&words::invalid(why.to_string())))?;
    to_its_end(async move { configuration.rollback(wanted.version, &basis).await }).await
}

async fn validate(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let configuration = managed(&door)?;
    let text = text_of(&door, &headers, body).await?;
    let report = configuration.check(&text).await;
    let count = |severity| report.diagnostics.iter().filter(|d| d.severity == severity).count();
    Ok(words::answer(Ok(json!({
        "valid": report.is_good(), "digest": report.digest,
        "errors": count(Severity::Error), "warnings": count(Severity::Warning),
        "diagnostics": report.diagnostics, "not_ready": report.unready,
    }))))
}

async fn versions(State(door): State<Door>) -> Answered {
    let configuration = managed(&door)?;
    let versions = configuration.versions().map_err(|why| refusal::of(&why))?;
    Ok(words::answer(Ok(json!({
        "served": configuration.state().digest, "kept_versions": KEPT_VERSIONS, "versions": versions,
    }))))
}

async fn hash(State(door): State<Door>) -> Response {
    let serving = door.engine.serving();
    words::answer(Ok(json!({"hash": serving.spec.digest, "generation": serving.generation})))
}

async fn status(State(door): State<Door>) -> Answered {
    let configuration = managed(&door)?;
    let state = configuration.state();
    Ok(words::answer(Ok(json!({
        "digest": state.digest, "generation": state.generation, "since_ms": state.since_ms,
        "file": configuration.origin().path(), "last_change": state.last,
        "waiting_for_restart": state.waiting,
    }))))
}

async fn recipes(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let shown: Vec<Value> = mom.spec.recipes.iter().map(|recipe| in_short(&mom.spec, recipe)).collect();
    words::answer(Ok(json!({"recipes": shown})))
}

fn in_short(spec: &Spec, recipe: &Recipe) -> Value {
    let decisions: Vec<Value> = recipe
        .decisions
        .iter()
        .map(|d| {
            let models: Vec<&str> = d.model_refs.iter().map(|m| m.model.as_str()).collect();
            json!({"name": d.name, "priority": d.priority, "algorithm": d.algorithm.kind(), "models": models})
        })
        .collect();
    json!({
        "name": recipe.name, "description": recipe.description, "model_names": names_of(spec, recipe),
        "signals": recipe.signals.len(), "decisions": decisions,
    })
}

/// The model names that lead to a recipe.
fn names_of<'s>(spec: &'s Spec, recipe: &Recipe) -> Vec<&'s String> {
    let auto = spec.global.auto_names.iter().filter(|_| is_first(spec, recipe));
    let entries = spec.entrypoints.iter().filter(|e| e.recipe == recipe.name);
    auto.chain(entries.flat_map(|e| &e.model_names)).collect()
}

fn is_first(spec: &Spec, recipe: &Recipe) -> bool {
    spec.recipes.first().is_some_and(|first| first.name == recipe.name)
}

async fn recipe(State(door): State<Door>, Path(name): Path<String>) -> Answered {
    let document = shown(&door)?;
    let serving = door.engine.serving();
    let spec = &serving.spec;
    let recipe = spec.recipe(&name).ok_or_else(|| absent("recipe", &name))?;
    let routing = match document.get("recipes").and_then(|list| named(list, &name)) {
        Some(listed) => listed.get("routing"),
        None => document.get("routing").filter(|_| is_first(spec, recipe)),
    };
    Ok(words::answer(Ok(json!({
        "name": name, "description": recipe.description, "model_names": names_of(spec, recipe), "routing": routing,
    }))))
}

async fn knowledge_bases(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let bases: Vec<Value> = mom.spec.global.knowledge_bases.iter().map(knowledge_shape).collect();
    words::answer(Ok(json!({"kbs": bases})))
}

async fn knowledge_base(State(door): State<Door>, Path(name): Path<String>) -> Answered {
    let mom = door.engine.serving();
    let found = mom.spec.global.knowledge_bases.iter().find(|base| base.name == name);
    found
        .map(|base| words::answer(Ok(knowledge_shape(base))))
        .ok_or_else(|| absent("knowledge base", &name).into())
}

/// A knowledge base in the contract's shape. Source: contract, Appendix A (`KnowledgeBaseConfig`).
fn knowledge_shape(base: &KnowledgeBase) -> Value {
    let metric = |m: &KbMetric| {
        json!({
            "name": m.name, "type": "group_margin", "positive_group": m.positive, "negative_group": m.negative,
        })
    };
    json!({
        "name": base.name,
        "source": {"path": base.path, "manifest": base.manifest},
        "threshold": base.threshold,
        "label_thresholds": base.label_thresholds.iter().cloned().collect::<BTreeMap<_, _>>(),
        "groups": base.groups.iter().cloned().collect::<BTreeMap<_, _>>(),
        "metrics": base.metrics.iter().map(metric).collect::<Vec<_>>(),
    })
}

fn named<'v>(list: &'v Value, name: &str) -> Option<&'v Value> {
    list.as_array()?.iter().find(|item| item.get("name").and_then(Value::as_str) == Some(name))
}

pub(super) fn absent(what: &str, name: &str) -> Response {
    let shown: String = name.chars().take(80).collect();
    reply::refusal(StatusCode::NOT_FOUND, "not_found", &format!("there is no {what} `{shown}`"))
}

/// What is served as JSON, credentials masked.
fn shown(door: &Door) -> Result<Value, Refused> {
    Ok(document(&managed(door)?.state().text)?.masked().to_json())
}

pub(super) fn document(text: &str) -> Result<Document, Refused> {
    Document::parse(text).map_err(|diagnostics| refusal::of(&Refusal::Rejected(diagnostics)).into())
}

pub(super) fn managed(door: &Door) -> Result<&Arc<Configuration>, Refused> {
    door.configuration.as_ref().ok_or_else(|| {
        words::fault(&Fault::new(Code::NotSupported, "this process does not manage a configuration")).into()
    })
}

/// Who may write: somebody who says what the change is based on, and is no page of another site. A page can be made to
/// reach loopback by a name of its own, but not to forge `Host`.
pub(super) fn writing(door: &Door, headers: &HeaderMap) -> Result<(Arc<Configuration>, Basis), Refused> {
    let configuration = Arc::clone(managed(door)?);
    if !by_loopback(headers) {
        return Err(refusal::foreign_host().into());
    }
    let given = headers.get(IF_MATCH).ok_or_else(refusal::precondition_required)?;
    Ok((configuration, Tags::of(given).0))
}

/// Whether a request names this machine by a loopback name.
pub(super) fn by_loopback(headers: &HeaderMap) -> bool {
    let host =
        headers.get(HOST).and_then(|host| host.to_str().ok()).and_then(|host| host.parse::<Uri>().ok());
    matches!(host.as_ref().and_then(Uri::host), Some("localhost" | "127.0.0.1" | "[::1]"))
}

/// A list of entity tags. Source: RFC 9110 §13.1.1.
struct Tags(Basis);

impl Tags {
    fn of(given: &HeaderValue) -> Self {
        let text = given.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Self(Basis::Any);
        }
        // A weak tag promises less than that the bytes are the same, so that it names none of ours.
        let tag = |tag: &str| tag.trim().strip_prefix('"')?.strip_suffix('"').map(str::to_owned);
        Self(Basis::OneOf(text.split(',').filter_map(tag).collect()))
    }

    fn admit(&self, digest: &Digest) -> bool {
        match &self.0 {
            Basis::Any => true,
            Basis::OneOf(digests) => digests.iter().any(|given| given == digest.as_str()),
        }
    }
}

fn etag(digest: &Digest) -> HeaderMap {
    let tag = HeaderValue::try_from(format!("\"{digest}\"")).ok();
    tag.into_iter().map(|tag| (ETAG, tag)).collect()
}

/// The body as a configuration's text; JSON becomes YAML.
pub(super) async fn text_of(door: &Door, headers: &HeaderMap, body: Body) -> Result<String, Refused> {
    let bytes = body::read(body, &door.limits).await?;
    let json = headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok()).is_some_and(|v| v.contains("json"));
    if !json {
        let text = String::from_utf8(bytes.to_vec());
        return text.map_err(|_| words::fault(&words::invalid("the body is not UTF-8")).into());
    }
    let value: Value =
        serde_json::from_slice(&bytes).map_err(|why| words::fault(&words::invalid(why.to_string())))?;
    Ok(Document::of_json(&value).to_yaml())
}

/// A change comes to its end also when whoever asked for it hangs up: the file and what is served stay one.
pub(super) async fn to_its_end(
    change: impl Future<Output = Result<Arc<reload::State>, Refusal>> + Send + 'static,
) -> Answered {
    let outcome = tokio::spawn(change).await;
    let outcome = outcome
        .map_err(|_| words::fault(&Fault::new(Code::Internal, "the change failed badly; see the log")))?;
    let state = outcome.map_err(|why| refusal::of(&why))?;
    let body = json!({
        "digest": state.digest, "generation": state.generation, "waiting_for_restart": state.waiting,
    });
    Ok(reply::json(StatusCode::OK, etag(&state.digest), body.to_string().into_bytes()))
}
