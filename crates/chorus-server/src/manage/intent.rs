//! `POST /api/v1/classify/intent`: the subject of a request, and the decision that it reaches.
//!
//! It walks the way of the evaluation endpoint, so that a classified request and a routed one agree (case D01).

use super::endpoint::Field;
use super::words::{self, Answered};
use crate::body;
use crate::door::Door;
use crate::eval_shape::{Buckets, buckets, errors_of, failure, leaves, request_of};
use axum::body::Body;
use axum::extract::State;
use chorus_engine::evaluate::evaluate;
use chorus_engine::{Evaluation, Fault, Mom};
use chorus_policy::Observation;
use chorus_spec::{Family, SignalKey};
use chorus_wire::{ChatRequest, RawObject, RequestLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Fields of the body.
pub(super) const FIELDS: &[Field] = &[
    Field::new("text", "string", "one user message; this or `messages`"),
    Field::new("messages", "array", "a conversation, as in a chat request"),
    Field::new("model", "string", "the name asked for; the first auto name by default"),
    Field::new("options", "object", "`return_probabilities`: one for each subject"),
];

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Options {
    return_probabilities: bool,
    confidence_threshold: Option<f64>,
}

/// The subject, and the decision.
#[derive(Debug, Serialize)]
pub(super) struct IntentAnswer {
    classification: Classification,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<BTreeMap<String, f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    recommended_model: Option<String>,
    routing_decision: String,
    matched_signals: Buckets,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision_result: Option<DecisionShape>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    signal_errors: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct Classification {
    /// Empty when no subject is known.
    category: String,
    confidence: f64,
    processing_time_ms: u64,
}

#[derive(Debug, Serialize)]
struct DecisionShape {
    decision_name: String,
    confidence: f64,
    matched_rules: Vec<String>,
}

/// The handler.
pub(super) async fn intent(State(door): State<Door>, body: Body) -> Answered {
    let bytes = body::read(body, &door.limits).await?;
    Ok(words::answer(intent_of(&door.engine.serving(), &door.limits.request, &bytes).await))
}

/// The answer to a body as the evaluation endpoint takes it.
pub(super) async fn intent_of(
    mom: &Mom,
    limits: &RequestLimits,
    bytes: &[u8],
) -> Result<IntentAnswer, Fault> {
    let started = Instant::now();
    let invalid = |why: String| words::invalid(why).at("options");
    let options = RawObject::parse(bytes).map_err(|why| words::invalid(why.to_string()))?;
    let options: Option<Options> = options.read("options").map_err(|why| invalid(why.to_string()))?;
    let options = options.unwrap_or_default();
    let auto = mom.spec.global.auto_names.first().cloned().unwrap_or_default();
    let (request, _) = request_of(bytes, &auto, limits)?;
    let probabilities = subjects(mom, &request).await?;
    let evaluation = evaluate(mom, request).await?;
    let mut errors = errors_of(&evaluation);
    let probabilities = probabilities.unwrap_or_else(|why| {
        errors.entry("domain:*".to_owned()).or_insert(why);
        BTreeMap::new()
    });
    let (category, confidence) = subject(&evaluation, &probabilities);
    let least = options.confidence_threshold.unwrap_or_default();
    let category = if confidence >= least { category } else { String::new() };
    Ok(IntentAnswer {
        classification: Classification { category, confidence, processing_time_ms: words::millis(started) },
        probabilities: (options.return_probabilities && !probabilities.is_empty()).then_some(probabilities),
        recommended_model: evaluation.selected.clone().or_else(|| evaluation.recommended.first().cloned()),
        routing_decision: evaluation.decision.clone().unwrap_or_default(),
        matched_signals: buckets(matched(&evaluation).map(|(key, _)| key)),
        decision_result: decision(&evaluation),
        signal_errors: errors,
    })
}

/// The probability of every subject, or why there is none.
async fn subjects(mom: &Mom, request: &ChatRequest) -> Result<Result<BTreeMap<String, f64>, String>, Fault> {
    let evidence = mom.classifiers.observe(&[Family::Domain], request.clone()).await?;
    let mut probabilities = BTreeMap::new();
    for (key, seen) in evidence.iter() {
        match seen {
            Observation::Matched { confidence, raw } => {
                probabilities.insert(key.name().to_owned(), raw.unwrap_or(*confidence));
            }
            Observation::Unmatched { raw } => {
                probabilities.extend(raw.map(|p| (key.name().to_owned(), p)));
            }
            Observation::Absent(_) => return Ok(Err(failure(seen).unwrap_or_default())),
        }
    }
    Ok(Ok(probabilities))
}

/// The policy's own domain where one matched, else the likeliest subject.
fn subject(evaluation: &Evaluation, probabilities: &BTreeMap<String, f64>) -> (String, f64) {
    let own = matched(evaluation).filter(|(key, _)| key.family == Family::Domain);
    let own = own.map(|(key, confidence)| (key.name().to_owned(), confidence));
    let likeliest =
        || probabilities.iter().map(|(name, p)| (name.clone(), *p)).max_by(|a, b| a.1.total_cmp(&b.1));
    own.max_by(|a, b| a.1.total_cmp(&b.1)).or_else(likeliest).unwrap_or_default()
}

fn matched(evaluation: &Evaluation) -> impl Iterator<Item = (&SignalKey, f64)> {
    let decided = evaluation.routed.decided.iter();
    decided.flat_map(|d| d.verdict.matched.iter().map(|(key, confidence)| (key, *confidence)))
}

fn decision(evaluation: &Evaluation) -> Option<DecisionShape> {
    let verdict = &evaluation.routed.decided.as_ref()?.verdict;
    let name = evaluation.decision.clone()?;
    let proof = verdict.proofs.iter().find(|proof| *proof.decision == *name)?;
    let mut keys = Vec::new();
    leaves(&proof.tree, &mut keys);
    let held = keys.iter().filter(|key| verdict.matched.iter().any(|(matched, _)| matched == *key));
    let matched_rules = held.map(ToString::to_string).collect();
    Some(DecisionShape { decision_name: name, confidence: proof.confidence, matched_rules })
}
