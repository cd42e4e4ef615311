//! `POST /api/v1/eval`: which decision a request reaches, and why, without calling a model. Source: contract §4.2.

use crate::door::Door;
use crate::eval_shape::{EvalQuery, EvalResponse, request_of};
use crate::{body, reply};
use axum::body::Body;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use chorus_engine::{Code, Fault};
use http::{HeaderMap, StatusCode};

/// The handler.
pub(crate) async fn eval(
    State(door): State<Door>,
    query: Result<Query<EvalQuery>, QueryRejection>,
    body: Body,
) -> Response {
    let Ok(Query(query)) = query else {
        let fault = Fault::new(Code::InvalidRequest, "`trace` must be `true` or `false`").at("trace");
        return reply::fault(&fault, HeaderMap::new());
    };
    let bytes = match body::read(body, &door.limits).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refusal,
    };
    let auto = door.engine.serving().spec.global.auto_names.first().cloned().unwrap_or_default();
    let (request, trace) = match request_of(&bytes, &auto, &door.limits.request) {
        Ok(asked) => asked,
        Err(fault) => return reply::fault(&fault, HeaderMap::new()),
    };
    let text = request.last_user_text().to_owned();
    let requested = request.model().to_owned();
    match door.engine.evaluate(request).await {
        Err(fault) => reply::fault(&fault, HeaderMap::new()),
        Ok(evaluation) => {
            let shape = EvalResponse::of(&evaluation, text, requested, trace || query.trace);
            let bytes = serde_json::to_vec(&shape).unwrap_or_default();
            reply::json(StatusCode::OK, HeaderMap::new(), bytes)
        }
    }
}
