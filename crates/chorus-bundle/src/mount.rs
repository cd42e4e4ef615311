//! A bundle in an environment: the documents that are served, one for each set of places.
//!
//! The graph that is served follows from the bundle alone: its own, an entrypoint for every operating point, and guards
//! that count what is absent as a hit where a point is fail-closed, and thresholds on the safe side where nothing vouches
//! for others. A binding adds deployments and nothing else.
//! **Invariant:** under any binding the served graph is [`graph`] of the bundle, byte for byte.

use crate::binding::{self, Binding, Deployment, whole_file};
use crate::bundle::Bundle;
use crate::calibration;
use crate::graph as text;
use crate::mom::{Mom, OperatingPoint};
use crate::place::{Pins, Places, Seat, place};
use chorus_spec::{Checked, Diagnostic, Document, read_document};
use serde_json::{Map, Value, json};

/// Signals that a fail-closed point counts as hit where they are absent: those that guard.
const GUARDS: [&str; 2] = ["jailbreak", "pii"];

/// One document to serve, and the names that lead to it.
#[derive(Debug, Clone)]
pub struct Mounted {
    /// Operating points that it serves; the first one also serves every other name.
    pub points: Vec<String>,
    /// The document.
    pub document: Document,
    /// The deployments of every component.
    pub places: Places,
}

/// A point that cannot be served, and why: it abstains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Abstention {
    /// The operating point.
    pub point: String,
    /// The reason, for people.
    pub why: String,
}

/// A bundle under a binding.
#[derive(Debug, Clone)]
pub struct Mount {
    /// The documents; at least one. The first one serves the names that are no operating point's.
    pub documents: Vec<Mounted>,
    /// Points that abstain.
    pub abstaining: Vec<Abstention>,
}

/// The names of an operating point: `FAMILY-POINT` and `FAMILY-POINT@VERSION`.
#[must_use]
pub fn names(mom: &Mom, point: &str) -> [String; 2] {
    let identity = mom.identity(point);
    let versioned = format!("{identity}@{}", mom.version);
    [identity, versioned]
}

/// The graph that is served.
#[must_use]
pub fn graph(bundle: &Bundle) -> Value {
    let mut graph = bundle.graph.clone();
    let closed: Vec<&str> = bundle
        .mom
        .operating_points
        .iter()
        .filter(|it| it.constraints.iter().any(|word| word == "fail_closed"))
        .map(|it| it.recipe.as_str())
        .collect();
    if closed.contains(&"default")
        && let Some(routing) = graph.get_mut("routing")
    {
        close(routing);
    }
    for recipe in graph.get_mut("recipes").and_then(Value::as_array_mut).into_iter().flatten() {
        if recipe.get("name").and_then(Value::as_str).is_some_and(|name| closed.contains(&name)) {
            close(recipe);
        }
    }
    calibration::hold(&bundle.mom, &mut graph);
    let taken: Vec<String> = entry_names(&graph);
    let entries = bundle.mom.operating_points.iter().filter_map(|point| {
        let names: Vec<String> =
            names(&bundle.mom, &point.name).into_iter().filter(|name| !taken.contains(name)).collect();
        (!names.is_empty()).then(|| json!({ "model_names": names, "recipe": point.recipe }))
    });
    let entries: Vec<Value> = entries.collect();
    if let (false, Some(fields)) = (entries.is_empty(), graph.as_object_mut()) {
        let all = fields.entry("entrypoints").or_insert_with(|| json!([]));
        if let Some(all) = all.as_array_mut() {
            all.extend(entries);
        }
    }
    graph
}

/// Dotted paths below `global` of a document that decide, and so belong to a bundle.
#[must_use]
pub fn deciding(document: &Value) -> Vec<String> {
    let global = document.get("global");
    global
        .map(|global| text::split_global(global).0)
        .unwrap_or_default()
        .iter()
        .map(|it| it.join("."))
        .collect()
}

fn entry_names(graph: &Value) -> Vec<String> {
    let entries = graph.get("entrypoints").and_then(Value::as_array).into_iter().flatten();
    let names = entries.filter_map(|it| it.get("model_names")?.as_array()).flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Every leaf over a guard's signal that does not say what absence counts as says: a hit.
fn close(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(close),
        Value::Object(fields) => {
            let of = |key: &str| fields.get(key).and_then(Value::as_str);
            let is_guard = of("type").is_some_and(|it| GUARDS.contains(&it)) && of("name").is_some();
            if is_guard && !fields.contains_key("on_error") {
                fields.insert("on_error".to_owned(), json!("match"));
            }
            fields.iter_mut().filter(|(key, _)| *key != "annotations").for_each(|(_, value)| close(value));
        }
        _ => {}
    }
}

