//! The error shape of the Messages protocol: `{"type": "error", "error": {"type", "message"}}`. It knows no status.

use serde::Serialize;

#[derive(Serialize)]
struct Envelope<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    error: Inner<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<&'a str>,
}

#[derive(Serialize)]
struct Inner<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    message: &'a str,
    /// Ours: the stable word of the fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
}

/// An error as JSON text; `kind` is one of the protocol's error types, such as `invalid_request_error`.
#[must_use]
pub fn error_bytes(kind: &str, message: &str, code: Option<&str>, request_id: Option<&str>) -> Vec<u8> {
    let envelope = Envelope { kind: "error", error: Inner { kind, message, code }, request_id };
    // Only strings, written to memory: there is nothing that could fail.
    serde_json::to_vec(&envelope).unwrap_or_default()
}
