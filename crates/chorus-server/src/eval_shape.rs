//! The shapes of the evaluation endpoint. Source: contract §4.2 and Appendix B (`EvalResponse`, `IntentRequest`).

use chorus_engine::{Code, Evaluation, Fault, SelectionStatus, Trace};
use chorus_policy::{AbsentReason, Observation, ProjectionTrace, Proof, ProofNode};
use chorus_spec::{Family, SignalKey};
use chorus_wire::{ChatRequest, RawObject, RequestLimits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The query of the endpoint.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct EvalQuery {
    /// Show every decision's proof.
    #[serde(default)]
    pub trace: bool,
}

/// `options` of the body; other options are accepted and change nothing here.
#[derive(Debug, Default, Deserialize)]
struct Options {
    #[serde(default)]
    trace: bool,
}

/// The body as the chat request that it stands for, and whether it asks for the trace.
///
/// # Errors
/// Neither `text` nor `messages`, or a malformed body.
pub(crate) fn request_of(
    bytes: &[u8],
    auto: &str,
    limits: &RequestLimits,
) -> Result<(ChatRequest, bool), Fault> {
    let invalid = |message: String| Fault::new(Code::InvalidRequest, message);
    let mut body = RawObject::parse(bytes).map_err(|e| invalid(e.to_string()))?;
    let options: Option<Options> = body.read("options").map_err(|e| invalid(format!("options: {e}")))?;
    body.remove("options");
    let text: Option<String> = body.read("text").map_err(|e| invalid(format!("text: {e}")).at("text"))?;
    body.remove("text");
    if body.get("messages").is_none() {
        let text =
            text.ok_or_else(|| invalid("either `text` or `messages` is needed".to_owned()).at("text"))?;
        let messages = [serde_json::json!({"role": "user", "content": text})];
        body.write("messages", &messages).map_err(|e| invalid(e.to_string()))?;
    }
    if body.get("model").is_none() {
        body.write("model", &auto).map_err(|e| invalid(e.to_string()))?;
    }
    let request = ChatRequest::parse(&body.to_bytes(), limits).map_err(crate::reply::bad_request)?;
    Ok((request, options.is_some_and(|o| o.trace)))
}

/// Signal names by family.
pub(crate) type Buckets = BTreeMap<&'static str, Vec<String>>;

/// The response.
#[derive(Debug, Serialize)]
pub(crate) struct EvalResponse<'a> {
    original_text: String,
    requested_model: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    recipe: Option<&'a str>,
    decision_result: DecisionResult<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    eval_trace: Option<&'a [Proof]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    projection_trace: Option<&'a ProjectionTrace>,
    recommended_models: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    selected_model: Option<&'a str>,
    selection_status: SelectionStatus,
    selection_method: &'a str,
    selection_reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<&'a Trace>,
    routing_decision: &'a str,
    metrics: Metrics,
    signal_confidences: BTreeMap<String, f64>,
    signal_values: BTreeMap<String, f64>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    signal_errors: BTreeMap<String, String>,
}

#[derive(Debug, Serialize)]
struct DecisionResult<'a> {
    decision_name: &'a str,
    algorithm: &'a str,
    plugins: &'a [String],
    used_signals: Buckets,
    matched_signals: Buckets,
    unmatched_signals: Buckets,
}

/// How long signals took, in microseconds by `family:rule`.
#[derive(Debug, Default, Serialize)]
struct Metrics {
    signal_micros: BTreeMap<String, u64>,
}

