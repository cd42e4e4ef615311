//! A run between two calls: all that is needed to go on with it, here or on another machine.
//!
//! **Invariant:** it holds no handle, clock or secret, and reads back as it was written.

use super::steps::{Plan, Step};
use crate::calls::FaultKind;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the form below; a state of another one is not taken up.
pub(super) const VERSION: u32 = 1;

/// What a run is and how far it has come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowState {
    /// The version of this form.
    pub version: u32,
    /// What the run belongs to.
    pub belongs: Belongs,
    /// The client's request, as JSON; filled when the run is suspended.
    pub request: String,
    /// What is to be done.
    pub plan: Plan,
    /// Results of workers that are done, in order.
    pub results: Vec<WorkResult>,
    /// Workers that gave nothing, in order.
    pub failed: Vec<Failed>,
    /// The step that is under way, from 0; one past the last is the final answer.
    pub step: usize,
    /// The worker of it that is under way, from 0, where they work one after the other.
    pub worker: usize,
    /// That worker's messages after its first prompt: its calls of tools and their results.
    pub turns: Vec<Value>,
    /// The ids of the tools it called, a list a turn.
    pub trajectory: Vec<Vec<String>>,
    /// The calls whose results are awaited.
    pub awaited: Vec<Awaited>,
    /// Calls of tools so far, over all workers.
    pub calls_of_tools: usize,
    /// What went other than planned, for people.
    pub degraded_by: Vec<String>,
}

/// What a suspended run belongs to; a follow-up of anything else does not get it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Belongs {
    /// The decision.
    pub decision: String,
    /// `static` or `dynamic`.
    pub mode: String,
    /// The template's name.
    pub template: String,
    /// Who may work.
    pub workers: Vec<String>,
}

/// What one worker found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkResult {
    /// Its step.
    pub step: String,
    /// `step:index:model`.
    pub agent: String,
    /// The model.
    pub model: String,
    /// The text.
    pub text: String,
    /// The reasoning, if the model showed any.
    pub reasoning: Option<String>,
    /// The ids of the tools it called, a list a turn.
    pub trajectory: Vec<Vec<String>>,
}

/// A worker that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failed {
    /// Its step.
    pub step: String,
    /// The model.
    pub model: String,
    /// The kind of failure.
    pub kind: FaultKind,
    /// A public sentence.
    pub error: String,
}

/// One call of a tool whose result is awaited.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Awaited {
    /// The id that the client knows.
    pub shown: String,
    /// The id that the model gave.
    pub own: String,
}

impl WorkflowState {
    /// A run at its beginning.
    pub(super) fn new(belongs: Belongs, plan: Plan) -> Self {
        Self {
            version: VERSION,
            belongs,
            request: String::new(),
            plan,
            results: Vec::new(),
            failed: Vec::new(),
            step: 0,
            worker: 0,
            turns: Vec::new(),
            trajectory: Vec::new(),
            awaited: Vec::new(),
            calls_of_tools: 0,
            degraded_by: Vec::new(),
        }
    }

    /// The step under way; `None` once only the final answer is left.
    pub(super) fn current(&self) -> Option<&Step> {
        self.plan.steps.get(self.step)
    }

    /// Results of that step.
    pub(super) fn of_step<'a>(&'a self, step: &'a str) -> impl Iterator<Item = &'a WorkResult> {
        self.results.iter().filter(move |result| result.step == step)
    }

    /// Goes on to the next worker.
    pub(super) fn next_worker(&mut self) {
        self.worker += 1;
        self.turns.clear();
        self.trajectory.clear();
    }

    /// Goes on to the next step.
    pub(super) fn next_step(&mut self) {
        self.step += 1;
        self.worker = 0;
        self.turns.clear();
        self.trajectory.clear();
    }
}

/// A store's public sentence on why it did not do it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StateFault(pub String);

/// Where suspended runs wait. The store forgets a run after its own time to live.
///
/// A state is a JSON text. It is taken at most once, also when several processes ask at the same time.
pub trait WorkflowStates: Send + Sync {
    /// Keeps a state under an id that nobody has used.
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>>;

    /// Takes it; `None` when it is unknown, taken already, or too old.
    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>>;
}
