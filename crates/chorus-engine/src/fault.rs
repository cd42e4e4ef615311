//! What can go wrong with a request, as data: a code, who is to blame, whether to try again, and two texts.
//!
//! It knows no HTTP status: the server has the one table from code to status.

use chorus_collab::{CallFault, FaultKind};
use std::time::Duration;

/// Stable word for a kind of failure; also the label of metrics and the `code` of the error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The body is not what the API defines.
    InvalidRequest,
    /// No such model.
    ModelNotFound,
    /// The request would need something that is known and not supported yet.
    NotSupported,
    /// No Fusion decision can serve the request.
    NoFusionDecision,
    /// No decision of the looper that was asked for can serve the request.
    NoLooperDecision,
    /// No decision matched and there is no default model.
    NoRoute,
    /// A backend is not configured so that it can be called.
    Misconfigured,
    /// A model of this process that would answer is not loaded.
    NotLoaded,
    /// Constraints removed every candidate.
    NoCandidate,
    /// The request does not fit the context window of any candidate.
    ContextLengthExceeded,
    /// The contract of the operating point refuses the request, or the route's guard the answer: an attack, or it cannot
    /// be told.
    Blocked,
    /// The budget was spent.
    BudgetExceeded,
    /// A model gave no answer.
    UpstreamFailed,
    /// A model did not answer in time.
    UpstreamTimeout,
    /// A model refused because of its own limits.
    UpstreamRateLimited,
    /// A model refused the request itself.
    UpstreamRejected,
    /// Too few panel members answered.
    QuorumNotReached,
    /// The answer does not have the form that the client asked for, after one repair.
    OutputInvalid,
    /// A limit on the caller is reached.
    RateLimited,
    /// The counters of limits on callers, which replicas share, cannot be asked.
    LimitsUnavailable,
    /// A store that replicas share cannot be asked.
    StoreUnavailable,
    /// The process is stopping.
    ShuttingDown,
    /// A fault of Chorus itself.
    Internal,
}

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// Whoever sent the request.
    Client,
    /// A model's backend.
    Upstream,
    /// Chorus, or its configuration.
    Engine,
}

/// Whether the same request may succeed later.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// No.
    Never,
    /// Yes, after a while.
    Same,
}

impl Code {
    /// Every code, for the tables of the doors and of the documentation.
    pub const ALL: [Self; 23] = [
        Self::InvalidRequest,
        Self::ModelNotFound,
        Self::NotSupported,
        Self::NoFusionDecision,
        Self::NoLooperDecision,
        Self::NoRoute,
        Self::Misconfigured,
        Self::NotLoaded,
        Self::NoCandidate,
        Self::ContextLengthExceeded,
        Self::Blocked,
        Self::BudgetExceeded,
        Self::UpstreamFailed,
        Self::UpstreamTimeout,
        Self::UpstreamRateLimited,
        Self::UpstreamRejected,
        Self::QuorumNotReached,
        Self::OutputInvalid,
        Self::RateLimited,
        Self::LimitsUnavailable,
        Self::StoreUnavailable,
        Self::ShuttingDown,
        Self::Internal,
    ];

    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::ModelNotFound => "model_not_found",
            Self::NotSupported => "not_supported",
            Self::NoFusionDecision => "no_fusion_decision",
            Self::NoLooperDecision => "no_looper_decision",
            Self::NoRoute => "no_route",
            Self::Misconfigured => "misconfigured",
            Self::NotLoaded => "not_loaded",
            Self::NoCandidate => "no_candidate",
            Self::ContextLengthExceeded => "context_length_exceeded",
            Self::Blocked => "blocked",
            Self::BudgetExceeded => "budget_exceeded",
            Self::UpstreamFailed => "upstream_failed",
            Self::UpstreamTimeout => "upstream_timeout",
            Self::UpstreamRateLimited => "upstream_rate_limited",
            Self::UpstreamRejected => "upstream_rejected",
            Self::QuorumNotReached => "quorum_not_reached",
            Self::OutputInvalid => "output_invalid",
            Self::RateLimited => "rate_limit_exceeded",
            Self::LimitsUnavailable => "limits_unavailable",
            Self::StoreUnavailable => "store_unavailable",
            Self::ShuttingDown => "shutting_down",
            Self::Internal => "internal",
        }
    }

    /// Who has to change something.
    #[must_use]
    pub fn blame(self) -> Blame {
        match self {
            Self::InvalidRequest
            | Self::ModelNotFound
            | Self::NoFusionDecision
            | Self::NoLooperDecision
            | Self::NoCandidate
            | Self::ContextLengthExceeded
            | Self::Blocked
            | Self::BudgetExceeded
            | Self::RateLimited
            | Self::UpstreamRejected => Blame::Client,
            Self::UpstreamFailed
            | Self::UpstreamTimeout
            | Self::UpstreamRateLimited
            | Self::OutputInvalid
            | Self::QuorumNotReached => Blame::Upstream,
            Self::NotSupported
            | Self::NoRoute
            | Self::Misconfigured
            | Self::NotLoaded
            | Self::LimitsUnavailable
            | Self::StoreUnavailable
            | Self::ShuttingDown
            | Self::Internal => Blame::Engine,
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub fn retry(self) -> Retry {
        match self {
            Self::UpstreamFailed
            | Self::UpstreamTimeout
            | Self::UpstreamRateLimited
            | Self::OutputInvalid
            | Self::QuorumNotReached
            | Self::RateLimited
            | Self::LimitsUnavailable
            | Self::StoreUnavailable
            | Self::ShuttingDown => Retry::Same,
            _ => Retry::Never,
        }
    }
}

/// A failed request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{public}")]
pub struct Fault {
    /// What kind.
    pub code: Code,
    /// For the client: no secret, no address, no raw text of a backend.
    pub public: String,
    /// The request field at fault.
    pub param: Option<String>,
    /// How long to wait before asking again, where that is known.
    pub retry_after: Option<Duration>,
}

impl Fault {
    /// A fault without a field.
    pub fn new(code: Code, public: impl Into<String>) -> Self {
        Self { code, public: public.into(), param: None, retry_after: None }
    }

    /// Names the request field at fault.
    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Self {
        self.param = Some(param.into());
        self
    }
}

impl From<CallFault> for Fault {
    fn from(fault: CallFault) -> Self {
        let code = match (fault.kind, fault.status) {
            (FaultKind::Timeout, _) => Code::UpstreamTimeout,
            (FaultKind::Status, Some(429)) => Code::UpstreamRateLimited,
            (FaultKind::Status, Some(400 | 404 | 413 | 422)) => Code::UpstreamRejected,
            (FaultKind::Budget, _) => Code::BudgetExceeded,
            (FaultKind::Ineligible, _) => Code::NoCandidate,
            (FaultKind::Misconfigured, _) => Code::Misconfigured,
            _ => Code::UpstreamFailed,
        };
        Self::new(code, fault.public)
    }
}
