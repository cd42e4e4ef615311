//! The content of a message as the protocol writes it: one string, or a list of blocks.

use crate::body::{RawObject, elements, object, share};
use crate::content::text;
use crate::fault::RequestFault;
use serde_json::value::RawValue;

/// One block, and where it stands.
pub(super) struct Block {
    /// Its `type`.
    pub(super) kind: String,
    pub(super) fields: RawObject,
    /// Such as `messages[2].content[0]`.
    pub(super) at: String,
}

/// A string is one text block.
///
/// # Errors
/// [`RequestFault`] when it is neither a string nor a list of objects with a type.
pub(super) fn read(raw: &RawValue, at: &str) -> Result<Vec<Block>, RequestFault> {
    if raw.get().starts_with('"') {
        let fields = object([("text", share(raw))]);
        return Ok(vec![Block { kind: "text".to_owned(), fields, at: at.to_owned() }]);
    }
    let fault = || RequestFault::of(at, format!("`{at}` must be a string or a list of blocks"));
    let list = elements(raw).ok_or_else(fault)?;
    list.into_iter().enumerate().map(|(n, raw)| block(raw, format!("{at}[{n}]"))).collect()
}

fn block(raw: &RawValue, at: String) -> Result<Block, RequestFault> {
    let fault = |problem: &str| RequestFault::of(&*at, format!("`{at}` {problem}"));
    let fields =
        RawObject::parse(raw.get().as_bytes()).map_err(|why| fault(&format!("is not a block: {why}")))?;
    let kind = fields.get("type").and_then(|raw| text(raw));
    let kind = kind.ok_or_else(|| fault("needs a string `type`"))?;
    Ok(Block { kind, fields, at })
}
