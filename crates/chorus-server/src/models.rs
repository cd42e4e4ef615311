//! `GET /v1/models` and `GET /v1/models/{id}`.

use crate::door::Door;
use crate::reply;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use chorus_engine::{Code, Fault};
use http::{HeaderMap, StatusCode};

/// The list.
pub(crate) async fn list(State(door): State<Door>) -> Response {
    let list = door.engine.models();
    reply::json(StatusCode::OK, HeaderMap::new(), serde_json::to_vec(&list).unwrap_or_default())
}

/// One of them; names hold slashes, so that the rest of the path is the name. What is no text is no name.
pub(crate) async fn one(State(door): State<Door>, id: Result<Path<String>, PathRejection>) -> Response {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    match door.engine.model(&id) {
        Some(card) => {
            reply::json(StatusCode::OK, HeaderMap::new(), serde_json::to_vec(&card).unwrap_or_default())
        }
        None => reply::fault(&Fault::new(Code::ModelNotFound, "no such model").at("model"), HeaderMap::new()),
    }
}