/// Mounts a bundle: finds a place for every component at every point.
///
/// # Errors
/// A binding for another bundle; a component that may run nowhere; why a document is none.
pub fn mount(bundle: &Bundle, binding: &Binding, pins: Option<&Pins>) -> Result<Mount, Vec<Diagnostic>> {
    binding::check_bundle(binding, bundle)?;
    let graph = graph(bundle);
    let seats = place(&bundle.mom, binding, None, pins.and_then(|pins| pins.of(None)));
    let homeless: Vec<Diagnostic> = seats
        .iter()
        .filter(|it| it.pool.is_empty())
        .map(|it| whole_file(format!("the component `{}` may run nowhere: {}", it.component, it.why_not())))
        .collect();
    if !homeless.is_empty() {
        return Err(homeless);
    }
    let mut mount =
        Mount { documents: vec![document(&graph, bundle, binding, &seats)?], abstaining: Vec::new() };
    for point in &bundle.mom.operating_points {
        let pinned = pins.map(|pins| pins.of(Some(&point.name)).unwrap_or(&pins.base));
        let seats = place(&bundle.mom, binding, Some(point), pinned);
        let used = used(&graph, point, &bundle.mom);
        let homeless = seats.iter().find(|it| it.pool.is_empty() && used.contains(&it.component));
        if let Some(seat) = homeless {
            let why = format!("`{}` may run nowhere at this point: {}", seat.component, seat.why_not());
            mount.abstaining.push(Abstention { point: point.name.clone(), why });
            continue;
        }
        let made = document(&graph, bundle, binding, &seats)?;
        match mount.documents.iter_mut().find(|it| it.places == made.places) {
            Some(there) => there.points.push(point.name.clone()),
            None => mount.documents.push(Mounted { points: vec![point.name.clone()], ..made }),
        }
    }
    Ok(mount)
}

/// The components that a point's recipe may call, the one that answers what no decision claims among them.
fn used(graph: &Value, point: &OperatingPoint, mom: &Mom) -> Vec<String> {
    let recipes = graph.get("recipes").and_then(Value::as_array).into_iter().flatten();
    let named = recipes.into_iter().find(|it| it.get("name").and_then(Value::as_str) == Some(&point.recipe));
    let recipe = named.or_else(|| graph.get("routing")).map(Value::to_string).unwrap_or_default();
    let is_named = |name: &str| recipe.contains(&Value::from(name).to_string());
    let default = mom.defaults.component.as_deref();
    let all = mom.components.iter().map(|it| it.name.clone());
    all.filter(|name| is_named(name) || default == Some(name)).collect()
}

fn document(
    graph: &Value,
    bundle: &Bundle,
    binding: &Binding,
    seats: &[Seat<'_>],
) -> Result<Mounted, Vec<Diagnostic>> {
    let mut providers = text::providers(&bundle.mom);
    let models = providers.get_mut("models").and_then(Value::as_array_mut);
    for model in models.into_iter().flatten() {
        let name = model.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        let seat = seats.iter().find(|it| it.component == name);
        if let (Some(seat), Some(fields)) = (seat.filter(|it| !it.pool.is_empty()), model.as_object_mut()) {
            deploy(fields, &seat.pool);
            let rules = binding.reliability.iter().find(|(component, _)| *component == name);
            fields.extend(rules.map(|(_, rules)| ("reliability".to_owned(), rules.clone())));
        }
    }
    let places = seats.iter().map(|it| (it.component.clone(), it.chosen())).collect();
    Ok(Mounted { points: Vec::new(), document: text::whole(graph, providers)?, places })
}

/// A model's fields of a pool. What the contract has once a model is that of the first deployment; the others agree.
fn deploy(fields: &mut Map<String, Value>, pool: &[&Deployment]) {
    let backend = |it: &&Deployment| {
        let mut backend = it.backend.clone();
        if let Some(fields) = backend.as_object_mut() {
            fields.entry("name").or_insert_with(|| json!(it.name));
        }
        backend
    };
    fields.insert("backend_refs".to_owned(), pool.iter().map(backend).collect());
    let Some(first) = pool.first() else { return };
    let texts = [("provider_model_id", &first.provider_model_id), ("api_format", &first.api_format)];
    for (key, text) in texts {
        fields.extend(text.as_ref().map(|text| (key.to_owned(), json!(text))));
    }
    for (key, numbers) in [("pricing", &first.price), ("energy", &first.energy)] {
        if !numbers.is_empty() {
            let all: Map<_, _> = numbers.iter().map(|(key, it)| ((*key).to_owned(), json!(it))).collect();
            fields.insert(key.to_owned(), Value::Object(all));
        }
    }
}

/// Mounts a bundle and reads the document that serves the names which are no point's.
///
/// # Errors
/// As [`mount`].
pub fn check(bundle: &Bundle, binding: &Binding) -> Result<Checked, Vec<Diagnostic>> {
    let mount = mount(bundle, binding, None)?;
    let first = mount.documents.first().ok_or_else(|| vec![whole_file("nothing to serve".to_owned())])?;
    Ok(read_document(&first.document))
}
