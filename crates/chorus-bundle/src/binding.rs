//! A binding: where each component of a bundle may run, in one environment.
//!
//! Its schema has no key for a policy, so that it cannot change one. **Invariant:** whatever a binding says, the graph
//! that is served is the bundle's.

use crate::bundle::Bundle;
use crate::mom::{Decimal, Mom};
use crate::source::{At, Page};
use chorus_spec::{Diagnostic, Digest, Document, Place, Severity, code};
use serde_json::{Value, json};

/// The format that is read.
pub const FORMAT: u64 = 1;
const TRUST: [&str; 3] = ["process", "private", "public"];
/// How calls to a component may be balanced, tried again and watched. `fallback` would let another model answer, which is
/// the bundle's to say.
const RELIABILITY: [&str; 11] = [
    "lb_policy",
    "retry_count",
    "retry_on",
    "retry_budget_percent",
    "consecutive_5xx",
    "base_ejection_time",
    "max_ejection_percent",
    "health_check_path",
    "health_check_interval",
    "health_check_timeout",
    "hedge_after_percentile",
];
/// Keys of a source that somebody may try here. Each would change what the bundle promises.
const OF_POLICY: [&str; 32] = [
    "routing",
    "recipes",
    "entrypoints",
    "global",
    "signals",
    "projections",
    "decisions",
    "rules",
    "modelRefs",
    "algorithm",
    "plugins",
    "strategy",
    "priority",
    "threshold",
    "on_error",
    "budget",
    "bounds",
    "max_calls",
    "max_tokens",
    "max_usd",
    "max_time_ms",
    "max_joules",
    "constraints",
    "operating_points",
    "objective",
    "preferences",
    "fallback",
    "capabilities",
    "locality",
    "data_policy",
    "context_tokens",
    "defaults",
];

/// A checked binding.
#[derive(Debug, Clone, PartialEq)]
pub struct Binding {
    /// The one bundle that it is for, where it says so.
    pub bundle: Option<String>,
    /// Deployments by component, in order of preference.
    pub components: Vec<(String, Vec<Deployment>)>,
    /// How calls to a component are balanced, tried again and watched, where it says so: the contract's `reliability`
    /// without what would let another model answer.
    pub reliability: Vec<(String, Value)>,
}

