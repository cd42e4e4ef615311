//! Ensembles for the tests.

use crate::support::Script;
use chorus_collab::ratings::{RatingsPlan, RatingsTrace, ratings};
use chorus_collab::{Answer, Candidate, LoopFault};
use chorus_spec::{Aggregate, Raters, RatingsSettings};
use chorus_wire::ChatRequest;
use serde_json::Value;

/// Candidates in that order.
pub(crate) fn candidates(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|m| Candidate { model: (*m).to_owned(), ..Candidate::default() }).collect()
}

/// Settings.
pub(crate) fn settings(raters: Raters, aggregate: Aggregate) -> RatingsSettings {
    RatingsSettings { raters, aggregate, ..RatingsSettings::default() }
}

/// A plan of those models.
pub(crate) fn plan(settings: &RatingsSettings, models: &[&str]) -> RatingsPlan {
    RatingsPlan::from_settings(settings, &candidates(models)).unwrap()
}

/// One run, with nobody watching.
pub(crate) async fn run(
    plan: &RatingsPlan,
    ask: &ChatRequest,
    script: &Script,
) -> (Result<Answer, LoopFault>, RatingsTrace) {
    let mut trace = RatingsTrace::default();
    let outcome = sendable(ratings(plan, ask, script, &mut trace, &())).await;
    (outcome, trace)
}

/// The engine runs an ensemble on whatever thread is free.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}

/// The choices of an answer.
pub(crate) fn choices(answer: Answer) -> Vec<Value> {
    let Answer::Finished(reply) = answer else { panic!("a stream") };
    reply.reply.body().read("choices").unwrap().unwrap()
}
