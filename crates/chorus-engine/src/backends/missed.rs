//! A call that gave no answer: what the looper is told, and what decides whether another attempt is made.

use chorus_collab::{CallFault, FaultKind};
use chorus_upstream::UpstreamFault;
use std::time::Duration;

/// An attempt without an answer.
#[derive(Debug)]
pub(crate) struct Missed {
    /// What the looper is told.
    pub(crate) fault: CallFault,
    /// Why.
    pub(crate) why: Why,
}

/// Why an attempt gave no answer.
#[derive(Debug)]
pub(crate) enum Why {
    /// The backend failed.
    Upstream(Box<UpstreamFault>),
    /// No backend of the model may be called now.
    Unavailable(&'static str),
    /// Our own doing: a spent budget, a setting, a request that no model can serve. No other attempt helps.
    Ours,
}

impl Why {
    /// A short word for the record.
    pub(crate) fn word(&self) -> String {
        match self {
            Self::Upstream(fault) => word_of(fault),
            Self::Unavailable(word) => (*word).to_owned(),
            Self::Ours => "own".to_owned(),
        }
    }
}

/// A short word for a backend's failure.
pub(crate) fn word_of(fault: &UpstreamFault) -> String {
    match fault.status() {
        Some(status) => format!("{} {status}", fault.code()),
        None => fault.code().to_owned(),
    }
}

impl Missed {
    /// How long the backend asks to be left alone.
    pub(crate) fn asked_wait(&self) -> Option<Duration> {
        match &self.why {
            Why::Upstream(fault) => fault.retry_after(),
            Why::Unavailable(_) | Why::Ours => None,
        }
    }
}

impl From<CallFault> for Missed {
    fn from(fault: CallFault) -> Self {
        Self { fault, why: Why::Ours }
    }
}

impl From<UpstreamFault> for Missed {
    fn from(fault: UpstreamFault) -> Self {
        Self { fault: call_fault(&fault), why: Why::Upstream(Box::new(fault)) }
    }
}

/// All of a call's time went by before its turn came (`max_concurrency`).
pub(crate) fn too_busy() -> Missed {
    let public = "the model's backend had no turn for the call in its time".to_owned();
    let fault = CallFault { kind: FaultKind::Timeout, public, status: None };
    Missed { fault, why: Why::Unavailable("backend_busy") }
}

/// What is told of a backend's failure. It goes to the log once, here.
pub(crate) fn call_fault(fault: &UpstreamFault) -> CallFault {
    let kind = match fault {
        UpstreamFault::Timeout { .. } => FaultKind::Timeout,
        UpstreamFault::Status { .. } | UpstreamFault::InBand { .. } => FaultKind::Status,
        UpstreamFault::Untranslatable { .. } => FaultKind::Ineligible,
        _ => FaultKind::Transport,
    };
    tracing::warn!(%fault, "a call to a backend failed");
    CallFault { kind, public: fault.public(), status: fault.status() }
}

/// What is wrong is for the operator, not for the client.
pub(crate) fn misconfigured(detail: &str) -> CallFault {
    tracing::error!(detail, "a backend cannot be called");
    let public = "the backend of the model is not configured; the log of the server says what is missing";
    CallFault { kind: FaultKind::Misconfigured, public: public.to_owned(), status: None }
}
