//! What an attempt gave: an answer, and how far it can be trusted, or why nobody knows.

use crate::calls::{CallFault, Reply};

/// One answer with its measurement.
#[derive(Debug)]
pub(super) struct Tried {
    /// The answer as the client may see it.
    pub(super) reply: Reply,
    /// In 0..=1.
    pub(super) evidence: Result<f64, NoEvidence>,
}

impl Tried {
    /// The confidence, where there is evidence.
    pub(super) fn confidence(&self) -> Option<f64> {
        self.evidence.as_ref().ok().copied()
    }
}

/// Why there is no confidence. It is never read as certainty, and never as its opposite.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoEvidence {
    /// The backend sent none, or none that can be read.
    #[error("the reply has no log-probabilities")]
    NoLogprobs,
    /// Some backends write zeros for what they did not compute.
    #[error("every log-probability is zero, without alternatives: a placeholder")]
    Placeholder,
    /// A margin needs two.
    #[error("a token has no second alternative")]
    NoAlternatives,
    /// A check that does not end in a verdict.
    #[error("the verdict of the check cannot be read")]
    Unreadable,
    /// The question does not fit, however the answer is cut.
    #[error("the check does not fit the context window")]
    Overflow,
    /// Nobody verifies.
    #[error("nobody is there to verify it")]
    NoVerifier,
    /// Nobody trained one for it.
    #[error("no scorer knows this model")]
    NoScorer,
    /// The call of the check failed.
    #[error("the check failed: {0}")]
    CheckFailed(CallFault),
}