/// A place where a component may run.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// Its name within the component.
    pub name: String,
    /// Lower is tried first.
    pub preference: u64,
    /// Where it is, such as `eu-west-1`.
    pub region: Option<String>,
    /// Whose hands the texts are in: `process`, `private` (the operator's) or `public`.
    pub trust: String,
    /// What it computes on.
    pub accelerator: Option<String>,
    /// The model's name there.
    pub provider_model_id: Option<String>,
    /// Dialect: `openai` or `anthropic`.
    pub api_format: Option<String>,
    /// Dollars for a million tokens, by the contract's words.
    pub price: Vec<(&'static str, Decimal)>,
    /// Joules for a thousand tokens, by the contract's words.
    pub energy: Vec<(&'static str, Decimal)>,
    /// Milliseconds to a whole answer, as measured by whoever wrote the binding.
    pub latency_ms: Option<u64>,
    /// Longest time that the texts are kept there, in days; unknown when absent.
    pub retention_days: Option<u64>,
    /// Whether models are trained on the texts there; unknown when absent.
    pub training: Option<bool>,
    /// How it is called: an item of the contract's `backend_refs`.
    pub backend: Value,
}

/// Reads a binding against the interface of its bundle.
///
/// # Errors
/// Everything that is wrong with it.
pub fn read(text: &str, mom: &Mom) -> Result<Binding, Vec<Diagnostic>> {
    let page = Page::open(text)?;
    let binding = binding(&page.root(), mom);
    let found = page.into_found();
    binding.filter(|_| found.is_empty()).ok_or(found)
}

/// Why a key cannot stand here, if it is one of a policy.
fn policy_key(key: &str) -> Option<String> {
    let message =
        || format!("`{key}` is of the bundle: a binding says where components run and changes no policy");
    OF_POLICY.contains(&key).then(message)
}

fn binding(root: &At<'_>, mom: &Mom) -> Option<Binding> {
    root.only_or(&["format", "bundle", "components"], &policy_key);
    root.needed("format");
    if root.whole("format", 1).is_some_and(|format| format > FORMAT)
        && let Some(at) = root.get("format")
    {
        at.error(code::BAD_VALUE, "this format is newer than this version reads", None);
    }
    let bundle = root.text("bundle");
    if let (Some(at), Some(digest)) = (root.get("bundle"), &bundle)
        && !crate::oci::is_digest(digest)
    {
        at.error(code::BAD_VALUE, format!("`{digest}` is not a digest"), None);
    }
    let (mut components, mut reliability) = (Vec::new(), Vec::new());
    for (name, at) in root.entries("components") {
        if !mom.components.iter().any(|it| it.name == name) {
            at.error(code::UNKNOWN_REFERENCE, format!("the bundle has no component `{name}`"), None);
        }
        at.only_or(&["deployments", "reliability"], &policy_key);
        at.needed("deployments");
        if let Some(rules) = at.get("reliability") {
            rules.only_or(&RELIABILITY, &policy_key);
            reliability.push((name.to_owned(), rules.value().clone()));
        }
        let named = at.named("deployments", "deployment");
        let mut all: Vec<Deployment> =
            named.into_iter().filter_map(|(name, at)| deployment(name, &at)).collect();
        all.sort_by(|a, b| (a.preference, &a.name).cmp(&(b.preference, &b.name)));
        components.push((name.to_owned(), all));
    }
    for it in &mom.components {
        let is_bound = components.iter().any(|(name, all)| *name == it.name && !all.is_empty());
        if !is_bound && it.fallback.is_none() {
            let message = format!("the component `{}` has neither a deployment nor a fallback", it.name);
            root.error(code::MISSING_KEY, message, None);
        }
    }
    Some(Binding { bundle, components, reliability })
}

fn deployment(name: String, at: &At<'_>) -> Option<Deployment> {
    const PRICES: [&str; 3] = ["prompt_per_1m", "completion_per_1m", "cached_input_per_1m"];
    const ENERGIES: [&str; 2] = ["joules_per_1k_prompt", "joules_per_1k_completion"];
    let known = [
        "name",
        "preference",
        "region",
        "trust",
        "accelerator",
        "provider_model_id",
        "api_format",
        "price",
        "energy",
        "latency_ms",
        "retention_days",
        "training",
        "backend",
    ];
    at.only_or(&known, &policy_key);
    let decimals = |key: &str, keys: &'static [&'static str]| {
        let Some(at) = at.get(key) else { return Vec::new() };
        at.only(keys);
        keys.iter().filter_map(|key| Some((*key, at.decimal(key)?))).collect()
    };
    let trust = at.word("trust", &TRUST).unwrap_or_else(|| "public".to_owned());
    let backend = at.needed("backend")?.value().clone();
    if trust == "process"
        && local_model(&backend).is_none()
        && let Some(at) = at.get("trust")
    {
        let help = "write `private` for a server of the operator's";
        at.error(code::BAD_VALUE, "only a backend of `type: local` runs in this process", Some(help));
    }
    Some(Deployment {
        name,
        preference: at.whole("preference", 0).unwrap_or(0),
        region: at.text("region"),
        trust,
        accelerator: at.text("accelerator"),
        provider_model_id: at.text("provider_model_id"),
        api_format: at.word("api_format", &["openai", "anthropic"]),
        price: decimals("price", &PRICES),
        energy: decimals("energy", &ENERGIES),
        latency_ms: at.whole("latency_ms", 1),
        retention_days: at.whole("retention_days", 0),
        training: at.flag("training"),
        backend,
    })
}

/// The model that a backend runs in this process, if it does.
#[must_use]
pub fn local_model(backend: &Value) -> Option<&str> {
    let is_local = backend.get("type").and_then(Value::as_str) == Some("local");
    backend.get("model").and_then(Value::as_str).filter(|_| is_local)
}

/// The text of a binding that runs components in the engine's process: those whose weights it knows by name.
#[must_use]
pub fn embedded(mom: &Mom, knows: &dyn Fn(&str) -> bool) -> String {
    let here = mom.components.iter().filter_map(|it| {
        let model = it.weights.as_ref().map(|it| it.reference.as_str()).filter(|model| knows(model))?;
        let backend = json!({ "type": "local", "model": model });
        let deployment = json!({ "name": "in-process", "trust": "process", "backend": backend });
        Some((it.name.clone(), json!({ "deployments": [deployment] })))
    });
    let components: serde_json::Map<String, Value> = here.collect();
    json!({ "format": FORMAT, "components": components }).to_string()
}

/// The digest of what a binding says: comments, the order of keys and literal credentials have no part in it.
///
/// # Errors
/// A text that is no YAML, or has no canonical form.
pub fn digest(text: &str) -> Result<Digest, Vec<Diagnostic>> {
    let document = Document::parse(text)?.masked();
    let bytes = crate::canonical::write(&document.to_json());
    bytes.map(|bytes| Digest::of(&bytes)).map_err(|fault| vec![whole_file(fault.to_string())])
}

/// Whether the binding is for this bundle.
///
/// # Errors
/// It names another one.
pub fn check_bundle(binding: &Binding, bundle: &Bundle) -> Result<(), Vec<Diagnostic>> {
    let other = binding.bundle.as_ref().filter(|digest| **digest != bundle.digest);
    let message = |other| format!("the binding is for {other}, and this bundle is {}", bundle.digest);
    other.map_or(Ok(()), |other| {
        Err(vec![Diagnostic { path: "bundle".to_owned(), ..whole_file(message(other)) }])
    })
}

/// A problem of the file as a whole.
pub(crate) fn whole_file(message: String) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code::BAD_VALUE,
        message,
        help: None,
        place: Place { line: 1, column: 1 },
        path: String::new(),
    }
}
