//! A binding: where each component of a bundle may run, in one environment.
//!
//! Its schema has no key for a policy, so that it cannot change one. **Invariant:** whatever a binding says, the graph
//! that is served is the bundle's.

use crate::bundle::Bundle;
use crate::graph;
use crate::mom::{Decimal, Mom};
use crate::source::{At, Page};
use chorus_spec::{Checked, Diagnostic, Document, Place, Severity, code, read_document};
use serde_json::{Map, Value, json};

/// The format that is read.
pub const FORMAT: u64 = 1;
const TRUST: [&str; 3] = ["process", "private", "public"];
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
    let mut components = Vec::new();
    for (name, at) in root.entries("components") {
        if !mom.components.iter().any(|it| it.name == name) {
            at.error(code::UNKNOWN_REFERENCE, format!("the bundle has no component `{name}`"), None);
        }
        at.only_or(&["deployments"], &policy_key);
        at.needed("deployments");
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
    Some(Binding { bundle, components })
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
        "backend",
    ];
    at.only_or(&known, &policy_key);
    let decimals = |key: &str, keys: &'static [&'static str]| {
        let Some(at) = at.get(key) else { return Vec::new() };
        at.only(keys);
        keys.iter().filter_map(|key| Some((*key, at.decimal(key)?))).collect()
    };
    Some(Deployment {
        name,
        preference: at.whole("preference", 0).unwrap_or(0),
        region: at.text("region"),
        trust: at.word("trust", &TRUST).unwrap_or_else(|| "public".to_owned()),
        accelerator: at.text("accelerator"),
        provider_model_id: at.text("provider_model_id"),
        api_format: at.word("api_format", &["openai", "anthropic"]),
        price: decimals("price", &PRICES),
        energy: decimals("energy", &ENERGIES),
        backend: at.needed("backend")?.value().clone(),
    })
}

/// The graph over the deployments of a binding: a whole document of the contract, to be served.
///
/// A component without a deployment is its fallback's deployments. Prices, energy, dialect and upstream name are those of
/// the deployment that is preferred, since the contract has one of each a model.
///
/// # Errors
/// A binding for another bundle; why the whole is no document.
pub fn mount(bundle: &Bundle, binding: &Binding) -> Result<Document, Vec<Diagnostic>> {
    if let Some(other) = binding.bundle.as_ref().filter(|digest| **digest != bundle.digest) {
        return Err(vec![for_another(other, &bundle.digest)]);
    }
    let mom = &bundle.mom;
    let mut providers = graph::providers(mom);
    let models = providers.get_mut("models").and_then(Value::as_array_mut);
    for model in models.into_iter().flatten() {
        let name = model.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let deployments = deployments(&name, mom, binding);
        let Some(fields) = model.as_object_mut() else { continue };
        fields.insert("backend_refs".to_owned(), deployments.iter().map(|it| it.backend.clone()).collect());
        if let Some(first) = deployments.first() {
            let texts = [("provider_model_id", &first.provider_model_id), ("api_format", &first.api_format)];
            for (key, text) in texts {
                fields.extend(text.as_ref().map(|text| (key.to_owned(), json!(text))));
            }
            for (key, numbers) in [("pricing", &first.price), ("energy", &first.energy)] {
                if !numbers.is_empty() {
                    let all: Map<_, _> =
                        numbers.iter().map(|(key, it)| ((*key).to_owned(), json!(it))).collect();
                    fields.insert(key.to_owned(), Value::Object(all));
                }
            }
        }
    }
    graph::whole(&bundle.graph, providers)
}

fn for_another(wanted: &str, found: &str) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        code: code::BAD_VALUE,
        message: format!("the binding is for {wanted}, and this bundle is {found}"),
        help: None,
        place: Place { line: 1, column: 1 },
        path: "bundle".to_owned(),
    }
}

/// The deployments of a component, or of the nearest stand-in that has any.
fn deployments<'b>(name: &str, mom: &Mom, binding: &'b Binding) -> &'b [Deployment] {
    let mut name = name;
    // Fallbacks may lead in a circle; as many steps as there are components reach every one of them.
    for _ in 0..=mom.components.len() {
        let bound = binding.components.iter().find(|(other, all)| other == name && !all.is_empty());
        if let Some((_, all)) = bound {
            return all;
        }
        let component = mom.components.iter().find(|it| it.name == name);
        match component.and_then(|it| it.fallback.as_deref()) {
            Some(other) => name = other,
            None => break,
        }
    }
    &[]
}

/// Mounts a graph and reads the whole.
///
/// # Errors
/// As [`mount`].
pub fn check(bundle: &Bundle, binding: &Binding) -> Result<Checked, Vec<Diagnostic>> {
    Ok(read_document(&mount(bundle, binding)?))
}
