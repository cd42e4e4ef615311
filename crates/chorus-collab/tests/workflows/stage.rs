//! Plans, runs, and a store in memory.

use crate::support::Script;
use chorus_collab::workflows::StateFault;
use chorus_collab::{
    Answer, Candidate, LoopFault, Suspension, WorkflowPlan, WorkflowStates, WorkflowTrace, workflows,
};
use chorus_spec::{ModelId, WorkflowMode, WorkflowRole, WorkflowSettings};
use chorus_wire::ChatRequest;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// The id under which a first suspension puts its run.
pub(crate) const ID: &str = "00112233445566778899aabb";
/// The id of a second one.
pub(crate) const NEXT_ID: &str = "ffeeddccbbaa998877665544";

/// A store that keeps everything until it is taken.
#[derive(Default)]
pub(crate) struct Shelf(Mutex<BTreeMap<String, String>>);

impl Shelf {
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl WorkflowStates for Shelf {
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        self.0.lock().unwrap().insert(id.to_owned(), state);
        async { Ok(()) }.boxed()
    }

    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        let taken = self.0.lock().unwrap().remove(id);
        async { Ok(taken) }.boxed()
    }
}

/// One role.
pub(crate) fn role(name: &str, models: &[&str], access: Option<&[&str]>) -> WorkflowRole {
    WorkflowRole {
        name: name.to_owned(),
        models: models.iter().map(|model| ModelId::new(*model)).collect(),
        prompt: None,
        access_list: access.map(|list| list.iter().map(|&entry| entry.to_owned()).collect()),
    }
}

/// Settings of those roles, with the writer `w`.
pub(crate) fn fixed(roles: Vec<WorkflowRole>) -> WorkflowSettings {
    WorkflowSettings { roles, final_model: Some(ModelId::new("w")), ..WorkflowSettings::default() }
}

/// Settings with the planner `p` and the writer `w`.
pub(crate) fn dynamic() -> WorkflowSettings {
    WorkflowSettings {
        mode: WorkflowMode::Dynamic,
        planner: Some(ModelId::new("p")),
        final_model: Some(ModelId::new("w")),
        ..WorkflowSettings::default()
    }
}

/// The plan of settings for the candidates `a` and `b`.
pub(crate) fn plan(settings: &WorkflowSettings) -> WorkflowPlan {
    let candidate = |model: &str| Candidate { model: model.to_owned(), ..Candidate::default() };
    WorkflowPlan::from_settings(settings, &[candidate("a"), candidate("b")]).unwrap()
}

/// One run, with nobody watching.
pub(crate) async fn run(
    settings: &WorkflowSettings,
    ask: &ChatRequest,
    script: &Script,
) -> (Result<Answer, LoopFault>, WorkflowTrace) {
    run_on(settings, ask, script, &Shelf::default(), ID).await
}

/// One run over a store, under that id.
pub(crate) async fn run_on(
    settings: &WorkflowSettings,
    ask: &ChatRequest,
    script: &Script,
    states: &dyn WorkflowStates,
    fresh_id: &str,
) -> (Result<Answer, LoopFault>, WorkflowTrace) {
    let mut trace = WorkflowTrace::default();
    let suspension = Suspension { states, fresh_id, decision: "d" };
    let outcome = sendable(workflows(&plan(settings), ask, script, &mut trace, &(), &suspension)).await;
    (outcome, trace)
}

/// The engine runs a looper on whatever thread is free.
fn sendable<F: Future + Send>(future: F) -> F {
    future
}
