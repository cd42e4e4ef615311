//! Refusals of these doors: one line a code.

use crate::reply;
use axum::response::{IntoResponse, Response};
use chorus_engine::{Code, Fault};
use chorus_store::RecallFault;
use chorus_wire::ErrorBody;
use http::{HeaderMap, StatusCode};

/// One line of the table: code, status.
#[cfg(test)]
type Row = (&'static str, StatusCode);

/// What these doors refuse with, beside the codes of the engine.
#[cfg(test)]
pub(super) const ROWS: &[Row] = &[
    ("identity_required", StatusCode::UNAUTHORIZED),
    ("file_not_found", StatusCode::NOT_FOUND),
    ("vector_store_not_found", StatusCode::NOT_FOUND),
    ("memory_not_found", StatusCode::NOT_FOUND),
    ("recall_full", StatusCode::PAYLOAD_TOO_LARGE),
    ("recall_store_failed", StatusCode::SERVICE_UNAVAILABLE),
    ("upload_not_readable", StatusCode::BAD_REQUEST),
];

/// The response that refuses a request.
#[derive(Debug)]
pub(crate) struct Refused(Box<Response>);

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        reply::fault(&fault, HeaderMap::new()).into()
    }
}

impl From<RecallFault> for Refused {
    fn from(fault: RecallFault) -> Self {
        match fault {
            RecallFault::Bound { .. } => {
                refusal(StatusCode::PAYLOAD_TOO_LARGE, "recall_full", &fault.to_string())
            }
            RecallFault::Io(_) => {
                tracing::error!(%fault, "memories and files cannot be reached");
                let text = "the store of memories and files cannot be used; the log of the server says why";
                refusal(StatusCode::SERVICE_UNAVAILABLE, "recall_store_failed", text)
            }
        }
    }
}

/// A refusal of these doors.
pub(super) fn refusal(status: StatusCode, code: &'static str, message: &str) -> Refused {
    reply::refusal(status, code, message).into()
}

/// What is not there, or not the caller's.
pub(super) fn not_found(code: &'static str, what: &str, id: &str) -> Refused {
    let shown: String = id.chars().take(80).collect();
    refusal(StatusCode::NOT_FOUND, code, &format!("there is no {what} `{shown}` here"))
}

/// A field that is not what the door takes.
pub(super) fn bad(param: &str, message: impl Into<String>) -> Refused {
    Fault::new(Code::InvalidRequest, message).at(param).into()
}

/// A file that cannot be read, as OpenAI says it.
pub(super) fn unreadable(message: &str) -> Refused {
    let body = ErrorBody {
        message: message.to_owned(),
        kind: "invalid_request_error".to_owned(),
        param: Some("file".to_owned()),
        code: Some("upload_not_readable".to_owned()),
    };
    reply::json(StatusCode::BAD_REQUEST, HeaderMap::new(), body.to_bytes()).into()
}

/// 200 with a body.
pub(super) fn answer(body: &serde_json::Value) -> Response {
    reply::json(StatusCode::OK, HeaderMap::new(), body.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_documented() {
        let page = include_str!("../../../../docs/errors.md");
        for (code, status) in ROWS {
            let line = format!("| `{code}` | {} | `invalid_request_error` |", status.as_u16());
            assert!(page.contains(&line), "docs/errors.md lacks: {line}");
        }
    }
}
