//! Settings of the looper Poll (*extension*: the contract does not have it).

use crate::{BudgetSettings, ModelId, OnError};
use std::time::Duration;

/// `algorithm.poll`: weighted votes, step by step, until one answer is likely enough.
#[derive(Debug, Clone, PartialEq)]
pub struct PollSettings {
    /// Who is asked when; all candidates at once when empty.
    pub steps: Vec<PollStepSettings>,
    /// Possible answers of a question, about; at least 2, default 4.
    pub alternatives: usize,
    /// How long each call may take.
    pub step_timeout: Option<Duration>,
    /// What a failing voter does.
    pub on_error: OnError,
    /// What the request may spend.
    pub budget: BudgetSettings,
}

impl Default for PollSettings {
    fn default() -> Self {
        Self {
            steps: Vec::new(),
            alternatives: 4,
            step_timeout: None,
            on_error: OnError::Skip,
            budget: BudgetSettings::default(),
        }
    }
}

/// One step of a poll.
#[derive(Debug, Clone, PartialEq)]
pub struct PollStepSettings {
    /// Who is asked in it, at once.
    pub models: Vec<ModelId>,
    /// What votes weigh after it, in logits, by how much working an answer shows: bare, worked, long. Who was asked and
    /// is not named weighs 1.
    pub weights: Vec<(ModelId, [f64; 3])>,
    /// From this likelihood on the leading answer is taken, in 0..=1; default 0.9, and 0 in the last step.
    pub accept: Option<f64>,
    /// Below this likelihood nobody else is asked, in 0..=1.
    pub hopeless: Option<f64>,
}
