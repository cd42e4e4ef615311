//! Attempts at model calls as they are kept: whose, for what request, when they ended, and what came of them.
//!
//! It knows no order of playing. **Invariant:** of a failure is kept what decides whether another attempt is made.

use crate::backends::{Missed, Why};
use chorus_collab::{CallFault, FaultKind};
use chorus_upstream::{Stage, UpstreamFault};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::time::Duration;

/// One attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(super) model: String,
    pub(super) backend: String,
    /// Digest of the request that the backend got.
    pub(super) request: String,
    /// When it ended, or began to answer; `None` where nobody waited for it.
    pub(super) ended: Option<Ended>,
    pub(super) outcome: Outcome,
}

/// When an attempt ended.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Ended {
    /// How many had ended before.
    pub(super) after: usize,
    /// How many had begun by then.
    pub(super) begun: usize,
}

/// What came of an attempt.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Outcome {
    /// Nobody waited for it.
    Open,
    /// A whole answer.
    Reply(Box<RawValue>),
    /// A stream, as far as somebody read it.
    Stream { chunks: Vec<Box<RawValue>>, end: End },
    /// None.
    Fault(KeptFault),
}

/// How a stream ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum End {
    Whole,
    Broken(KeptFault),
    /// Nobody read on.
    Left,
}

/// A [`CallFault`], and what decides whether another attempt is made.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct KeptFault {
    pub(super) kind: FaultKind,
    pub(super) public: String,
    pub(super) status: Option<u16>,
    pub(super) why: KeptWhy,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum KeptWhy {
    Ours,
    Unavailable,
    Upstream { code: String, retry_after_ms: Option<u64> },
}

impl KeptFault {
    pub(super) fn of(missed: &Missed) -> Self {
        let why = match &missed.why {
            Why::Ours => KeptWhy::Ours,
            Why::Unavailable(_) => KeptWhy::Unavailable,
            Why::Upstream(fault) => KeptWhy::Upstream {
                code: fault.code().to_owned(),
                retry_after_ms: fault
                    .retry_after()
                    .map(|it| u64::try_from(it.as_millis()).unwrap_or(u64::MAX)),
            },
        };
        Self { why, ..Self::ours(&missed.fault) }
    }

    pub(super) fn ours(fault: &CallFault) -> Self {
        Self { kind: fault.kind, public: fault.public.clone(), status: fault.status, why: KeptWhy::Ours }
    }

    pub(super) fn missed(self) -> Missed {
        let why = match self.why {
            KeptWhy::Ours => Why::Ours,
            KeptWhy::Unavailable => Why::Unavailable("backend_busy"),
            KeptWhy::Upstream { code, retry_after_ms } => {
                let retry_after = retry_after_ms.map(Duration::from_millis);
                Why::Upstream(Box::new(upstream(&code, self.status, retry_after)))
            }
        };
        Missed { fault: CallFault { kind: self.kind, public: self.public, status: self.status }, why }
    }
}

/// A fault of that code, as far as it decides whether another attempt is made.
fn upstream(code: &str, status: Option<u16>, retry_after: Option<Duration>) -> UpstreamFault {
    let detail = "recorded".to_owned();
    match (code, status) {
        ("upstream_connect", _) => UpstreamFault::Connect { detail },
        ("upstream_timeout", _) => UpstreamFault::Timeout { stage: Stage::Total, limit: Duration::ZERO },
        ("upstream_truncated", _) => UpstreamFault::Truncated { detail },
        ("upstream_status" | "upstream_error", Some(status)) => {
            UpstreamFault::Status { status, body: None, retry_after }
        }
        ("untranslatable", _) => UpstreamFault::Untranslatable { detail },
        ("upstream_malformed" | "upstream_too_large", _) => UpstreamFault::Malformed { detail },
        ("header_not_sendable", _) => UpstreamFault::Header { name: detail },
        _ => UpstreamFault::Transport { detail },
    }
}
