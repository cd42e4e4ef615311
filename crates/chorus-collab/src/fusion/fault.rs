//! Why a Fusion cannot be planned. HTTP status codes are the door's affair.

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
