//! Reading a request's body once, within the door's bounds.

use crate::door::DoorLimits;
use crate::reply::refusal;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// Most of a body that is too large that is read on, in multiples of `max_body_bytes`; nothing of it is kept.
const DISCARDED: usize = 4;

/// The whole body.
///
/// # Errors
/// The response that refuses it: 413 over `max_body_bytes`, 408 over `body_timeout`, 400 when it breaks off.
pub(crate) async fn read(mut body: Body, limits: &DoorLimits) -> Result<Bytes, Response> {
    let limited = Limited::new(&mut body, limits.max_body_bytes).collect();
    match tokio::time::timeout(limits.body_timeout, limited).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            discard(body, limits).await;
            let text = format!("the body is larger than {} bytes (max_body_bytes)", limits.max_body_bytes);
            Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", &text))
        }
        Ok(Err(_)) => Err(refusal(StatusCode::BAD_REQUEST, "body_incomplete", "the body broke off")),
        Err(_) => {
            let seconds = limits.body_timeout.as_secs_f32();
            let text = format!("the body did not arrive within {seconds} s (body_timeout)");
            Err(refusal(StatusCode::REQUEST_TIMEOUT, "body_timeout", &text))
        }
    }
}

/// Reads on without keeping: most clients read no answer before they have sent everything, and see a broken
/// connection in place of a 413 when the door closes first.
async fn discard(mut body: Body, limits: &DoorLimits) {
    let reading = async {
        let mut left = limits.max_body_bytes.saturating_mul(DISCARDED);
        while let Some(Ok(frame)) = body.frame().await
            && left > 0
        {
            left = left.saturating_sub(frame.data_ref().map_or(0, Bytes::len));
        }
    };
    // Whoever is still sending by then is cut off.
    let _ = tokio::time::timeout(limits.body_timeout, reading).await;
}
