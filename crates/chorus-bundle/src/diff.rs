//! What changed between two bundles, in words of the policy and not of its bytes.
//!
//! It knows names and keys: things that are found by name are compared by name, whatever their order. **Invariant:** two
//! bundles without a change have the same meaning, and every difference in meaning is a change.

use crate::bundle::Bundle;
use crate::graph::is_fraction;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// What a change is about, the most telling first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// What guards: safety and identity signals, what absence counts as, constraints and data policies.
    Guard,
    /// What a request may spend.
    Bound,
    /// A route: its rule, candidates, algorithm or plugins.
    Decision,
    /// A number that something is compared with.
    Threshold,
    /// Words that a model is given.
    Prompt,
    /// What can be asked about a request.
    Signal,
    /// How evidence is combined.
    Projection,
    /// A logical model.
    Component,
    /// A model identity.
    OperatingPoint,
    /// A file that travels.
    Asset,
    /// Name, version, licence and the like.
    Interface,
    /// What holds for all routes.
    Setting,
}

impl Subject {
    /// The word for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Guard => "guard",
            Self::Bound => "bound",
            Self::Decision => "decision",
            Self::Threshold => "threshold",
            Self::Prompt => "prompt",
            Self::Signal => "signal",
            Self::Projection => "projection",
            Self::Component => "component",
            Self::OperatingPoint => "operating point",
            Self::Asset => "asset",
            Self::Interface => "interface",
            Self::Setting => "setting",
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Change {
    /// What it is about.
    pub subject: Subject,
    /// Where: keys, and names in brackets, such as `routing.decisions[code].priority`.
    pub path: String,
    /// What was there; `None` where it was added.
    pub before: Option<Value>,
    /// What is there now; `None` where it was removed.
    pub after: Option<Value>,
}

/// Every change from one bundle to the other, by subject and path.
#[must_use]
pub fn between(before: &Bundle, after: &Bundle) -> Vec<Change> {
    let mut changes = Vec::new();
    let mom = |bundle: &Bundle| serde_json::to_value(&bundle.mom).unwrap_or_default();
    compare(Some(&mom(before)), Some(&mom(after)), "", &mut changes);
    compare(Some(&before.graph), Some(&after.graph), "", &mut changes);
    let (old, new) = (assets(before), assets(after));
    compare(Some(&old), Some(&new), "assets", &mut changes);
    changes.sort_by(|a, b| (a.subject, &a.path).cmp(&(b.subject, &b.path)));
    changes
}

/// Assets by name: short text as it is, everything else by digest and size.
fn assets(bundle: &Bundle) -> Value {
    const SHOWN: usize = 4096;
    let layers = bundle.manifest.layers.iter().filter_map(|layer| Some((layer.title()?, layer)));
    let shown = layers.map(|(name, layer)| {
        let bytes = bundle.assets.get(name).map(Vec::as_slice).unwrap_or_default();
        let text = std::str::from_utf8(bytes)
            .ok()
            .filter(|text| name.starts_with("prompts/") && text.len() <= SHOWN);
        let value =
            text.map_or_else(|| json!(format!("{}, {} bytes", layer.digest, layer.size)), |text| json!(text));
        json!({ "name": name, "content": value })
    });
    shown.collect()
}

fn compare(before: Option<&Value>, after: Option<&Value>, path: &str, changes: &mut Vec<Change>) {
    match (before, after) {
        (Some(before), Some(after)) if before == after => {}
        (Some(Value::Object(old)), Some(Value::Object(new))) => {
            let keys: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
            for key in keys {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                compare(old.get(key), new.get(key), &path, changes);
            }
        }
        (Some(Value::Array(old)), Some(Value::Array(new))) => lists(old, new, path, changes),
        _ => changes.push(Change {
            subject: subject(path),
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn lists(old: &[Value], new: &[Value], path: &str, changes: &mut Vec<Change>) {
    if let (Some(old), Some(new)) = (by_name(old), by_name(new)) {
        let names: BTreeSet<&String> = old.keys().chain(new.keys()).collect();
        for name in names {
            compare(old.get(name), new.get(name), &format!("{path}[{name}]"), changes);
        }
    } else if old.len() == new.len() && old.iter().chain(new).all(Value::is_object) {
        for (at, (old, new)) in old.iter().zip(new).enumerate() {
            compare(Some(old), Some(new), &format!("{path}[{at}]"), changes);
        }
    } else {
        let (before, after) = (Some(json!(old)), Some(json!(new)));
        changes.push(Change { subject: subject(path), path: path.to_owned(), before, after });
    }
}

/// The items by their names; `None` where some have none, or share one.
fn by_name(items: &[Value]) -> Option<Map<String, Value>> {
    let mut all = Map::new();
    for item in items {
        let name = item.get("name")?.as_str()?;
        if all.insert(name.to_owned(), item.clone()).is_some() {
            return None;
        }
    }
    Some(all)
}

/// What stands at a path.
fn subject(path: &str) -> Subject {
    let has = |words: &[&str]| words.iter().any(|word| path.contains(word));
    let key = path.rsplit('.').next().unwrap_or_default();
    let key = key.split('[').next().unwrap_or_default();
    let guards =
        ["signals.jailbreak", "signals.pii", "signals.role_bindings", "prompt_guard", "classifier.pii"];
    if has(&guards) || ["on_error", "constraints", "locality"].contains(&key) || has(&["data_policy"]) {
        return Subject::Guard;
    }
    if has(&[".bounds", ".budget"]) {
        return Subject::Bound;
    }
    let prompts =
        ["system_prompt", "analysis_template", "synthesis_template", "instructions", "rubric", "prompt"];
    if prompts.contains(&key) || path.starts_with("assets[prompts/") {
        return Subject::Prompt;
    }
    if is_fraction(key) && key != "weight" && !path.starts_with("components") {
        return Subject::Threshold;
    }
    let sections = [
        (".decisions", Subject::Decision),
        (".signals", Subject::Signal),
        (".projections", Subject::Projection),
        ("components", Subject::Component),
        (".modelCards", Subject::Component),
        ("operating_points", Subject::OperatingPoint),
        ("assets", Subject::Asset),
        ("global", Subject::Setting),
        ("defaults", Subject::Setting),
        ("reasoning_families", Subject::Setting),
        ("entrypoints", Subject::Decision),
        ("recipes", Subject::Decision),
    ];
    sections.into_iter().find(|(word, _)| path.contains(word)).map_or(Subject::Interface, |(_, it)| it)
}
