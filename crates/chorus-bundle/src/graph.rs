//! The graph: what decides, as data. A v0.3 document without providers and listeners, in one form.
//!
//! It knows the contract's sections, and which keys hold a fraction; what the keys mean is the reader's of `chorus-spec`,
//! which reads every graph before it is written and after it has been read. **Invariant:** a graph names components
//! only: no address, no credential, no variable of an environment.

use crate::mom::Mom;
use chorus_spec::{Checked, Diagnostic, Document, Severity, code, read_document};
use serde_json::{Map, Value, json};

/// The version of the contract that a graph follows.
pub const CONTRACT: &str = "v0.3";
/// Sections of a document that decide.
pub const SECTIONS: [&str; 4] = ["routing", "recipes", "entrypoints", "global"];
/// Parts of `global` that decide, as dotted paths; the rest is of the runtime.
const DECIDING: [&[&str]; 3] = [&["router"], &["integrations", "looper"], &["model_catalog"]];
/// Keys that say where something runs or how one gets in; none may stand in a policy.
const OF_BINDING: [&str; 8] = [
    "endpoint",
    "base_url",
    "backend_refs",
    "api_key",
    "api_key_env",
    "access_key",
    "auth_token",
    "verifier_server_url",
];
/// Keys that hold a fraction wherever they stand, so that `0.30` and `0.3` are one text.
const FRACTIONS: [&str; 30] = [
    "threshold",
    "fuzzy_threshold",
    "bm25_threshold",
    "ngram_threshold",
    "weight",
    "gt",
    "gte",
    "lt",
    "lte",
    "match",
    "miss",
    "slope",
    "temperature",
    "score",
    "quality_score",
    "min_score",
    "hopeless_threshold",
    "logprob_weight",
    "margin_weight",
    "cost_quality_tradeoff",
    "quantile",
    "stop_when_certain",
    "nli_contradiction_penalty",
    "stability_weight",
    "switch_margin",
    "max_joules",
    "cluster_similarity_threshold",
    "best_weight",
    "min_score_threshold",
    "prototype_similarity_threshold",
];
/// An address that leads nowhere, for components that are being checked and not called.
const NOWHERE: &str = "unbound:1";

/// Whether a key holds a fraction.
pub(crate) fn is_fraction(key: &str) -> bool {
    FRACTIONS.contains(&key)
}

/// The graph of a policy.
#[must_use]
pub fn of(policy: &Document) -> Value {
    let mut graph = Map::from_iter([("contract".to_owned(), json!(CONTRACT))]);
    let document = policy.to_json();
    for section in SECTIONS {
        if let Some(value) = document.get(section).and_then(|value| settled(section, value)) {
            graph.insert(section.to_owned(), value);
        }
    }
    Value::Object(graph)
}

/// A value in the graph's one form: no key without a value, whole numbers as numbers, fractions as text.
pub(crate) fn settled(key: &str, value: &Value) -> Option<Value> {
    let scalar = |text: String| match text.parse::<f64>() {
        Ok(number) if is_fraction(key) && number.is_finite() => Value::String(number.to_string()),
        _ => unquoted(text),
    };
    Some(match value {
        Value::Null => return None,
        Value::Bool(_) => value.clone(),
        Value::String(text) => scalar(text.clone()),
        Value::Number(number) if is_small(number) && !is_fraction(key) => value.clone(),
        Value::Number(number) => scalar(number.to_string()),
        Value::Array(items) => items.iter().filter_map(|item| settled("", item)).collect(),
        Value::Object(fields) => Value::Object(
            fields.iter().filter_map(|(key, value)| Some((key.clone(), settled(key, value)?))).collect(),
        ),
    })
}

/// Quotes around a whole number or a truth value say nothing: where text is wanted both read the same, and nowhere else
/// has the reader let them pass.
fn unquoted(text: String) -> Value {
    match text.parse::<i64>() {
        Ok(whole) if whole.unsigned_abs() < 1 << 53 && whole.to_string() == text => json!(whole),
        _ if text == "true" || text == "false" => json!(text == "true"),
        _ => Value::String(text),
    }
}

/// Whole, and within what every reader of JSON keeps exactly.
fn is_small(number: &serde_json::Number) -> bool {
    number.as_i64().is_some_and(|whole| whole.unsigned_abs() < 1 << 53)
}

/// The graph as a document of the contract again, with a stand-in behind every component.
///
/// # Errors
/// Why it is none.
pub fn document(graph: &Value, mom: &Mom) -> Result<Document, Vec<Diagnostic>> {
    whole(graph, providers(mom))
}

/// The graph over these providers, as a document of the contract.
pub(crate) fn whole(graph: &Value, providers: Value) -> Result<Document, Vec<Diagnostic>> {
    let mut value = graph.clone();
    if let Value::Object(fields) = &mut value {
        fields.remove("contract");
        fields.insert("version".to_owned(), json!(CONTRACT));
        fields.insert("providers".to_owned(), providers);
    }
    let mut text = String::new();
    plain(&value, &mut text);
    Document::parse(&text)
}

