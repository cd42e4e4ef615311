//! Why a Fusion cannot be planned, and why one gave no answer. HTTP status codes are the door's affair.

use crate::calls::{CallFault, FaultKind};

/// Why settings or a request plugin make no plan. The message is meant for the client.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanFault {
    /// There is nobody to ask.
    #[error("fusion has no panel: give `analysis_models`, or name a decision that has candidates")]
    NoPanel,
    /// Too many seats.
    #[error("the fusion panel has {seats} seats; at most {limit} are allowed")]
    PanelTooLarge {
        /// Seats asked for.
        seats: usize,
        /// [`MAX_PANEL`](super::MAX_PANEL).
        limit: usize,
    },
    /// More answers are wanted than the panel can give.
    #[error("`min_successful_responses` is {wanted}, but the panel has {seats} seats")]
    QuorumUnreachable {
        /// Answers wanted.
        wanted: usize,
        /// Seats of the panel.
        seats: usize,
    },
    /// An override of somebody who is not on the panel.
    #[error("`analysis_overrides` names `{0}`, which is not on the panel")]
    OverrideOfNobody(String),
    /// A public name that stands for a policy, not for one model.
    #[error("`{name}` cannot be a fusion {role}: it names a routing policy, not one model")]
    Recursion {
        /// The name.
        name: String,
        /// `panel member` or `judge`.
        role: &'static str,
    },
    /// A version of the prompts that does not exist.
    #[error("unknown `judge_prompt_version` `{0}`; known: `fusion-v1`")]
    UnknownPrompts(String),
    /// The plugin is not a JSON object, or a key stands twice in it.
    #[error("the fusion plugin cannot be read: {0}")]
    NotAnObject(String),
    /// A key that the plugin does not have.
    #[error("the fusion plugin has no field `{key}`{}", nearest.as_ref().map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key as written.
        key: String,
        /// The known key that looks most like it.
        nearest: Option<&'static str>,
    },
    /// A field with a wrong type or out of its range.
    #[error("fusion plugin field `{field}` {problem}")]
    Field {
        /// The field.
        field: &'static str,
        /// What is wrong, as the end of the sentence.
        problem: String,
    },
    /// A field that is known and cannot be served yet.
    #[error("fusion plugin field `{0}` is not supported yet")]
    NotSupported(&'static str),
    /// Several fusion plugins in one request.
    #[error("the request has more than one fusion plugin")]
    Twice,
}

/// A seat that gave nothing usable: its model, the kind of failure, and a public sentence.
pub type MemberFailure = (String, FaultKind, String);

/// Why a Fusion gave no answer. `Display` is the public text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoopFault {
    /// Too few usable answers; judge and writer were not called.
    #[error("fusion needs {wanted} usable panel answers and got {got}")]
    Quorum {
        /// Answers that are required.
        wanted: usize,
        /// Usable answers.
        got: usize,
        /// The other seats, in seat order.
        failures: Vec<MemberFailure>,
    },
    /// A panel member failed under `on_error: fail`.
    #[error("a fusion panel member failed: {0}")]
    Member(CallFault),
    /// The judge failed under `on_error: fail`.
    #[error("the fusion judge failed: {0}")]
    Judge(CallFault),
    /// The judge's prompt does not fit under `on_error: fail`, or the writer's does not fit at all.
    #[error(
        "the fusion prompt does not fit the context window of `{model}` ({window} tokens), even with every panel answer cut"
    )]
    Overflow {
        /// Whose window.
        model: String,
        /// Its size in tokens.
        window: u64,
    },
    /// No writer gave the final answer.
    #[error("the fusion synthesis failed: {0}")]
    Synthesis(CallFault),
    /// The plan itself is at fault.
    #[error(transparent)]
    Plan(#[from] PlanFault),
}

impl LoopFault {
    /// A stable word for programs and metrics.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Quorum { .. } => "fusion_quorum",
            Self::Member(_) => "fusion_member_failed",
            Self::Judge(_) => "fusion_judge_failed",
            Self::Overflow { .. } => "fusion_context_overflow",
            Self::Synthesis(_) => "fusion_synthesis_failed",
            Self::Plan(_) => "fusion_plan",
        }
    }

    /// The failed call behind it, where there is exactly one.
    #[must_use]
    pub fn call(&self) -> Option<&CallFault> {
        match self {
            Self::Member(fault) | Self::Judge(fault) | Self::Synthesis(fault) => Some(fault),
            Self::Quorum { .. } | Self::Overflow { .. } | Self::Plan(_) => None,
        }
    }
}