impl<'a> EvalResponse<'a> {
    /// An evaluation in the contract's shape.
    pub(crate) fn of(evaluation: &'a Evaluation, text: String, requested_model: String, trace: bool) -> Self {
        let decided = evaluation.routed.decided.as_ref();
        let verdict = decided.map(|d| &*d.verdict);
        let matched: Vec<&SignalKey> =
            verdict.iter().flat_map(|v| v.matched.iter().map(|(key, _)| key)).collect();
        let observed: Vec<(&SignalKey, &Observation)> =
            decided.iter().flat_map(|d| d.evidence.iter()).collect();
        let said = observed.iter().filter(|(_, seen)| !matches!(seen, Observation::Absent(_)));
        let unmatched = said.map(|(key, _)| *key).filter(|key| !matched.contains(key));
        let decision = evaluation.decision.as_deref().unwrap_or_default();
        let proof = verdict.and_then(|v| v.proofs.iter().find(|p| *p.decision == *decision));
        let mut used = Vec::new();
        if let Some(proof) = proof {
            leaves(&proof.tree, &mut used);
        }
        let reason = match &evaluation.fault {
            Some(fault) => format!("{}; {}", evaluation.reason, fault.public),
            None => evaluation.reason.clone(),
        };
        Self {
            original_text: text,
            requested_model,
            recipe: evaluation.recipe.as_deref(),
            decision_result: DecisionResult {
                decision_name: decision,
                algorithm: &evaluation.algorithm,
                plugins: &evaluation.plugins,
                used_signals: buckets(used.iter()),
                matched_signals: buckets(matched.iter().copied()),
                unmatched_signals: buckets(unmatched),
            },
            eval_trace: verdict.filter(|_| trace).map(|v| v.proofs.as_slice()),
            projection_trace: verdict.filter(|_| trace).map(|v| &v.projections),
            recommended_models: &evaluation.recommended,
            selected_model: evaluation.selected.as_deref(),
            selection_status: evaluation.status,
            selection_method: &evaluation.algorithm,
            selection_reason: reason,
            selection: evaluation.selection.as_deref().filter(|it| it.scores.len() > 1),
            routing_decision: decision,
            metrics: Metrics {
                signal_micros: decided
                    .iter()
                    .flat_map(|d| &d.timings)
                    .map(|t| (format!("{}:{}", t.family, t.rule), t.micros))
                    .collect(),
            },
            signal_confidences: verdict
                .iter()
                .flat_map(|v| v.matched.iter().map(|(key, confidence)| (key.to_string(), *confidence)))
                .collect(),
            signal_values: observed
                .iter()
                .filter_map(|(key, seen)| Some((key.to_string(), raw(seen)?)))
                .collect(),
            signal_errors: errors_of(evaluation),
        }
    }
}

pub(crate) fn buckets<'k>(keys: impl Iterator<Item = &'k SignalKey>) -> Buckets {
    let mut buckets = Buckets::new();
    for key in keys {
        let bucket = match key.family {
            Family::Projection => "projection",
            family => family.bucket(),
        };
        let names = buckets.entry(bucket).or_default();
        if !names.iter().any(|name| name == key.name()) {
            names.push(key.name().to_owned());
        }
    }
    buckets
}

/// The facts of a rule.
pub(crate) fn leaves(node: &ProofNode, into: &mut Vec<SignalKey>) {
    if let (Some(family), Some(name)) = (node.signal_type, &node.signal_name) {
        into.push(SignalKey::new(family, name));
    }
    node.children.iter().for_each(|child| leaves(child, into));
}

/// Every signal that is absent, with its reason.
pub(crate) fn errors_of(evaluation: &Evaluation) -> BTreeMap<String, String> {
    let observed = evaluation.routed.decided.iter().flat_map(|d| d.evidence.iter());
    observed.filter_map(|(key, seen)| Some((key.to_string(), failure(seen)?))).collect()
}

fn raw(seen: &Observation) -> Option<f64> {
    match seen {
        Observation::Matched { raw, .. } | Observation::Unmatched { raw } => *raw,
        Observation::Absent(_) => None,
    }
}

/// Why a signal is absent, where it is.
pub(crate) fn failure(seen: &Observation) -> Option<String> {
    match seen {
        Observation::Absent(AbsentReason::Failed(why)) => Some(why.clone()),
        Observation::Absent(AbsentReason::Unsupported) => Some("known, not supported yet".to_owned()),
        Observation::Matched { .. } | Observation::Unmatched { .. } => None,
    }
}
