//! The account of one run: the `flow` of a body, and the record's trace.
//!
//! Source: contract Appendix B (`workflowTrace`), with fields of our own.

use super::plan::WorkflowPlan;
use super::state::{WorkResult, WorkflowState};
use super::steps::{Plan, Step};
use serde::Serialize;

/// What happened.
#[derive(Debug, Default, Clone, Serialize)]
pub struct WorkflowTrace {
    /// `static` or `dynamic`.
    pub mode: String,
    /// The template's name.
    pub template: String,
    /// Who planned.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub planner_model: Option<String>,
    /// Who may work.
    pub worker_models: Vec<String>,
    /// What was to be done; absent when there was no plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Steps that have begun, with their results.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<StepTrace>,
    /// The tools that the writer called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub final_tool_trajectory: Vec<ToolTurn>,
    /// What the run waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_tool_call: Option<PendingToolCall>,
    /// Workers that gave nothing, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_models: Vec<FailedWorker>,
    /// Who wrote the answer; empty when nobody came to it.
    pub writer: String,
    /// Whether anything went other than planned.
    pub degraded: bool,
    /// What did, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded_by: Vec<String>,
    /// Version word of the prompts.
    pub prompt_version: String,
    /// Digest of the built-in prompts.
    pub prompt_digest: String,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StepTrace {
    /// The step as it was planned.
    #[serde(flatten)]
    pub step: Step,
    /// Its results; empty when not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<ResponseTrace>,
    /// Usable answers.
    pub usable: usize,
}

/// One result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ResponseTrace {
    /// `step:index:model`.
    pub agent_id: String,
    /// The model.
    pub model: String,
    /// The text.
    pub content: String,
    /// The reasoning, if the model showed any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// The tools that it called.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_trajectory: Vec<ToolTurn>,
}

/// The tools called in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ToolTurn {
    /// Their ids, as the client knows them.
    pub tool_call_ids: Vec<String>,
}

/// What a suspended run waits for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PendingToolCall {
    /// `worker` or `final`.
    pub phase: &'static str,
    /// Under which the run is kept.
    pub state_id: String,
    /// `step:index:model`; absent for the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<String>,
    /// The step; absent for the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<String>,
    /// Its role; absent for the writer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Who called.
    pub model: String,
    /// The ids, as the client knows them.
    pub tool_call_ids: Vec<String>,
}

/// A worker that gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedWorker {
    /// The model.
    pub model: String,
    /// Its step.
    pub step_id: String,
    /// A public sentence.
    pub error: String,
}

impl WorkflowTrace {
    /// What is known before a plan stands.
    pub(super) fn open(&mut self, plan: &WorkflowPlan) {
        plan.mode().clone_into(&mut self.mode);
        self.template.clone_from(&plan.template);
        self.planner_model = plan.fixed.is_none().then(|| plan.planner.clone());
        self.worker_models.clone_from(&plan.workers);
        plan.prompt_version.clone_into(&mut self.prompt_version);
        self.prompt_digest = plan.prompt_digest().to_string();
    }

    /// How far the run has come.
    pub(super) fn show(&mut self, state: &WorkflowState) {
        let begun = state.plan.steps.iter().take(state.step + 1);
        let step = |step: &Step| {
            let responses: Vec<_> = state.of_step(&step.id).map(ResponseTrace::of).collect();
            StepTrace { step: step.clone(), usable: responses.len(), responses }
        };
        self.steps = begun.map(step).collect();
        self.plan = Some(state.plan.clone());
        let failed = state.failed.iter().map(|failed| FailedWorker {
            model: failed.model.clone(),
            step_id: failed.step.clone(),
            error: failed.error.clone(),
        });
        self.failed_models = failed.collect();
        if state.current().is_none() {
            self.final_tool_trajectory = turns(&state.trajectory);
        }
        self.degraded_by.clone_from(&state.degraded_by);
        self.degraded = !self.degraded_by.is_empty();
    }

    /// What the client may see.
    #[must_use]
    pub fn shown(&self, responses: bool) -> Self {
        let mut shown = self.clone();
        if !responses {
            shown.steps.iter_mut().for_each(|step| step.responses.clear());
        }
        shown
    }
}

impl ResponseTrace {
    fn of(result: &WorkResult) -> Self {
        Self {
            agent_id: result.agent.clone(),
            model: result.model.clone(),
            content: result.text.clone(),
            reasoning: result.reasoning.clone(),
            tool_trajectory: turns(&result.trajectory),
        }
    }
}

fn turns(trajectory: &[Vec<String>]) -> Vec<ToolTurn> {
    trajectory.iter().map(|ids| ToolTurn { tool_call_ids: ids.clone() }).collect()
}
