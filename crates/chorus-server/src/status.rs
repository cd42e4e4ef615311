//! The error table: one line a code. Status, the API's error type, and the anchor in `docs/errors.md`.

use chorus_engine::Code;
use http::StatusCode;

/// One line of the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// HTTP status.
    pub status: StatusCode,
    /// `error.type` of the body.
    pub kind: &'static str,
}

/// The line of a code.
#[must_use]
pub fn row(code: Code) -> Row {
    let (status, kind) = match code {
        Code::InvalidRequest => (StatusCode::BAD_REQUEST, "invalid_request_error"),
        Code::ModelNotFound => (StatusCode::NOT_FOUND, "invalid_request_error"),
        Code::NotSupported => (StatusCode::NOT_IMPLEMENTED, "not_supported_error"),
        Code::NoFusionDecision | Code::NoLooperDecision | Code::NoCandidate | Code::ContextLengthExceeded => {
            (StatusCode::BAD_REQUEST, "invalid_request_error")
        }
        Code::NoRoute | Code::Misconfigured | Code::NotLoaded => {
            (StatusCode::SERVICE_UNAVAILABLE, "configuration_error")
        }
        Code::Blocked => (StatusCode::FORBIDDEN, "policy_error"),
        Code::BudgetExceeded => (StatusCode::PAYMENT_REQUIRED, "budget_error"),
        Code::UpstreamFailed | Code::QuorumNotReached | Code::OutputInvalid => {
            (StatusCode::BAD_GATEWAY, "upstream_error")
        }
        Code::UpstreamTimeout => (StatusCode::GATEWAY_TIMEOUT, "upstream_error"),
        Code::RateLimited | Code::UpstreamRateLimited => (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error"),
        Code::UpstreamRejected => (StatusCode::BAD_REQUEST, "upstream_error"),
        Code::ShuttingDown | Code::LimitsUnavailable | Code::StoreUnavailable => {
            (StatusCode::SERVICE_UNAVAILABLE, "server_error")
        }
        Code::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "server_error"),
    };
    Row { status, kind }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_engine::Blame;

    /// A client's fault is 4xx; everybody else's is not, but for limits that a client should wait out.
    #[test]
    fn blame_and_status_agree() {
        for code in Code::ALL {
            let client = row(code).status.is_client_error();
            let waits = code == Code::UpstreamRateLimited;
            assert_eq!(client, code.blame() == Blame::Client || waits, "{code:?}");
        }
    }

    #[test]
    fn every_code_is_documented() {
        let page = include_str!("../../../docs/errors.md");
        for code in Code::ALL {
            let line =
                format!("| `{}` | {} | `{}` |", code.as_str(), row(code).status.as_u16(), row(code).kind);
            assert!(page.contains(&line), "docs/errors.md lacks: {line}");
        }
    }
}
