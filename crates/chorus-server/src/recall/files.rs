//! `/v1/files`: upload, list, look at, fetch and delete.
//!
//! Source: OpenAI API description, `OpenAIFile` and `ListFilesResponse`.

use super::refused::{Refused, answer, bad, not_found, unreadable};
use super::said::{self, InPath, Said};
use super::upload;
use super::whose::Asker;
use crate::body;
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use chorus_engine::ingest;
use chorus_store::documents::{NewFile, StoredFile};
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, HeaderValue, X_CONTENT_TYPE_OPTIONS};
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most rows of one listing (`limit`). Source: OpenAI API description.
const LIST_MOST: usize = 10_000;

/// What may be said behind the path of a listing.
#[derive(Debug, Deserialize)]
pub(crate) struct Wanted {
    limit: Option<usize>,
    after: Option<String>,
    purpose: Option<String>,
    order: Option<String>,
}

/// `POST /v1/files`.
pub(crate) async fn create(
    State(door): State<Door>,
    asker: Asker,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let mom = door.engine.serving();
    let settings = &mom.spec.global.vector_store;
    let it = upload::read(&headers, body::read(body, &door.limits).await?).await?;
    if let Some(why) = ingest::unreadable(settings, &it.name, &it.content) {
        return Err(unreadable(&why));
    }
    let new =
        NewFile { owner: asker.owner(), name: it.name, purpose: it.purpose, content: it.content, at: now() };
    let file = mom.shelf.store.documents.put_file(new, ingest::limits(settings)).await?;
    Ok(answer(&shape(&file)))
}

/// `GET /v1/files`.
pub(crate) async fn list(
    State(door): State<Door>,
    asker: Asker,
    Said(wanted): Said<Wanted>,
) -> Result<Response, Refused> {
    let limit = said::limit(wanted.limit, LIST_MOST, LIST_MOST)?;
    let mom = door.engine.serving();
    let mut files = mom.shelf.store.documents.files(asker.whose(), usize::MAX).await?;
    match wanted.order.as_deref() {
        None | Some("desc") => {}
        Some("asc") => files.reverse(),
        Some(_) => return Err(bad("order", "`order` must be asc or desc")),
    }
    files.retain(|file| wanted.purpose.as_ref().is_none_or(|purpose| *purpose == file.purpose));
    let rows: Vec<_> = files.iter().map(|file| (file.id.as_str(), shape(file))).collect();
    Ok(answer(&page(&rows, limit, wanted.after.as_deref())))
}

/// `GET /v1/files/{id}`.
pub(crate) async fn one(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    let found = door.engine.serving().shelf.store.documents.file(asker.whose(), &id).await?;
    Ok(answer(&shape(&found.ok_or_else(|| absent(&id))?)))
}

/// `GET /v1/files/{id}/content`.
pub(crate) async fn content(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    let found = door.engine.serving().shelf.store.documents.content(asker.whose(), &id).await?;
    let bytes = found.ok_or_else(|| absent(&id))?;
    // Somebody else's words: a browser must neither guess a kind nor show them as a page.
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (CONTENT_DISPOSITION, HeaderValue::from_static("attachment")),
        (X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    ];
    Ok((StatusCode::OK, headers, bytes).into_response())
}

/// `DELETE /v1/files/{id}`.
pub(crate) async fn delete(
    State(door): State<Door>,
    asker: Asker,
    InPath(id): InPath<String>,
) -> Result<Response, Refused> {
    if !door.engine.serving().shelf.store.documents.delete_file(asker.whose(), &id).await? {
        return Err(absent(&id));
    }
    Ok(answer(&json!({"id": id, "object": "file", "deleted": true})))
}

/// Rows behind `after`, at most `limit`.
pub(super) fn page(rows: &[(&str, Value)], limit: usize, after: Option<&str>) -> Value {
    let skipped = after.and_then(|after| rows.iter().position(|(id, _)| *id == after)).map_or(0, |at| at + 1);
    let left = rows.len().saturating_sub(skipped);
    let shown: Vec<&(&str, Value)> = rows.iter().skip(skipped).take(limit).collect();
    let data: Vec<&Value> = shown.iter().map(|(_, row)| row).collect();
    let id = |row: Option<&&(&str, Value)>| row.map(|(id, _)| (*id).to_owned());
    json!({
        "object": "list", "data": data, "first_id": id(shown.first()), "last_id": id(shown.last()),
        "has_more": left > shown.len(),
    })
}

fn shape(file: &StoredFile) -> Value {
    json!({
        "id": file.id, "object": "file", "bytes": file.bytes, "created_at": file.created_at,
        "filename": file.name, "purpose": file.purpose, "status": "processed",
    })
}

pub(super) fn absent(id: &str) -> Refused {
    not_found("file_not_found", "file", id)
}

/// Seconds since 1970.
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other() {
        let rows = || vec![("a", json!(1)), ("b", json!(2)), ("c", json!(3))];
        let first = page(&rows(), 2, None);
        assert_eq!(
            (&first["data"], &first["has_more"], &first["last_id"]),
            (&json!([1, 2]), &json!(true), &json!("b"))
        );
        let next = page(&rows(), 2, Some("b"));
        assert_eq!((&next["data"], &next["has_more"]), (&json!([3]), &json!(false)));
        assert_eq!(page(&[], 2, None)["first_id"], Value::Null);
    }
}
