//! Single fields of an object, with their faults.

use crate::body::RawObject;
use crate::content::text;
use crate::fault::RequestFault;
use crate::raw::Raw;

/// A field that is true or false; `None` where it is absent or `null`.
pub(super) fn flag(sent: &RawObject, field: &str) -> Result<Option<bool>, RequestFault> {
    match sent.get_set(field).map(Raw::get) {
        None => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(RequestFault::of(field, format!("`{field}` must be true or false"))),
    }
}

/// A field that is a string; `None` where it is absent or `null`.
pub(super) fn string(sent: &RawObject, field: &str) -> Result<Option<String>, RequestFault> {
    let Some(raw) = sent.get_set(field) else { return Ok(None) };
    text(raw).map(Some).ok_or_else(|| RequestFault::of(field, format!("`{field}` must be a string")))
}
