//! What the handlers of this plane share: a body as a type, an answer as JSON, and how long it took.

use crate::door::Door;
use crate::{body, reply};
use axum::body::Body;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::response::{IntoResponse, Response};
use chorus_engine::{Code, Fault};
use http::{HeaderMap, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::Instant;

/// An answer, or the response that refuses one.
pub(super) type Answered = Result<Response, Refused>;

/// The response that refuses a request.
#[derive(Debug)]
pub(super) struct Refused(Box<Response>);

impl From<Response> for Refused {
    fn from(response: Response) -> Self {
        Self(Box::new(response))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Most texts of one request (`max_texts`).
pub(super) const MAX_TEXTS: usize = 100;

/// The body as `T`; an unknown field is an error, so that no option is ignored in silence (case B12).
///
/// # Errors
/// The response that refuses it.
pub(super) async fn read<T: DeserializeOwned>(door: &Door, body: Body) -> Result<T, Refused> {
    let bytes = body::read(body, &door.limits).await?;
    serde_json::from_slice(&bytes).map_err(|why| fault(&invalid(why.to_string())).into())
}

/// The query as `T`; an unknown name is an error.
///
/// # Errors
/// The response that refuses it.
pub(super) fn queried<T>(query: Result<Query<T>, QueryRejection>) -> Result<T, Refused> {
    query.map(|Query(value)| value).map_err(|why| fault(&invalid(why.body_text())).into())
}

/// 200, or the fault.
pub(super) fn answer<T: Serialize>(answered: Result<T, Fault>) -> Response {
    match answered {
        Ok(body) => {
            let bytes = serde_json::to_vec(&body).unwrap_or_default();
            reply::json(StatusCode::OK, HeaderMap::new(), bytes)
        }
        Err(why) => fault(&why),
    }
}

/// A fault as a response.
pub(super) fn fault(fault: &Fault) -> Response {
    reply::fault(fault, HeaderMap::new())
}

/// The body is not what the endpoint takes.
pub(super) fn invalid(message: impl Into<String>) -> Fault {
    Fault::new(Code::InvalidRequest, message)
}

/// Refuses no text, or too many.
///
/// # Errors
/// [`Code::InvalidRequest`].
pub(super) fn bounded(texts: &[String], field: &str) -> Result<(), Fault> {
    match texts.len() {
        0 => Err(invalid(format!("`{field}` holds no text")).at(field)),
        n if n > MAX_TEXTS => {
            Err(invalid(format!("`{field}` holds {n} texts; {MAX_TEXTS} are the most (max_texts)")).at(field))
        }
        _ => Ok(()),
    }
}

/// Whole milliseconds since then.
pub(super) fn millis(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)
}
