//! One block of content → one part of a chat message. It knows no roles.

use super::extras::CACHE_CONTROL;
use crate::body::{RawObject, object};
use crate::content::text;
use crate::fault::RequestFault;
use crate::raw::{Raw, quoted, raw_or_null};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// The field's text; `None` when it is absent or no string.
pub(super) fn word(object: &RawObject, field: &str) -> Option<String> {
    object.get(field).and_then(|raw| text(raw))
}

/// A text part, with the block's mark for the prompt cache.
pub(super) fn text_part(block: &RawObject, at: &str) -> Result<Raw, RequestFault> {
    let Some(raw) = block.get("text").filter(|raw| text(raw).is_some()) else {
        let param = format!("{at}.text");
        return Err(RequestFault::of(&*param, format!("`{param}` must be a string")));
    };
    Ok(marked(object([("type", quoted("text")), ("text", raw.clone())]), block))
}

/// An image part: inline bytes become a `data:` URL.
pub(super) fn image_part(block: &RawObject, at: &str) -> Result<Raw, RequestFault> {
    let source = source(block, at)?;
    let url = match word(&source, "type").as_deref() {
        Some("base64") => data_url(&source, at)?,
        Some("url") => needed(&source, "url", at)?,
        _ => {
            return Err(unusable(at, "an image's source must be `base64` or `url`; files are not kept here"));
        }
    };
    let image = object([("url", quoted(&url))]);
    let part = object([("type", quoted("image_url")), ("image_url", raw_or_null(&image))]);
    Ok(marked(part, block))
}

/// A document: text is text, a PDF is a `file` part.
pub(super) fn document_part(block: &RawObject, at: &str) -> Result<Raw, RequestFault> {
    let source = source(block, at)?;
    let part = match word(&source, "type").as_deref() {
        Some("text") => {
            let data = needed(&source, "data", at)?;
            object([("type", quoted("text")), ("text", quoted(&data))])
        }
        Some("base64") => {
            let name = word(block, "title").unwrap_or_else(|| "document.pdf".to_owned());
            let file = object([("filename", quoted(&name)), ("file_data", quoted(&data_url(&source, at)?))]);
            object([("type", quoted("file")), ("file", raw_or_null(&file))])
        }
        _ => {
            return Err(unusable(
                at,
                "a document's source must be `text` or `base64`; nothing is fetched or kept",
            ));
        }
    };
    Ok(marked(part, block))
}

fn marked(mut part: RawObject, block: &RawObject) -> Raw {
    if let Some(mark) = block.get_set(CACHE_CONTROL) {
        part.set(CACHE_CONTROL, mark.clone());
    }
    raw_or_null(&part)
}

fn source(block: &RawObject, at: &str) -> Result<RawObject, RequestFault> {
    let source = block.get("source").and_then(|raw| RawObject::parse(raw.as_bytes()).ok());
    source.ok_or_else(|| unusable(at, "it needs an object `source`"))
}

fn data_url(source: &RawObject, at: &str) -> Result<String, RequestFault> {
    let (kind, data) = (needed(source, "media_type", at)?, needed(source, "data", at)?);
    Ok(format!("data:{kind};base64,{data}"))
}

fn needed(object: &RawObject, field: &str, at: &str) -> Result<String, RequestFault> {
    word(object, field).ok_or_else(|| unusable(at, &format!("its source needs a string `{field}`")))
}

fn unusable(at: &str, problem: &str) -> RequestFault {
    RequestFault::of(at, format!("`{at}` cannot be used: {problem}"))
}

/// Whether the text of a content is all there is to it: one plain text part without a mark.
pub(super) fn only_text(parts: &[Raw]) -> Option<&str> {
    let [part] = parts else { return None };
    let parsed: BTreeMap<&str, &RawValue> = serde_json::from_str(part).ok()?;
    (parsed.len() == 2).then(|| parsed.get("text").map(|raw| raw.get())).flatten()
}
