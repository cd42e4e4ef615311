//! Why a looper gave no answer. HTTP status codes are the door's affair.

use crate::calls::{CallFault, FaultKind};

/// A seat that gave nothing usable: its model, the kind of failure, and a public sentence.
pub type MemberFailure = (String, FaultKind, String);

/// Why a looper gave no answer. `Display` is the public text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoopFault {
    /// Too few usable answers; judge and writer were not called.
    #[error("{wanted} usable answers of members are needed, and {got} came")]
    Quorum {
        /// Answers that are required.
        wanted: usize,
        /// Usable answers.
        got: usize,
        /// The other seats, in seat order.
        failures: Vec<MemberFailure>,
    },
    /// A panel member failed under `on_error: fail`.
    #[error("a member failed: {0}")]
    Member(CallFault),
    /// The judge failed under `on_error: fail`.
    #[error("the judge failed: {0}")]
    Judge(CallFault),
    /// The judge's prompt does not fit under `on_error: fail`, or the writer's does not fit at all.
    #[error(
        "the prompt does not fit the context window of `{model}` ({window} tokens), even with every answer cut"
    )]
    Overflow {
        /// Whose window.
        model: String,
        /// Its size in tokens.
        window: u64,
    },
    /// The planner failed under `on_error: fail`.
    #[error("the planner failed: {0}")]
    Planner(CallFault),
    /// The planner's plan cannot be followed under `on_error: fail`; the text says why.
    #[error("the planner made no plan that can be followed: {0}")]
    Plan(String),
    /// Tool results that do not fit a run that waits; the text says why.
    #[error("the tool results cannot be taken up: {0}")]
    Resume(String),
    /// A run that waits for tools could not be kept or looked up.
    #[error("the workflow's state is not available: {0}")]
    State(String),
    /// No writer gave the final answer.
    #[error("the final answer could not be written: {0}")]
    Synthesis(CallFault),
}

impl LoopFault {
    /// The failed call behind it, where there is exactly one.
    #[must_use]
    pub fn call(&self) -> Option<&CallFault> {
        match self {
            Self::Member(fault) | Self::Judge(fault) | Self::Planner(fault) | Self::Synthesis(fault) => {
                Some(fault)
            }
            Self::Quorum { .. }
            | Self::Overflow { .. }
            | Self::Plan(_)
            | Self::Resume(_)
            | Self::State(_) => None,
        }
    }
}
