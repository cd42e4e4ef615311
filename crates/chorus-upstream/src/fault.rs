//! Why a call to a backend gave no answer: what happened, who is to blame, and whether to try again, as data.
//!
//! A fault has two texts: `Display` for the log (may name an address, never a credential) and
//! [`UpstreamFault::public`] for the client. It does not know which status our door answers with.

use chorus_wire::ErrorBody;
use std::time::Duration;

/// Why a call to a backend gave no answer, or broke off.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamFault {
    /// No connection: name resolution, refused, TLS.
    #[error("no connection to the backend: {detail}")]
    Connect {
        /// For the log.
        detail: String,
    },
    /// A time limit ran out.
    #[error("the backend exceeded the {stage} limit of {} ms", limit.as_millis())]
    Timeout {
        /// Which limit.
        stage: Stage,
        /// The limit that was set.
        limit: Duration,
    },
    /// The connection broke before the answer began.
    #[error("the connection broke before the answer began: {detail}")]
    Transport {
        /// For the log.
        detail: String,
    },
    /// The answer began and broke off: no `[DONE]`, no finish reason, or fewer bytes than announced (case A13).
    #[error("the answer broke off: {detail}")]
    Truncated {
        /// For the log.
        detail: String,
    },
    /// The backend answered with a status outside 200..=299; redirects too, which are never followed (case E08).
    #[error("the backend answered {status}{}", said(body.as_ref()))]
    Status {
        /// 300..=599.
        status: u16,
        /// The error it sent, where it could be read.
        body: Option<ErrorBody>,
        /// How long it asks us to wait (`Retry-After` in seconds, or `retry-after-ms`).
        retry_after: Option<Duration>,
    },
    /// The backend answered 200 and then sent an error (case A12).
    #[error("the backend answered 200 and then sent an error{}", said(Some(body)))]
    InBand {
        /// The status that its `code` names, if it is one in 400..=599.
        status: Option<u16>,
        /// The error it sent.
        body: ErrorBody,
    },
    /// The answer cannot be read: not HTTP, not JSON, not UTF-8, or not a chat completion.
    #[error("the backend's answer cannot be read: {detail}")]
    Malformed {
        /// For the log.
        detail: String,
    },
    /// The answer, or one event of it, is longer than allowed.
    #[error("the backend's answer is longer than {limit_bytes} bytes ({bound})")]
    TooLarge {
        /// Name of the bound: `max_response_bytes`, `max_event_bytes` or `max_head_bytes`.
        bound: &'static str,
        /// Its value.
        limit_bytes: usize,
    },
    /// The request cannot be said in the backend's dialect.
    #[error("the request cannot be said in the backend's dialect: {detail}")]
    Untranslatable {
        /// What it has no words for.
        detail: String,
    },
    /// The caller's header cannot be sent.
    #[error("the header `{name}` cannot be sent")]
    Header {
        /// Its name; the value may be a secret.
        name: String,
    },
}

/// Which time limit ran out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Until a connection is there, TLS included.
    Connect,
    /// From the connection to the first byte of the answer's body.
    FirstByte,
    /// Between two reads of the body.
    Idle,
    /// The whole attempt.
    Total,
}

impl std::fmt::Display for Stage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Connect => "connect",
            Self::FirstByte => "first byte",
            Self::Idle => "idle",
            Self::Total => "total",
        })
    }
}

/// Who has to change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The request itself was refused.
    Client,
    /// The backend, or the way to it.
    Upstream,
    /// Our own configuration: a credential, a path, a model name.
    Engine,
}

/// Whether another attempt may help.
///
/// Holds only while nothing of the answer was passed on: after that no attempt may be repeated (case A15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Every backend would refuse it.
    Never,
    /// The same backend may answer next time.
    Same,
    /// Only another backend may answer.
    Other,
}

impl UpstreamFault {
    /// A sentence for the client: no secret, no address, none of the backend's own text.
    #[must_use]
    pub fn public(&self) -> String {
        match self {
            Self::Connect { .. } => "the model's backend could not be reached".to_owned(),
            Self::Timeout { stage, .. } => {
                format!("the model's backend did not answer in time ({stage} limit)")
            }
            Self::Transport { .. } => "the connection to the model's backend broke".to_owned(),
            Self::Truncated { .. } => "the model's backend broke off its answer".to_owned(),
            Self::Status { status, .. } => format!("the model's backend answered with status {status}"),
            Self::InBand { status: Some(status), .. } => {
                format!("the model's backend reported an error with status {status}")
            }
            Self::InBand { status: None, .. } => "the model's backend reported an error".to_owned(),
            Self::Malformed { .. } => "the answer of the model's backend could not be read".to_owned(),
            Self::TooLarge { bound, limit_bytes } => {
                format!("the answer of the model's backend is longer than {limit_bytes} bytes ({bound})")
            }
            Self::Untranslatable { .. } => {
                "the request cannot be said in the dialect of the model's backend".to_owned()
            }
            Self::Header { name } => format!("the header `{name}` cannot be sent to a model's backend"),
        }
    }

