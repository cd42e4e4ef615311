//! `/config/router/recipes/…` and `/config/kbs/…`, written one at a time: a part of the configuration takes the place of
//! the one of its name, and the whole goes the way of every other change.
//!
//! It knows where recipes and knowledge bases stand in a file, not what they hold: the reader of the file says that.
//! Source: contract §4.2.

use super::config::{absent, document, managed, text_of, to_its_end, writing};
use super::endpoint::{Endpoint, Field, Route};
use super::words::{self, Answered};
use crate::door::Door;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::routing::{delete, post, put};
use chorus_engine::reload::Refusal;
use chorus_spec::{DEFAULT_RECIPE, Document, Severity};
use http::HeaderMap;
use serde_json::json;

/// Where the file keeps recipes, beside the first one, whose routing stands at the root.
const RECIPES: &[&str] = &["recipes"];
/// Where the file keeps knowledge bases of its own.
const BASES: &[&str] = &["global", "model_catalog", "kbs"];

const RECIPE: &[Field] = &[
    Field::new("name", "string", "its name; the path's where there is one"),
    Field::new("description", "string", "for people"),
    Field::needed("routing", "object", "strategy, signals, projections, decisions"),
];
const BASE: &[Field] = &[
    Field::needed("name", "string", "its name"),
    Field::needed("source", "object", "`path` and `manifest` of its exemplars"),
    Field::new("threshold", "number", "least similarity of a label"),
    Field::new("groups", "object", "labels by group"),
    Field::new("metrics", "array", "margins between groups"),
];

/// What can be written one at a time.
pub(super) fn routes() -> Vec<Route> {
    let write = |method, path, does| Endpoint::new(method, path, "config.write", does).conditional();
    let does = "every problem of the configuration as it would be with this recipe; nothing changes";
    let check = Endpoint::new("POST", "/config/router/recipes/validate", "config.write", does).taking(RECIPE);
    vec![
        Route::new(check, post(validate_recipe)),
        Route::new(
            write(
                "PUT",
                "/config/router/recipes/{name}",
                "serves this recipe in the place of the one of its name",
            )
            .taking(RECIPE),
            put(put_recipe),
        ),
        Route::new(
            write("DELETE", "/config/router/recipes/{name}", "serves the configuration without this recipe"),
            delete(delete_recipe),
        ),
        Route::new(
            write("POST", "/config/kbs", "serves the configuration with a new knowledge base").taking(BASE),
            post(post_base),
        ),
        Route::new(
            write(
                "PUT",
                "/config/kbs/{name}",
                "serves this knowledge base in the place of the one of its name",
            )
            .taking(BASE),
            put(put_base),
        ),
        Route::new(
            write("DELETE", "/config/kbs/{name}", "serves the configuration without this knowledge base"),
            delete(delete_base),
        ),
    ]
}

async fn validate_recipe(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let configuration = managed(&door)?;
    let recipe = part(&door, &headers, body, None).await?;
    let mut whole = document(&configuration.state().text)?;
    put_recipe_into(&mut whole, &recipe);
    let report = configuration.check(&whole.to_yaml()).await;
    let count = |severity| report.diagnostics.iter().filter(|d| d.severity == severity).count();
    Ok(words::answer(Ok(json!({
        "valid": report.is_good(),
        "errors": count(Severity::Error), "warnings": count(Severity::Warning),
        "diagnostics": report.diagnostics, "not_ready": report.unready,
    }))))
}

async fn put_recipe(
    State(door): State<Door>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    let recipe = part(&door, &headers, body, Some(&name)).await?;
    changed(&door, &headers, move |whole| {
        put_recipe_into(whole, &recipe);
        true
    })
    .await
}

async fn delete_recipe(State(door): State<Door>, Path(name): Path<String>, headers: HeaderMap) -> Answered {
    if !served(&door, &headers)?.has_item(RECIPES, &name) {
        return Err(absent("recipe under `recipes`", &name).into());
    }
    changed(&door, &headers, move |whole| whole.remove_item(RECIPES, &name)).await
}

async fn post_base(State(door): State<Door>, headers: HeaderMap, body: Body) -> Answered {
    let base = part(&door, &headers, body, None).await?;
    let name = base.name.clone();
    if served(&door, &headers)?.has_item(BASES, &name) {
        let text = format!("there is a knowledge base `{name}` already; PUT /config/kbs/{name} replaces it");
        return Err(words::fault(&words::invalid(text).at("name")).into());
    }
    changed(&door, &headers, move |whole| {
        whole.put_item(BASES, &name, &base.value);
        true
    })
    .await
}

async fn put_base(
    State(door): State<Door>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Body,
) -> Answered {
    let base = part(&door, &headers, body, Some(&name)).await?;
    changed(&door, &headers, move |whole| {
        whole.put_item(BASES, &name, &base.value);
        true
    })
    .await
}

async fn delete_base(State(door): State<Door>, Path(name): Path<String>, headers: HeaderMap) -> Answered {
    if !served(&door, &headers)?.has_item(BASES, &name) {
        return Err(absent("knowledge base of the file's own", &name).into());
    }
    changed(&door, &headers, move |whole| whole.remove_item(BASES, &name)).await
}

/// What is served, for somebody who may change it.
fn served(door: &Door, headers: &HeaderMap) -> Result<Document, words::Refused> {
    let (configuration, _) = writing(door, headers)?;
    document(&configuration.state().text)
}

/// One part of the configuration, as it was sent.
struct Part {
    name: String,
    value: Document,
}

/// The body as a part: its name is the path's, or stands in it.
async fn part(
    door: &Door,
    headers: &HeaderMap,
    body: Body,
    path: Option<&str>,
) -> Result<Part, words::Refused> {
    let mut value = document(&text_of(door, headers, body).await?)?;
    let invalid = |text: &str| words::fault(&words::invalid(text).at("name"));
    let shown = value.to_json();
    if !shown.is_object() {
        return Err(words::fault(&words::invalid("the body is not a mapping")).into());
    }
    let own = shown.get("name").and_then(|name| name.as_str()).map(str::to_owned);
    let name = match (path, own) {
        (Some(path), Some(own)) if path != own => {
            return Err(invalid("the body's `name` is not the one of the path").into());
        }
        (Some(path), _) => path.to_owned(),
        (None, Some(own)) => own,
        (None, None) => return Err(invalid("the body has no `name`").into()),
    };
    value.put(&["name"], &Document::of_json(&json!(name)));
    Ok(Part { name, value })
}

/// The first recipe's routing stands at the root unless it is listed; every other recipe stands in the list.
fn put_recipe_into(whole: &mut Document, recipe: &Part) {
    if recipe.name == DEFAULT_RECIPE && !whole.has_item(RECIPES, &recipe.name) {
        let empty = || Document::of_json(&json!({}));
        whole.put(&["routing"], &recipe.value.part(&["routing"]).unwrap_or_else(empty));
    } else {
        whole.put_item(RECIPES, &recipe.name, &recipe.value);
    }
}

/// Serves the configuration with that change; `change` says whether it found what it was to change.
async fn changed(
    door: &Door,
    headers: &HeaderMap,
    change: impl FnOnce(&mut Document) -> bool + Send + 'static,
) -> Answered {
    let (configuration, basis) = writing(door, headers)?;
    let edit = move |whole: &mut Document| if change(whole) { Ok(()) } else { Err(Refusal::FileDiffers) };
    to_its_end(async move { configuration.edit_document(&basis, edit).await }).await
}
