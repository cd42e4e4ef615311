//! `GET /v1/models` and `GET /v1/models/{id}`, in OpenAI's words, or in Anthropic's for its clients.
//!
//! **Invariant:** `context_window` stands only where a request can rely on it (case B19).

use crate::door::Door;
use crate::reply;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use chorus_engine::{Code, Fault};
use chorus_wire::ModelCard;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

/// The header that Anthropic's clients send with every request.
const ANTHROPIC: &str = "anthropic-version";

/// The list.
pub(crate) async fn list(State(door): State<Door>, headers: HeaderMap) -> Response {
    let list = door.engine.models();
    let body = if headers.contains_key(ANTHROPIC) {
        let data: Vec<Value> = list.data.iter().map(anthropic).collect();
        let id = |card: Option<&ModelCard>| card.map(|card| card.id.clone());
        let (first, last) = (id(list.data.first()), id(list.data.last()));
        json!({"data": data, "has_more": false, "first_id": first, "last_id": last}).to_string().into_bytes()
    } else {
        serde_json::to_vec(&list).unwrap_or_default()
    };
    reply::json(StatusCode::OK, HeaderMap::new(), body)
}

/// One of them; names hold slashes, so that the rest of the path is the name. What is no text is no name.
pub(crate) async fn one(
    State(door): State<Door>,
    headers: HeaderMap,
    id: Result<Path<String>, PathRejection>,
) -> Response {
    let id = id.map(|Path(id)| id).unwrap_or_default();
    let Some(card) = door.engine.model(&id) else {
        return reply::fault(&Fault::new(Code::ModelNotFound, "no such model").at("model"), HeaderMap::new());
    };
    let body = if headers.contains_key(ANTHROPIC) {
        anthropic(&card).to_string().into_bytes()
    } else {
        serde_json::to_vec(&card).unwrap_or_default()
    };
    reply::json(StatusCode::OK, HeaderMap::new(), body)
}

/// When a name came to be is not known: the protocol's word for that is the beginning of its time.
fn anthropic(card: &ModelCard) -> Value {
    let mut told = json!({
        "type": "model", "id": card.id, "display_name": card.id, "created_at": "1970-01-01T00:00:00Z",
    });
    if let (Some(fields), Some(window)) = (told.as_object_mut(), card.context_window) {
        fields.insert("context_window".to_owned(), json!(window));
    }
    told
}