/// What the interface says of models, in the contract's words.
pub(crate) fn providers(mom: &Mom) -> Value {
    let models: Vec<Value> = mom
        .components
        .iter()
        .map(|it| {
            let mut model = json!({ "name": it.name, "backend_refs": [{ "endpoint": NOWHERE }] });
            if let (Some(family), Some(fields)) = (&it.reasoning_family, model.as_object_mut()) {
                fields.insert("reasoning_family".to_owned(), json!(family));
            }
            model
        })
        .collect();
    let mut defaults = Map::new();
    if let Some(component) = &mom.defaults.component {
        defaults.insert("default_model".to_owned(), json!(component));
    }
    if let Some(effort) = &mom.defaults.reasoning_effort {
        defaults.insert("default_reasoning_effort".to_owned(), json!(effort));
    }
    if !mom.reasoning_families.is_empty() {
        defaults.insert("reasoning_families".to_owned(), json!(mom.reasoning_families));
    }
    json!({ "defaults": defaults, "models": models })
}

/// JSON in which texts that the contract's reader may take for a number or a truth value stand bare: it reads bare words
/// as text wherever text is wanted, and quoted ones as nothing else.
fn plain(value: &Value, out: &mut String) {
    match value {
        Value::String(text) if is_bare(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for item in items {
                plain(item, out);
                out.push_str(", ");
            }
            out.push(']');
        }
        Value::Object(fields) => {
            out.push('{');
            for (key, value) in fields {
                out.push_str(&Value::String(key.clone()).to_string());
                out.push_str(": ");
                plain(value, out);
                out.push_str(", ");
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
}

fn is_bare(text: &str) -> bool {
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite)
        && text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
    let word = text.to_ascii_lowercase();
    is_number || ["true", "false", "yes", "no", "on", "off"].contains(&word.as_str())
}

/// Reads a policy against the interface: the problems of the policy, and what was read if there are none.
pub(crate) fn check(policy: &Document, mom: &Mom) -> Checked {
    let mut whole = policy.clone();
    whole.merge(&json!({ "providers": providers(mom) }));
    let mut checked = read_document(&whole);
    checked.diagnostics.extend(misplaced(policy));
    let variables = checked.spec.as_ref().map(chorus_spec::Spec::variables).unwrap_or_default();
    for it in variables {
        let message = format!("`${{{}}}` is of an environment; a policy is the same in all of them", it.name);
        checked.diagnostics.push(found(
            policy,
            "",
            message,
            "write the value out, or set it where the MoM is bound",
        ));
    }
    if policy.masked().to_json() != policy.to_json() {
        checked.diagnostics.push(Diagnostic {
            code: code::LITERAL_SECRET,
            ..found(
                policy,
                "",
                "a credential stands in the policy",
                "credentials belong into the environment",
            )
        });
    }
    if checked.diagnostics.iter().any(|it| it.severity == Severity::Error) {
        checked.spec = None;
    }
    checked
}

/// What a policy may not say: where models run, and how a runtime is set up.
fn misplaced(policy: &Document) -> Vec<Diagnostic> {
    let mut all = Vec::new();
    let value = policy.to_json();
    for key in value.as_object().into_iter().flat_map(Map::keys) {
        if key == "providers" || key == "listeners" {
            let help =
                "models belong into mom.yaml, deployments into binding.yaml, listeners into runtime.yaml";
            all.push(found(policy, key, format!("`{key}` is not part of a policy"), help));
        }
    }
    for path in value.get("global").map(|global| split_global(global).1).unwrap_or_default() {
        let path = format!("global.{}", path.join("."));
        let message = format!("`{path}` decides nothing and is not part of a policy");
        all.push(found(policy, &path, message, "it belongs into runtime.yaml"));
    }
    for section in SECTIONS {
        let mut seen = |path: &str, key: &str| {
            if OF_BINDING.contains(&key) {
                let message = format!("`{key}` says where something runs");
                all.push(found(policy, path, message, "deployments belong into binding.yaml"));
            }
        };
        value.get(section).into_iter().for_each(|it| walk(it, section, &mut seen));
    }
    all
}

fn found(policy: &Document, path: &str, message: impl Into<String>, help: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code::BAD_VALUE,
        message: message.into(),
        help: Some(help.to_owned()),
        place: policy.place_of(path),
        path: path.to_owned(),
    }
}

/// Every key below a value, with its dotted path. What stands below `annotations` is nobody's.
fn walk(value: &Value, path: &str, seen: &mut dyn FnMut(&str, &str)) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields.iter().filter(|(key, _)| *key != "annotations") {
                let path = format!("{path}.{key}");
                seen(&path, key);
                walk(value, &path, seen);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| walk(item, &format!("{path}[{at}]"), seen));
        }
        _ => {}
    }
}

/// A path of keys.
pub(crate) type Keys<'v> = Vec<&'v str>;

/// `global` in two: the paths of what decides, and of what does not.
pub(crate) fn split_global(global: &Value) -> (Vec<Keys<'_>>, Vec<Keys<'_>>) {
    let (mut deciding, mut rest) = (Vec::new(), Vec::new());
    sift(global, &mut Vec::new(), &mut deciding, &mut rest);
    (deciding, rest)
}

fn sift<'v>(value: &'v Value, path: &mut Keys<'v>, deciding: &mut Vec<Keys<'v>>, rest: &mut Vec<Keys<'v>>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        path.push(key);
        // What holds both kinds is looked into.
        let is_mixed = DECIDING.iter().any(|it| it.starts_with(path)) && value.is_object();
        if is_mixed {
            sift(value, path, deciding, rest);
        } else if DECIDING.iter().any(|it| path.starts_with(it)) && !OF_BINDING.contains(&key.as_str()) {
            deciding.push(path.clone());
        } else {
            rest.push(path.clone());
        }
        path.pop();
    }
}
