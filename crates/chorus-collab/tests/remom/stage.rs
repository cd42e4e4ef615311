//! Plans and runs.

use crate::support::Script;
use chorus_collab::{Answer, Candidate, LoopFault, RemomPlan, RemomTrace, remom};
use chorus_spec::{Distribution, RemomSettings};
use chorus_wire::ChatRequest;

/// Candidates of those names, in turns, so that every seat is known.
pub(crate) fn plan(schedule: &[usize], models: &[&str]) -> RemomPlan {
    planned(&settings(schedule), models)
}

/// Settings with seats in turns.
pub(crate) fn settings(schedule: &[usize]) -> RemomSettings {
    RemomSettings {
        breadth_schedule: schedule.to_vec(),
        distribution: Distribution::RoundRobin,
        ..RemomSettings::default()
    }
}

/// The plan of any settings.
pub(crate) fn planned(settings: &RemomSettings, models: &[&str]) -> RemomPlan {
    RemomPlan::from_settings(settings, &candidates(models)).unwrap()
}

/// Candidates of those names.
pub(crate) fn candidates(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|model| Candidate { model: (*model).to_owned(), ..Candidate::default() }).collect()
}

/// One run, with nobody watching.
pub(crate) async fn run(
    plan: &RemomPlan,
    ask: &ChatRequest,
    script: &Script,
) -> (Result<Answer, LoopFault>, RemomTrace) {
    let mut trace = RemomTrace::default();
    let outcome = sendable(remom(plan, ask, script, &mut trace, &())).await;
    (outcome, trace)
}

/// The engine runs a looper on whatever thread is free.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}
