//! `GET /info/models`, `/info/classifier`, `/startup-status`, `/metrics/classification`: what this process has loaded, what
//! it can say of a request, and what it has said so far.

use super::endpoint::{Endpoint, Route};
use super::words;
use crate::door::Door;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use chorus_engine::classify;
use chorus_engine::tally::FamilyTally;
use chorus_spec::{Endpoint as Backend, ModelId, Spec};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What is loaded.
pub(super) fn routes() -> Vec<Route> {
    let read = |path, does| Endpoint::new("GET", path, "config.read", does);
    vec![
        Route::new(
            read("/info/models", "models of this process, and where each public model is called"),
            get(models),
        ),
        Route::new(
            read("/info/classifier", "the families of signals, with cost and thresholds"),
            get(classifier),
        ),
        Route::new(
            Endpoint::new(
                "GET",
                "/startup-status",
                "ready.read",
                "whether it serves, and what it has loaded for that",
            ),
            get(startup),
        ),
        Route::new(
            Endpoint::new(
                "GET",
                "/metrics/classification",
                "metrics.read",
                "what signals came to in live requests, by family, since this configuration is served",
            ),
            get(tally),
        ),
    ]
}

async fn models(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let encoder = mom.classifiers.encoder();
    let encoder = encoder.map(|(digest, dimension)| json!({"digest": digest, "dimension": dimension}));
    let body = json!({
        "encoder": encoder,
        "heads": classify::heads(),
        "local": local_models(&mom.spec),
        "models": mom.spec.models.keys().map(ModelId::as_str).collect::<Vec<_>>(),
    });
    words::answer(Ok(body))
}

/// Models that run in this process, by the store's name.
fn local_models(spec: &Spec) -> Vec<&str> {
    let backends = spec.models.values().flat_map(|model| &model.backends);
    let mut names: Vec<&str> = backends
        .filter_map(|backend| match &backend.endpoint {
            Backend::Local { model } => Some(model.as_str()),
            Backend::Http { .. } => None,
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// By the time that this plane answers, models are loaded; before, a connection is refused.
async fn startup(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let phase = if door.is_ready() { "ready" } else { "starting" };
    let encoder = mom.classifiers.encoder().map(|(digest, _)| digest);
    words::answer(Ok(json!({
        "phase": phase, "ready": door.is_ready(), "generation": mom.generation, "digest": mom.spec.digest,
        "recipes": mom.spec.recipes.len(), "encoder": encoder, "local": local_models(&mom.spec),
    })))
}

async fn tally(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let mut families = BTreeMap::new();
    mom.recipes.iter().for_each(|recipe| recipe.tally(&mut families));
    let families: BTreeMap<String, FamilyTally> =
        families.into_iter().map(|(family, tally)| (family.to_string(), tally)).collect();
    words::answer(Ok(json!({ "generation": mom.generation, "families": families })))
}

async fn classifier(State(door): State<Door>) -> Response {
    let mom = door.engine.serving();
    let global = &mom.spec.global;
    let families: Vec<Value> = classify::families()
        .iter()
        .map(|doc| {
            json!({
                "family": doc.family, "measures": doc.measures, "inputs": doc.inputs, "cost": doc.cost,
                "fails_when": doc.fails_when,
            })
        })
        .collect();
    words::answer(Ok(json!({
        "families": families,
        "thresholds": {
            "domain": global.domain_threshold, "jailbreak": global.prompt_guard_threshold,
            "pii": global.pii_threshold, "fact_check": global.fact_check_threshold,
            "user_feedback": global.feedback_threshold,
        },
    })))
}
