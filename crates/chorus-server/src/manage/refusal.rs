//! Refused changes as responses: one line a code.

use crate::reply;
use axum::response::Response;
use chorus_engine::reload::Refusal;
use chorus_wire::ErrorBody;
use http::{HeaderMap, StatusCode};
use serde_json::Value;

/// One line of the table: code, status, `error.type`.
type Row = (&'static str, StatusCode, &'static str);

const CLIENT: &str = "invalid_request_error";
const CONFIGURATION: &str = "configuration_error";

/// What the management plane refuses with, beside the codes of the engine.
const ROWS: &[Row] = &[
    ("invalid_configuration", StatusCode::UNPROCESSABLE_ENTITY, CLIENT),
    ("configuration_not_ready", StatusCode::UNPROCESSABLE_ENTITY, CLIENT),
    ("masked_credential", StatusCode::UNPROCESSABLE_ENTITY, CLIENT),
    ("precondition_required", StatusCode::PRECONDITION_REQUIRED, CLIENT),
    ("precondition_failed", StatusCode::PRECONDITION_FAILED, CLIENT),
    ("configuration_not_writable", StatusCode::CONFLICT, CLIENT),
    ("configuration_conflict", StatusCode::CONFLICT, CLIENT),
    ("version_not_found", StatusCode::NOT_FOUND, CLIENT),
    ("rollout_conflict", StatusCode::CONFLICT, CLIENT),
    ("rollout_not_found", StatusCode::NOT_FOUND, CLIENT),
    ("foreign_host", StatusCode::FORBIDDEN, CLIENT),
    ("configuration_unreadable", StatusCode::SERVICE_UNAVAILABLE, CONFIGURATION),
    ("configuration_write_failed", StatusCode::INTERNAL_SERVER_ERROR, CONFIGURATION),
];

/// A refused change.
pub(super) fn of(refusal: &Refusal) -> Response {
    let code = match refusal {
        Refusal::Rejected(_) => "invalid_configuration",
        Refusal::Unready(_) => "configuration_not_ready",
        Refusal::Masked(_) => "masked_credential",
        Refusal::Stale(_) => "precondition_failed",
        Refusal::NotWritable => "configuration_not_writable",
        Refusal::FileDiffers => "configuration_conflict",
        Refusal::NoVersion(_) => "version_not_found",
        Refusal::NoRollouts | Refusal::RolloutStands => "rollout_conflict",
        Refusal::NoRollout => "rollout_not_found",
        Refusal::Unreadable(_) => "configuration_unreadable",
        Refusal::Unwritable(_) => "configuration_write_failed",
    };
    respond(code, refusal.to_string(), serde_json::to_value(refusal.diagnostics()).unwrap_or_default())
}

/// A change that says nothing about what it is based on.
pub(super) fn precondition_required() -> Response {
    let text =
        "send `If-Match` with the ETag that `GET /config/router` gave, so that nobody's change is lost";
    respond("precondition_required", text.to_owned(), Value::Null)
}

/// A page of another site that got hold of this address.
pub(super) fn foreign_host() -> Response {
    let text = "changes are taken only by a loopback name in `Host` (localhost, 127.0.0.1, [::1])";
    respond("foreign_host", text.to_owned(), Value::Null)
}

fn respond(code: &str, message: String, diagnostics: Value) -> Response {
    let row = ROWS.iter().find(|row| row.0 == code);
    let (status, kind) = row.map_or((StatusCode::INTERNAL_SERVER_ERROR, CONFIGURATION), |row| (row.1, row.2));
    let body = ErrorBody { message, kind: kind.to_owned(), param: None, code: Some(code.to_owned()) };
    let bytes = body.to_bytes();
    let listed = diagnostics.as_array().filter(|listed| !listed.is_empty());
    let bytes = match (listed, serde_json::from_slice::<Value>(&bytes)) {
        (Some(_), Ok(mut whole)) => {
            if let Some(fields) = whole.as_object_mut() {
                fields.insert("diagnostics".to_owned(), diagnostics);
            }
            whole.to_string().into_bytes()
        }
        _ => bytes,
    };
    reply::json(status, HeaderMap::new(), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_refusal_is_documented() {
        let page = include_str!("../../../../docs/errors.md");
        for (code, status, kind) in ROWS {
            let line = format!("| `{code}` | {} | `{kind}` |", status.as_u16());
            assert!(page.contains(&line), "docs/errors.md lacks: {line}");
        }
    }
}
