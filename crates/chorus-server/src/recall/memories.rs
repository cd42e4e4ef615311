//! `/v1/memory`: what a user has stated, shown to that user and to operators, and forgotten at their word.
//!
//! Source: contract §4.2.

use super::refused::{Refused, answer, bad, not_found, refusal};
use super::said::{self, InPath, Said};
use super::whose::Asker;
use crate::door::Door;
use axum::extract::State;
use axum::response::Response;
use chorus_store::Memory;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

/// Most rows of one listing (`limit`).
const LIST_MOST: usize = 1000;
const LIST_USUAL: usize = 100;

/// What may be said behind the path.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    limit: Option<usize>,
    /// Whose; only operators may say it.
    user: Option<String>,
}

/// `GET /v1/memory`.
pub(crate) async fn list(
    State(door): State<Door>,
    asker: Asker,
    Said(wanted): Said<Wanted>,
) -> Result<Response, Refused> {
    let limit = said::limit(wanted.limit, LIST_USUAL, LIST_MOST)?;
    let user = user(&asker, wanted.user)?;
    let found = door.engine.serving().shelf.store.memories.list(user.as_deref(), limit).await?;
    let data: Vec<Value> = found.iter().map(shape).collect();
    Ok(answer(&json!({"object": "list", "data": data})))
}

/// `GET /v1/memory/{id}`.
pub(crate) async fn one(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    let user = user(&asker, None)?;
    let found = door.engine.serving().shelf.store.memories.get(user.as_deref(), &id).await?;
    Ok(answer(&shape(&found.ok_or_else(|| absent(&id))?)))
}

/// `DELETE /v1/memory/{id}`.
pub(crate) async fn forget(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    let user = user(&asker, None)?;
    if !door.engine.serving().shelf.store.memories.forget(user.as_deref(), &id).await? {
        return Err(absent(&id));
    }
    Ok(answer(&json!({"id": id, "object": "memory", "deleted": true})))
}

/// `DELETE /v1/memory`: all of one user; an operator names the user.
pub(crate) async fn forget_all(
    State(door): State<Door>,
    asker: Asker,
    Said(wanted): Said<Wanted>,
) -> Result<Response, Refused> {
    let user = user(&asker, wanted.user)?.ok_or_else(|| bad("user", "name the `user` whose memories go"))?;
    let gone = door.engine.serving().shelf.store.memories.forget_all(&user).await?;
    Ok(answer(&json!({"object": "memory", "deleted": true, "count": gone})))
}

/// Whose memories are meant; `None` is everybody's, for operators.
fn user(asker: &Asker, named: Option<String>) -> Result<Option<String>, Refused> {
    match asker {
        Asker::Operator => Ok(named),
        Asker::Caller(Some(user)) if named.as_ref().is_none_or(|named| named == user) => {
            Ok(Some(user.clone()))
        }
        Asker::Caller(Some(_)) => Err(bad("user", "memories of others are not shown")),
        Asker::Caller(None) => {
            let text = "memories belong to users, and nobody vouches for this caller";
            Err(refusal(StatusCode::UNAUTHORIZED, "identity_required", text))
        }
    }
}

fn shape(memory: &Memory) -> Value {
    let mut value = json!(memory);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("object".to_owned(), "memory".into());
    }
    value
}

fn absent(id: &str) -> Refused {
    not_found("memory_not_found", "memory", id)
}
