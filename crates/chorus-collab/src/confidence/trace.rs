//! The account of one cascade: who was tried, how far each was trusted, and why it ended.
//!
//! It holds public texts only, and no usage: calls and costs are rows of the run record.

use super::evidence::Tried;
use super::plan::{ConfidencePlan, Next};
use crate::calls::{CallFault, FaultKind};
use serde::Serialize;

/// What happened.
#[derive(Debug, Default, Clone, Serialize)]
pub struct ConfidenceTrace {
    /// How answers were measured.
    pub method: &'static str,
    /// The confidence that was needed, in 0..=1.
    pub threshold: f64,
    /// The confidence below which nobody else was to be asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hopeless_threshold: Option<f64>,
    /// All candidates in the order of escalation.
    pub order: Vec<String>,
    /// Those that were tried.
    pub attempts: Vec<Attempt>,
    /// Why no further one was; absent when the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stopped: Option<Stopped>,
    /// Whose answer it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Version word of the prompts.
    pub prompt_version: &'static str,
    /// Digest of the prompts as they were used.
    pub prompt_digest: String,
}

/// One candidate that was tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Attempt {
    /// The model.
    pub model: String,
    /// In 0..=1; absent without evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// Why there is no confidence in its answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub no_evidence: Option<String>,
    /// Whether its answer was accepted.
    pub accepted: bool,
    /// Why it gave no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Why a cascade ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Stopped {
    /// An answer reached the threshold.
    Accepted,
    /// An answer was below the hopeless threshold; the best answer so far stands.
    Hopeless,
    /// The last candidate answered.
    LastCandidate,
    /// The last candidate failed; the best answer so far stands.
    LastFailed,
    /// The budget refused a call; the best answer so far stands.
    BudgetSpent,
}

impl ConfidenceTrace {
    pub(super) fn open(&mut self, plan: &ConfidencePlan) {
        self.method = plan.method;
        self.threshold = plan.threshold;
        self.hopeless_threshold = plan.hopeless;
        self.order = plan.steps.iter().chain([&plan.last]).cloned().collect();
        self.prompt_version = plan.prompt_version;
        self.prompt_digest = plan.prompt_digest().to_string();
    }

    pub(super) fn attempt(&mut self, model: &str, tried: &Result<Tried, CallFault>, next: Next) {
        let evidence = tried.as_ref().ok().map(|tried| &tried.evidence);
        self.attempts.push(Attempt {
            model: model.to_owned(),
            confidence: evidence.and_then(|evidence| evidence.as_ref().ok().copied()),
            no_evidence: evidence.and_then(|evidence| evidence.as_ref().err()).map(ToString::to_string),
            accepted: next == Next::Accept,
            error: tried.as_ref().err().map(ToString::to_string),
        });
        self.stopped = match next {
            Next::Accept => Some(Stopped::Accepted),
            Next::Hopeless => Some(Stopped::Hopeless),
            Next::Spent => Some(Stopped::BudgetSpent),
            Next::Escalate | Next::Fail => None,
        };
    }

    pub(super) fn last(&mut self, model: &str) {
        let no_evidence = Some("not measured: nobody is above it".to_owned());
        let attempt =
            Attempt { model: model.to_owned(), confidence: None, no_evidence, accepted: true, error: None };
        self.attempts.push(attempt);
        self.stopped = Some(Stopped::LastCandidate);
        self.answered_by = Some(model.to_owned());
    }

    pub(super) fn last_failed(&mut self, model: &str, fault: &CallFault) {
        self.attempts.push(Attempt {
            model: model.to_owned(),
            confidence: None,
            no_evidence: None,
            accepted: false,
            error: Some(fault.to_string()),
        });
        self.stopped = Some(match fault.kind {
            FaultKind::Budget => Stopped::BudgetSpent,
            _ => Stopped::LastFailed,
        });
    }
}
