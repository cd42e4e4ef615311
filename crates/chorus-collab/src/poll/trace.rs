//! The account of one poll: who was asked step by step, what the votes came to, and why it ended.
//!
//! It holds no usage: calls and costs are rows of the run record.

use super::ballot::Count;
use super::plan::{PollStep, PollStopped};
use serde::Serialize;

/// What happened.
#[derive(Debug, Default, Clone, PartialEq, Serialize)]
pub struct PollTrace {
    /// The steps that were taken.
    pub steps: Vec<StepRow>,
    /// Why no further one was; absent when the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<PollStopped>,
    /// Whose answer it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The usable replies' texts, in the order of steps and seats, for whoever reads a value from them.
    #[serde(skip)]
    pub answers: Vec<String>,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRow {
    /// Who was asked in it.
    pub models: Vec<String>,
    /// The leading answer after it; absent where nobody's answer could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<String>,
    /// How likely it is to be right, in 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<f64>,
    /// The likelihood that was needed.
    pub accept: f64,
}

impl PollTrace {
    /// The trace without any text of a model's.
    #[must_use]
    pub fn bare(&self) -> Self {
        let mut bare = Self { answers: Vec::new(), ..self.clone() };
        bare.steps.iter_mut().for_each(|step| step.leader = None);
        bare
    }

    pub(super) fn step(&mut self, step: &PollStep, count: Option<&Count>, stopped: Option<PollStopped>) {
        self.steps.push(StepRow {
            models: step.models.clone(),
            leader: count.map(|count| count.leader.clone()),
            share: count.map(|count| count.share),
            accept: step.accept,
        });
        self.stopped = stopped;
    }
}
