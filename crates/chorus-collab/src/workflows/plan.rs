//! What a run does: the checked form of `algorithm.workflows`.
//!
//! **Invariant:** the number of calls is bounded before the first one is made.

use super::steps::{Bounds, Plan};
use crate::calls::GatherRule;
use crate::candidate::Candidate;
use chorus_spec::{Digest, OnError, WorkflowMode, WorkflowSettings};
use std::time::Duration;

/// Version word of the prompts.
const VERSION: &str = "workflows-v1";
pub(super) const PART: &str = include_str!("../../prompts/workflows-v1/part.md");
pub(super) const FINAL: &str = include_str!("../../prompts/workflows-v1/final.md");
pub(super) const PLANNER: &str = include_str!("../../prompts/workflows-v1/planner.md");
pub(super) const REPAIR: &str = include_str!("../../prompts/workflows-v1/repair.md");
const THINKER: &str = include_str!("../../prompts/workflows-v1/thinker.md");
const SOLVER: &str = include_str!("../../prompts/workflows-v1/solver.md");
const VERIFIER: &str = include_str!("../../prompts/workflows-v1/verifier.md");

/// A checked plan of a workflow; the planner's own plan is a [`Plan`].
#[derive(Debug, Clone)]
pub struct WorkflowPlan {
    /// The template's name.
    pub template: String,
    /// The static plan; absent: the planner makes one.
    pub fixed: Option<Plan>,
    /// Who plans, in the dynamic mode.
    pub planner: String,
    /// Cap of the planner's answer, in tokens.
    pub planner_max_completion_tokens: u64,
    /// Who may work.
    pub workers: Vec<String>,
    /// Who writes, where the plan does not say.
    pub writer: String,
    /// What the writer is to mind, where the plan does not say.
    pub final_prompt: Option<String>,
    /// Most steps of a planner's plan.
    pub max_steps: usize,
    /// Most workers of a planner's step, and most calls at once.
    pub max_parallel: usize,
    /// Cap of each worker's answer, in tokens.
    pub max_completion_tokens: Option<u64>,
    /// How long a step may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that end a step *and* are needed. Absent: all are waited for, and one suffices.
    pub min_successful_responses: Option<usize>,
    /// Sampling temperature of the workers; the client's own when absent.
    pub temperature: Option<f64>,
    /// Whether the trace shows the workers' answers.
    pub include_intermediate_responses: bool,
    /// What a failing plan, step or writer does.
    pub on_error: OnError,
    /// Version word of the prompts.
    pub prompt_version: &'static str,
}

/// Why settings make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkflowPlanFault {
    /// There is nobody to ask.
    #[error("the workflow has no candidates: name some under the decision's `modelRefs`")]
    NoCandidates,
    /// A static workflow without roles.
    #[error("a static workflow needs `roles`; for a planner set `mode: dynamic`")]
    NoRoles,
}

impl WorkflowPlan {
    /// The plan of `settings` for those candidates.
    ///
    /// # Errors
    /// [`WorkflowPlanFault`].
    pub fn from_settings(
        settings: &WorkflowSettings,
        candidates: &[Candidate],
    ) -> Result<Self, WorkflowPlanFault> {
        let first = candidates.first().ok_or(WorkflowPlanFault::NoCandidates)?;
        let workers: Vec<String> = candidates.iter().map(|candidate| candidate.model.clone()).collect();
        let fixed = match settings.mode {
            WorkflowMode::Dynamic => None,
            WorkflowMode::Static if settings.roles.is_empty() => return Err(WorkflowPlanFault::NoRoles),
            WorkflowMode::Static => Some(Plan::of_roles(&settings.roles, &workers)),
        };
        let planner = settings.planner.as_ref().map_or_else(|| first.model.clone(), ToString::to_string);
        let writer = settings.final_model.as_ref().map_or_else(|| planner.clone(), ToString::to_string);
        Ok(Self {
            template: settings.template.clone(),
            fixed,
            planner,
            planner_max_completion_tokens: settings.planner_max_completion_tokens,
            workers,
            writer,
            final_prompt: settings.final_prompt.clone(),
            max_steps: settings.max_steps.max(1),
            max_parallel: settings.max_parallel.max(1),
            max_completion_tokens: settings.max_completion_tokens,
            round_timeout: settings.round_timeout,
            min_successful_responses: settings.min_successful_responses.filter(|&n| n > 0),
            temperature: settings.temperature,
            include_intermediate_responses: settings.include_intermediate_responses,
            on_error: settings.on_error,
            prompt_version: VERSION,
        })
    }

    /// `static` or `dynamic`.
    #[must_use]
    pub fn mode(&self) -> &'static str {
        if self.fixed.is_some() { "static" } else { "dynamic" }
    }

    /// The digest of the built-in prompts.
    #[must_use]
    pub fn prompt_digest(&self) -> Digest {
        Digest::of([PART, FINAL, PLANNER, REPAIR, THINKER, SOLVER, VERIFIER].join("\0").as_bytes())
    }

    /// Most calls that a run makes, a planner's second try and the last one included; turns with tools come on top.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        match &self.fixed {
            Some(plan) => plan.steps.iter().map(|step| step.models.len()).sum::<usize>() + 1,
            None => self.max_steps.saturating_mul(self.max_parallel).saturating_add(3),
        }
    }

    /// What a planner's plan must keep to.
    pub(super) fn bounds(&self) -> Bounds<'_> {
        Bounds {
            max_steps: self.max_steps,
            max_parallel: self.max_parallel,
            workers: &self.workers,
            writers: std::slice::from_ref(&self.writer),
        }
    }

    /// Usable answers without which a step has failed.
    pub(super) fn required(&self, workers: usize) -> usize {
        self.min_successful_responses.map_or(1, |n| n.min(workers))
    }

    /// Usable answers after which nobody else of the step is asked.
    pub(super) fn enough(&self, workers: usize) -> usize {
        self.min_successful_responses.map_or(workers, |n| n.min(workers))
    }

    pub(super) fn gather_rule(&self, workers: usize) -> GatherRule {
        GatherRule {
            quorum: self.enough(workers),
            max_concurrent: self.max_parallel,
            timeout: self.round_timeout,
        }
    }
}

/// The built-in prompt of a role. Source: contract §2.6 for the words; any other role works.
pub(super) fn role_prompt(role: &str) -> &'static str {
    let role = role.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| role.contains(word));
    let prompt = if has(&["verif", "review", "critic"]) {
        VERIFIER
    } else if has(&["think", "plan"]) {
        THINKER
    } else {
        SOLVER
    };
    prompt.trim()
}
