//! Cascades and replies for the tests.

use crate::support::{Script, Step, message_with};
use chorus_collab::confidence::{ConfidencePlan, ConfidenceTrace, confidence};
use chorus_collab::{Answer, Candidate, LoopFault};
use chorus_spec::{ConfidenceMethod, ConfidenceSettings, EscalationOrder};
use chorus_wire::ChatRequest;
use serde_json::{Value, json};

/// Candidates in that order.
pub(crate) fn candidates(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|m| Candidate { model: (*m).to_owned(), ..Candidate::default() }).collect()
}

/// Settings in the declared order.
pub(crate) fn settings(method: ConfidenceMethod) -> ConfidenceSettings {
    ConfidenceSettings { method, order: EscalationOrder::Declared, ..ConfidenceSettings::default() }
}

/// A plan of those models.
pub(crate) fn plan(settings: &ConfidenceSettings, models: &[&str]) -> ConfidencePlan {
    ConfidencePlan::from_settings(settings, &candidates(models)).unwrap()
}

/// One run, with nobody watching.
pub(crate) async fn run(
    plan: &ConfidencePlan,
    ask: &ChatRequest,
    script: &Script,
) -> (Result<Answer, LoopFault>, ConfidenceTrace) {
    let mut trace = ConfidenceTrace::default();
    let outcome = sendable(confidence(plan, ask, script, &mut trace, &())).await;
    (outcome, trace)
}

/// The engine runs a cascade on whatever thread is free.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// An answer with tokens: a log-probability and the distance to the second alternative.
pub(crate) fn weighed(text: &str, tokens: &[(f64, f64)]) -> Step {
    let token = |(logprob, gap): &(f64, f64)| {
        let top = json!([{ "token": "t", "logprob": logprob }, { "token": "u", "logprob": logprob - gap }]);
        json!({ "token": "t", "logprob": logprob, "top_logprobs": top })
    };
    let content: Vec<Value> = tokens.iter().map(token).collect();
    message_with(&json!({ "role": "assistant", "content": text }), &json!({ "content": content }), "stop")
}
