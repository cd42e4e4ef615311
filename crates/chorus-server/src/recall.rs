//! Files, vector stores and memories: OpenAI's `/v1/files` and `/v1/vector_stores`, and `/v1/memory` beside them.
//!
//! The same handlers serve both planes: at the data plane a caller reaches what is theirs, at the management plane an
//! operator reaches everything, and what an operator puts there is nobody's: routes may look it up for anybody. The page is
//! `docs/doors/files.md`.
//!
//! **Invariant:** what is another caller's is as if it were not there (case F01).

mod files;
mod memories;
mod refused;
mod said;
mod upload;
mod vector_stores;
mod whose;

pub(crate) use whose::Managed;

use crate::door::Door;
use axum::Router;
use axum::routing::{MethodRouter, delete, get, post};

/// Method, path, and who answers.
pub(crate) type Row = (&'static str, &'static str, MethodRouter<Door>);

/// Every door.
pub(crate) fn handlers() -> Vec<Row> {
    vec![
        ("GET", "/v1/files", get(files::list)),
        ("POST", "/v1/files", post(files::create)),
        ("GET", "/v1/files/{id}", get(files::one)),
        ("DELETE", "/v1/files/{id}", delete(files::delete)),
        ("GET", "/v1/files/{id}/content", get(files::content)),
        ("GET", "/v1/vector_stores", get(vector_stores::list)),
        ("POST", "/v1/vector_stores", post(vector_stores::create)),
        ("GET", "/v1/vector_stores/{id}", get(vector_stores::one)),
        ("POST", "/v1/vector_stores/{id}", post(vector_stores::change)),
        ("DELETE", "/v1/vector_stores/{id}", delete(vector_stores::delete)),
        ("POST", "/v1/vector_stores/{id}/search", post(vector_stores::search)),
        ("GET", "/v1/vector_stores/{id}/files", get(vector_stores::files)),
        ("POST", "/v1/vector_stores/{id}/files", post(vector_stores::attach)),
        ("GET", "/v1/vector_stores/{id}/files/{file_id}", get(vector_stores::file)),
        ("DELETE", "/v1/vector_stores/{id}/files/{file_id}", delete(vector_stores::detach)),
        ("GET", "/v1/memory", get(memories::list)),
        ("DELETE", "/v1/memory", delete(memories::forget_all)),
        ("GET", "/v1/memory/{id}", get(memories::one)),
        ("DELETE", "/v1/memory/{id}", delete(memories::forget)),
    ]
}

/// The paths of the data plane.
pub(crate) fn routes() -> Router<Door> {
    handlers().into_iter().fold(Router::new(), |router, (_, path, handler)| router.route(path, handler))
}