    /// Who has to change something.
    #[must_use]
    pub fn blame(&self) -> Blame {
        match self.status() {
            Some(400 | 413 | 415 | 422) => Blame::Client,
            Some(300..=399 | 401..=407 | 410) => Blame::Engine,
            _ if matches!(self, Self::Header { .. } | Self::Untranslatable { .. }) => Blame::Client,
            _ => Blame::Upstream,
        }
    }

    /// Whether another attempt may help.
    ///
    /// A 400 is the request's own fault everywhere. A 413 or 422 is one backend's opinion (another has a larger
    /// window or other rules: case B08), a 4xx about credentials, paths and names one backend's configuration.
    #[must_use]
    pub fn retry(&self) -> Retry {
        match self {
            Self::Header { .. } => Retry::Never,
            Self::Status { .. } | Self::InBand { .. } => match self.status() {
                Some(400) => Retry::Never,
                None | Some(408 | 409 | 425 | 429 | 500..=599) => Retry::Same,
                Some(_) => Retry::Other,
            },
            Self::Connect { .. } | Self::Transport { .. } | Self::Truncated { .. } => Retry::Same,
            Self::Timeout { .. }
            | Self::Malformed { .. }
            | Self::TooLarge { .. }
            | Self::Untranslatable { .. } => Retry::Other,
        }
    }

    /// The status that the backend gave, in the head or in band.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            Self::InBand { status, .. } => *status,
            _ => None,
        }
    }

    /// How long the backend asked us to wait.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::Status { retry_after, .. } => *retry_after,
            _ => None,
        }
    }

    /// A stable word for metrics and records.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Connect { .. } => "upstream_connect",
            Self::Timeout { .. } => "upstream_timeout",
            Self::Transport { .. } => "upstream_transport",
            Self::Truncated { .. } => "upstream_truncated",
            Self::Status { .. } => "upstream_status",
            Self::InBand { .. } => "upstream_error",
            Self::Malformed { .. } => "upstream_malformed",
            Self::TooLarge { .. } => "upstream_too_large",
            Self::Untranslatable { .. } => "untranslatable",
            Self::Header { .. } => "header_not_sendable",
        }
    }

    /// An error object that stood where an answer should be.
    pub(crate) fn in_band(body: ErrorBody) -> Self {
        let status = body.code.as_ref().and_then(|code| code.parse().ok());
        Self::InBand { status: status.filter(|code| (400..=599).contains(code)), body }
    }

    pub(crate) fn malformed(detail: impl std::fmt::Display) -> Self {
        Self::Malformed { detail: detail.to_string() }
    }

    pub(crate) fn untranslatable(detail: impl std::fmt::Display) -> Self {
        Self::Untranslatable { detail: detail.to_string() }
    }

    pub(crate) fn truncated(detail: impl std::fmt::Display) -> Self {
        Self::Truncated { detail: detail.to_string() }
    }
}

/// The kind and code of an error, without its free text: backends quote credentials and prompts in it.
fn said(body: Option<&ErrorBody>) -> String {
    let Some(body) = body else { return String::new() };
    match &body.code {
        Some(code) => format!(" ({}, {code})", body.kind),
        None => format!(" ({})", body.kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(status: u16) -> UpstreamFault {
        UpstreamFault::Status { status, body: None, retry_after: None }
    }

    #[test]
    fn blame_and_retry_by_status() {
        let rows = [
            (307, Blame::Engine, Retry::Other),
            (400, Blame::Client, Retry::Never),
            (401, Blame::Engine, Retry::Other),
            (404, Blame::Engine, Retry::Other),
            (408, Blame::Upstream, Retry::Same),
            (413, Blame::Client, Retry::Other),
            (422, Blame::Client, Retry::Other),
            (429, Blame::Upstream, Retry::Same),
            (500, Blame::Upstream, Retry::Same),
            (503, Blame::Upstream, Retry::Same),
        ];
        for (code, blame, retry) in rows {
            assert_eq!((status(code).blame(), status(code).retry()), (blame, retry), "{code}");
        }
    }

    #[test]
    fn texts_do_not_repeat_what_the_backend_wrote() {
        let body = ErrorBody {
            message: "Incorrect API key provided: sk-live-123".to_owned(),
            kind: "invalid_request_error".to_owned(),
            param: None,
            code: Some("502".to_owned()),
        };
        let fault = UpstreamFault::in_band(body.clone());
        assert_eq!(fault.status(), Some(502));
        let refused = UpstreamFault::Status { status: 401, body: Some(body), retry_after: None };
        for fault in [fault, refused] {
            assert!(!fault.public().contains("sk-live"), "{}", fault.public());
            assert!(!fault.to_string().contains("sk-live"), "{fault}");
        }
    }
}
