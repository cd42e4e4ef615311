//! Faults and bodies as HTTP responses.

use crate::status;
use axum::body::Body;
use axum::response::Response;
use chorus_engine::{Code, Fault, Retry, Run};
use chorus_wire::{ErrorBody, RequestFault};
use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

/// A JSON body with headers.
pub(crate) fn json(status: StatusCode, mut headers: HeaderMap, body: Vec<u8>) -> Response {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

/// A fault as the client sees it.
pub(crate) fn fault(fault: &Fault, headers: HeaderMap) -> Response {
    let status = status::row(fault.code).status;
    let mut response = json(status, headers, error_body(fault).to_bytes());
    if fault.code.retry() == Retry::Same && fault.code != Code::Internal {
        let seconds = fault.retry_after.map_or(1, |wait| wait.as_secs_f64().ceil().max(1.0) as u64);
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// A body that is not what the door takes.
pub(crate) fn bad_request(bad: RequestFault) -> Fault {
    Fault { param: bad.param, ..Fault::new(Code::InvalidRequest, bad.message) }
}

/// The error shape of a fault.
pub(crate) fn error_body(fault: &Fault) -> ErrorBody {
    ErrorBody {
        message: fault.public.clone(),
        kind: status::row(fault.code).kind.to_owned(),
        param: fault.param.clone(),
        code: Some(fault.code.as_str().to_owned()),
    }
}

/// The fault of a run that a stop cuts off; its record will say the same.
pub(crate) fn stopping(run: &Run) -> Fault {
    run.cut(Code::ShuttingDown);
    Fault::new(Code::ShuttingDown, "the server is stopping")
}

/// A refusal of the door itself, such as 404, 405, 408 or 413.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    let body = ErrorBody {
        message: message.to_owned(),
        kind: "invalid_request_error".to_owned(),
        param: None,
        code: Some(code.to_owned()),
    };
    json(status, HeaderMap::new(), body.to_bytes())
}
