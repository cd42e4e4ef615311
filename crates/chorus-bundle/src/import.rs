//! A v0.3 file in four: the source of a bundle (interface and policy), a binding, and settings of the runtime.
//!
//! It knows the contract's sections. **Invariant:** the graph of what it hands out is the graph of the file.

use crate::graph::{self, Keys};
use crate::path::Files;
use crate::source::{self, Source};
use chorus_spec::{Diagnostic, Document, Severity};
use serde_json::{Map, Value, json};

/// What a file was split into.
#[derive(Debug, Clone)]
pub struct Imported {
    /// `mom.yaml`, `policy.yaml`, `binding.yaml` and `runtime.yaml`.
    pub files: Files,
    /// The source, read back from those files.
    pub source: Source,
}

/// Why a file cannot be split.
#[derive(Debug, thiserror::Error)]
pub enum ImportFault {
    /// The file itself is wrong.
    #[error("the configuration has errors")]
    Config(Vec<Diagnostic>),
    /// What it says cannot be part of a bundle.
    #[error("what the configuration says cannot travel")]
    Source(Vec<source::Finding>),
    /// The routes would not be the same.
    #[error("the graph of the source is not the one of the configuration")]
    Different,
}

/// Splits a v0.3 file.
///
/// # Errors
/// A file with errors, one that cannot travel, and any difference between its graph and the source's.
pub fn split(config: &str, family: &str) -> Result<Imported, ImportFault> {
    let errors =
        |found: Vec<Diagnostic>| found.into_iter().filter(|it| it.severity == Severity::Error).collect();
    let document = Document::parse(config).map_err(ImportFault::Config)?;
    let checked = chorus_spec::read_document(&document);
    if checked.spec.is_none() {
        return Err(ImportFault::Config(errors(chorus_spec::read(config).diagnostics)));
    }
    let value = document.to_json();
    let (policy, runtime) = parts(&document, &value);
    let yaml = |value: &Value| Document::of_json(value).to_yaml().into_bytes();
    let files = Files::from([
        ("mom.yaml".to_owned(), yaml(&interface(&value, family))),
        ("policy.yaml".to_owned(), policy.to_yaml().into_bytes()),
        ("binding.yaml".to_owned(), yaml(&binding(&value))),
        ("runtime.yaml".to_owned(), runtime.to_yaml().into_bytes()),
    ]);
    let reading = source::read(&files);
    let source = reading.source.ok_or(ImportFault::Source(reading.findings))?;
    if source.graph != graph::of(&policy) {
        return Err(ImportFault::Different);
    }
    Ok(Imported { files, source })
}

/// What decides, and what sets up the runtime: each the document without the rest, its scalars as they were written.
fn parts(document: &Document, value: &Value) -> (Document, Document) {
    let (mut policy, mut runtime) = (document.clone(), document.clone());
    policy.merge(&json!({ "providers": null, "listeners": null }));
    runtime.merge(&json!({ "providers": null, "routing": null, "recipes": null, "entrypoints": null }));
    if let Some(global) = value.get("global") {
        let (deciding, rest) = graph::split_global(global);
        policy.merge(&json!({ "global": without(&rest) }));
        runtime.merge(&json!({ "global": without(&deciding) }));
    }
    (policy, runtime)
}

/// A patch that takes the paths away.
fn without(paths: &[Keys<'_>]) -> Value {
    let mut patch = Value::Object(Map::new());
    for path in paths {
        let mut at = &mut patch;
        for key in path {
            if !at.is_object() {
                *at = Value::Object(Map::new());
            }
            let Value::Object(fields) = at else { break };
            at = fields.entry(*key).or_insert(Value::Null);
        }
    }
    patch
}

fn models(value: &Value) -> Vec<&Value> {
    value.pointer("/providers/models").and_then(Value::as_array).into_iter().flatten().collect()
}

/// The interface that a v0.3 file implies; what it does not say is left for its author.
fn interface(value: &Value, family: &str) -> Value {
    let cards: Vec<&Value> =
        value.pointer("/routing/modelCards").and_then(Value::as_array).into_iter().flatten().collect();
    let component = |model: &Value| {
        let card = cards.iter().find(|card| card.get("name") == model.get("name"));
        let of_card = |key: &str| card.and_then(|card| card.get(key)).cloned();
        let mut it = Map::new();
        let fields = [
            ("name", model.get("name").cloned()),
            ("kind", Some(json!("generator"))),
            ("description", of_card("description")),
            ("context_tokens", of_card("context_window_size").filter(|size| size.as_u64() > Some(0))),
            ("reasoning_family", model.get("reasoning_family").cloned()),
        ];
        it.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        Value::Object(it)
    };
    let components: Vec<Value> = models(value).into_iter().map(component).collect();
    let default =
        |key: &str| value.pointer(&format!("/providers/defaults/{key}")).cloned().unwrap_or_default();
    json!({
        "format": crate::mom::FORMAT,
        "family": family,
        "version": "0.1.0",
        "licence": "NOASSERTION",
        "defaults": { "component": default("default_model"), "reasoning_effort": default("default_reasoning_effort") },
        "reasoning_families": default("reasoning_families"),
        "components": components,
    })
}

/// The deployments of a v0.3 file.
fn binding(value: &Value) -> Value {
    let mut components = Map::new();
    for model in models(value) {
        let name = model.get("name").and_then(Value::as_str).unwrap_or_default();
        let backends = model.get("backend_refs").and_then(Value::as_array).into_iter().flatten();
        let deployment = |(at, backend): (usize, &Value)| {
            let name = backend
                .get("name")
                .and_then(Value::as_str)
                .map_or_else(|| format!("backend-{at}"), str::to_owned);
            let is_local = backend.get("type").and_then(Value::as_str) == Some("local");
            let trust = if is_local { "process" } else { "public" };
            let mut it = json!({ "name": name, "trust": trust, "backend": backend });
            if let Value::Object(fields) = &mut it {
                for key in ["provider_model_id", "api_format", "energy"] {
                    fields.extend(model.get(key).map(|value| (key.to_owned(), value.clone())));
                }
                fields.extend(price(model).map(|value| ("price".to_owned(), value)));
            }
            it
        };
        let deployments: Vec<Value> = backends.enumerate().map(deployment).collect();
        let mut component = json!({ "deployments": deployments });
        if let (Value::Object(fields), Some(rules)) = (&mut component, model.get("reliability")) {
            fields.insert("reliability".to_owned(), rules.clone());
        }
        components.insert(name.to_owned(), component);
    }
    json!({ "format": crate::binding::FORMAT, "components": components })
}

/// The prices that a binding has a word for.
fn price(model: &Value) -> Option<Value> {
    let mut price = model.get("pricing")?.clone();
    let fields = price.as_object_mut()?;
    fields.retain(|key, _| {
        ["prompt_per_1m", "completion_per_1m", "cached_input_per_1m"].contains(&key.as_str())
    });
    (!fields.is_empty()).then_some(price)
}
