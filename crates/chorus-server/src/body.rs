//! Reading a request's body once, within the door's bounds.

use crate::door::DoorLimits;
use crate::reply::refusal;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// The whole body.
///
/// # Errors
/// The response that refuses it: 413 over `max_body_bytes`, 408 over `body_timeout`, 400 when it breaks off.
pub(crate) async fn read(body: Body, limits: &DoorLimits) -> Result<Bytes, Response> {
    let limited = Limited::new(body, limits.max_body_bytes).collect();
    match tokio::time::timeout(limits.body_timeout, limited).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let text = format!(
                "the body is larger than {} bytes (max_body_bytes)",
                limits.max_body_bytes
            );
            Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &text))
        }
        Ok(Err(_)) => Err(refusal(
            StatusCode::BAD_REQUEST,
            "body_incomplete",
            "the body broke off",
        )),
        Err(_) => {
            let text = format!(
                "the body did not arrive within {} s (body_timeout)",
                limits.body_timeout.as_secs()
            );
            Err(refusal(StatusCode::REQUEST_TIMEOUT, "body_timeout", &text))
        }
    }
}
