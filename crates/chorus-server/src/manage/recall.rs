//! Files, vector stores and memories of everybody, for operators: the data plane's doors with another reach.
//!
//! It knows paths and permissions, not what is kept. Source: contract §4.2.

use super::config::by_loopback;
use super::endpoint::{Endpoint, Field, Route};
use super::refusal;
use crate::recall::{self, Managed};
use axum::Extension;
use axum::extract::Request;
use axum::middleware::{Next, from_fn};
use axum::response::Response;
use http::Method;

const STORE: &[Field] = &[
    Field::new("name", "string", "for people and for policies, which may name it"),
    Field::new("file_ids", "array", "files that are attached at once"),
    Field::new("metadata", "object", "up to 16 pairs"),
    Field::new(
        "chunking_strategy",
        "object",
        "`auto`, or `static` with `max_chunk_size_tokens` and `chunk_overlap_tokens`",
    ),
];
const ATTACH: &[Field] = &[
    Field::needed("file_id", "string", "the file"),
    Field::new("attributes", "object", "up to 16 pairs, by which a search can choose"),
    Field::new("chunking_strategy", "object", "as of a vector store"),
];
const SEARCH: &[Field] = &[
    Field::needed("query", "string", "what is looked for"),
    Field::new("max_num_results", "integer", "1..=50, 10 by default"),
    Field::new("filters", "object", "a comparison of attributes, or several joined by `and` or `or`"),
    Field::new("ranking_options", "object", "`score_threshold` in 0..=1"),
];

/// What can be asked and changed.
pub(super) fn routes() -> Vec<Route> {
    let described = [
        Endpoint::new("GET", "/v1/files", "data.read", "stored files, latest first"),
        Endpoint::new(
            "POST",
            "/v1/files",
            "data.write",
            "stores a file, sent as a form with `file` and `purpose`",
        ),
        Endpoint::new("GET", "/v1/files/{id}", "data.read", "a stored file, without its bytes"),
        Endpoint::new("DELETE", "/v1/files/{id}", "data.write", "deletes a file, also from vector stores"),
        Endpoint::new("GET", "/v1/files/{id}/content", "data.read", "the bytes of a file"),
        Endpoint::new("GET", "/v1/vector_stores", "data.read", "vector stores, latest first"),
        Endpoint::new("POST", "/v1/vector_stores", "data.write", "makes a vector store").taking(STORE),
        Endpoint::new("GET", "/v1/vector_stores/{id}", "data.read", "a vector store"),
        Endpoint::new("POST", "/v1/vector_stores/{id}", "data.write", "changes its name or metadata")
            .taking(STORE),
        Endpoint::new(
            "DELETE",
            "/v1/vector_stores/{id}",
            "data.write",
            "deletes a vector store; its files stay",
        ),
        Endpoint::new(
            "POST",
            "/v1/vector_stores/{id}/search",
            "data.read",
            "the passages nearest to a question",
        )
        .taking(SEARCH),
        Endpoint::new("GET", "/v1/vector_stores/{id}/files", "data.read", "its files, and how far each is"),
        Endpoint::new(
            "POST",
            "/v1/vector_stores/{id}/files",
            "data.write",
            "attaches a file, which is then read",
        )
        .taking(ATTACH),
        Endpoint::new("GET", "/v1/vector_stores/{id}/files/{file_id}", "data.read", "one of its files"),
        Endpoint::new(
            "DELETE",
            "/v1/vector_stores/{id}/files/{file_id}",
            "data.write",
            "takes a file out; the file itself stays",
        ),
        Endpoint::new("GET", "/v1/memory", "data.read", "memories, of one user with `?user=`"),
        Endpoint::new("DELETE", "/v1/memory", "data.write", "forgets all memories of the user of `?user=`"),
        Endpoint::new("GET", "/v1/memory/{id}", "data.read", "one memory"),
        Endpoint::new("DELETE", "/v1/memory/{id}", "data.write", "forgets one memory"),
    ];
    let handlers = recall::handlers();
    let route = |endpoint: Endpoint| {
        let found = handlers.iter().find(|it| it.0 == endpoint.method && it.1 == endpoint.path);
        found.map(|it| {
            let handler = it.2.clone().layer(Extension(Managed)).layer(from_fn(changes_by_loopback));
            Route::new(endpoint, handler)
        })
    };
    described.into_iter().filter_map(route).collect()
}

/// A page of another site can be made to reach loopback by a name of its own, but not to forge `Host`.
async fn changes_by_loopback(request: Request, next: Next) -> Response {
    if request.method() != Method::GET && !by_loopback(request.headers()) {
        return refusal::foreign_host();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_door_of_the_data_plane_is_described() {
        assert_eq!(routes().len(), recall::handlers().len());
    }
}
