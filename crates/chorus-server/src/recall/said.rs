//! What stands in the path and behind it, refused in the API's own shape where it cannot be read (case B07).

use super::refused::{Refused, bad};
use crate::door::Door;
use axum::extract::{FromRequestParts, Path, Query};
use http::request::Parts;
use serde::de::DeserializeOwned;

/// What is said behind the path.
pub(crate) struct Said<T>(pub(crate) T);

/// How many rows a listing is to have, within that range.
///
/// # Errors
/// Beyond it.
pub(super) fn limit(wanted: Option<usize>, usual: usize, most: usize) -> Result<usize, Refused> {
    let limit = wanted.unwrap_or(usual);
    let within = (1..=most).contains(&limit).then_some(limit);
    within.ok_or_else(|| bad("limit", format!("`limit` must be in 1..={most}")))
}

/// What stands in the path.
pub(crate) struct InPath<T>(pub(crate) T);

impl<T: DeserializeOwned> FromRequestParts<Door> for Said<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Refused> {
        let read = Query::<T>::from_request_parts(parts, door).await;
        read.map(|Query(it)| Self(it)).map_err(|why| bad("query", why.body_text()))
    }
}

impl<T: DeserializeOwned + Send> FromRequestParts<Door> for InPath<T> {
    type Rejection = Refused;

    async fn from_request_parts(parts: &mut Parts, door: &Door) -> Result<Self, Refused> {
        let read = Path::<T>::from_request_parts(parts, door).await;
        read.map(|Path(it)| Self(it)).map_err(|why| bad("path", why.body_text()))
    }
}
