//! Single fields of a chat completion request.

use crate::UpstreamFault;
use chorus_wire::RawObject;
use serde_json::Value;
use serde_json::value::RawValue;

/// The field, where it is there and not `null`.
pub(super) fn value(object: &RawObject, field: &str) -> Option<Value> {
    serde_json::from_str(object.get_set(field)?.get()).ok()
}

/// The elements of a list; none where it is absent or `null`.
pub(super) fn list(object: &RawObject, field: &str) -> Result<Vec<Box<RawValue>>, UpstreamFault> {
    let list: Option<Option<Vec<Box<RawValue>>>> =
        object.read(field).map_err(UpstreamFault::untranslatable)?;
    Ok(list.flatten().unwrap_or_default())
}
