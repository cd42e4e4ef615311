//! The content of a message as the protocol writes it: one string, or a list of blocks.

use crate::body::{RawObject, object};
use crate::content::text;
use crate::fault::RequestFault;
use crate::raw::{Raw, elements};

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
pub(super) fn read(raw: &str, at: &str) -> Result<Vec<Block>, RequestFault> {
    if raw.starts_with('"') {
        let fields = object([("text", Raw::checked(raw))]);
        return Ok(vec![Block { kind: "text".to_owned(), fields, at: at.to_owned() }]);
    }
    let fault = || RequestFault::of(at, format!("`{at}` must be a string or a list of blocks"));
    let list = elements(raw).ok_or_else(fault)?;
    list.into_iter().enumerate().map(|(n, raw)| block(raw, format!("{at}[{n}]"))).collect()
}

fn block(raw: &str, at: String) -> Result<Block, RequestFault> {
    let fault = |problem: &str| RequestFault::of(&*at, format!("`{at}` {problem}"));
    let fields = RawObject::parse(raw.as_bytes()).map_err(|why| fault(&format!("is not a block: {why}")))?;
    let kind = fields.get("type").and_then(|raw| text(raw));
    let kind = kind.ok_or_else(|| fault("needs a string `type`"))?;
    Ok(Block { kind, fields, at })
}
