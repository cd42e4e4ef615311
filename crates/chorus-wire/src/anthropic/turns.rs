//! One message of the protocol → the chat messages that say the same.
//!
//! A user's message may answer tools and go on speaking: the answers become tool messages, in front of what is said.

use super::blocks::{self, Block};
use super::content::{document_part, image_part, only_text, text_part, word};
use super::extras::{IS_ERROR, THINKING_BLOCKS};
use crate::body::{RawObject, object};
use crate::fault::RequestFault;
use crate::loss::Losses;
use crate::raw::{Raw, quoted, raw_or_null};

/// The messages of one message.
///
/// # Errors
/// [`RequestFault`] at the block that cannot be translated.
pub(super) fn read(raw: &str, at: &str, losses: &mut Losses) -> Result<Vec<Raw>, RequestFault> {
    let fault = |problem: &str| RequestFault::of(at, format!("`{at}` {problem}"));
    let message =
        RawObject::parse(raw.as_bytes()).map_err(|why| fault(&format!("is not a message: {why}")))?;
    let content = message.get("content").ok_or_else(|| fault("needs `content`"))?;
    let blocks = blocks::read(content, &format!("{at}.content"))?;
    match word(&message, "role").as_deref() {
        Some("user") => user(blocks, losses),
        Some("assistant") => assistant(blocks, losses).map(|message| vec![message]),
        // Newer clients put instructions between turns.
        Some("system") => Ok(system(&blocks)?.into_iter().collect()),
        _ => Err(fault("needs the `role` \"user\" or \"assistant\"")),
    }
}

/// Instructions as one system message; `None` when there are no blocks.
///
/// # Errors
/// [`RequestFault`] for a block that is no text.
pub(super) fn system(blocks: &[Block]) -> Result<Option<Raw>, RequestFault> {
    let parts: Vec<Raw> = blocks.iter().map(|b| text_part(&b.fields, &b.at)).collect::<Result<_, _>>()?;
    Ok((!parts.is_empty()).then(|| said("system", &parts)))
}

fn user(blocks: Vec<Block>, losses: &mut Losses) -> Result<Vec<Raw>, RequestFault> {
    let (mut answers, mut parts) = (Vec::new(), Vec::new());
    for Block { kind, fields, at } in blocks {
        match kind.as_str() {
            "text" => parts.push(text_part(&fields, &at)?),
            "image" => parts.push(image_part(&fields, &at)?),
            "document" => parts.push(document_part(&fields, &at)?),
            "tool_result" => answers.push(tool_message(&fields, &at, &mut parts, losses)?),
            other => losses.add_of("block", other),
        }
    }
    if !parts.is_empty() || answers.is_empty() {
        answers.push(said("user", &parts));
    }
    Ok(answers)
}

/// A tool's answer. Its images go to the user's next words: a tool message holds text only.
fn tool_message(
    block: &RawObject,
    at: &str,
    shown: &mut Vec<Raw>,
    losses: &mut Losses,
) -> Result<Raw, RequestFault> {
    let id = word(block, "tool_use_id").ok_or_else(|| {
        RequestFault::of(at, format!("`{at}` needs a string `tool_use_id`: the call that it answers"))
    })?;
    let mut parts = Vec::new();
    if let Some(content) = block.get_set("content") {
        for Block { kind, fields, at } in blocks::read(content, &format!("{at}.content"))? {
            match kind.as_str() {
                "text" => parts.push(text_part(&fields, &at)?),
                "document" => parts.push(document_part(&fields, &at)?),
                "image" => {
                    losses.add("tool_result.image_moved");
                    shown.push(image_part(&fields, &at)?);
                }
                other => losses.add_of("block", other),
            }
        }
    }
    let mut message =
        object([("role", quoted("tool")), ("tool_call_id", quoted(&id)), ("content", content_of(&parts))]);
    if block.get("is_error").is_some_and(|raw| raw.get() == "true") {
        losses.add("tool_result.is_error");
        message.set(IS_ERROR, raw_or_null(&true));
    }
    Ok(raw_or_null(&message))
}

fn assistant(blocks: Vec<Block>, losses: &mut Losses) -> Result<Raw, RequestFault> {
    let (mut parts, mut calls, mut thoughts) = (Vec::new(), Vec::new(), Vec::new());
    for Block { kind, fields, at } in blocks {
        match kind.as_str() {
            "text" => parts.push(text_part(&fields, &at)?),
            "tool_use" => calls.push(call(&fields, &at)?),
            "thinking" | "redacted_thinking" => {
                losses.add_of("block", &kind);
                thoughts.push(raw_or_null(&fields));
            }
            other => losses.add_of("block", other),
        }
    }
    let content = if parts.is_empty() && !calls.is_empty() { raw_or_null(&()) } else { content_of(&parts) };
    let mut message = object([("role", quoted("assistant")), ("content", content)]);
    if !calls.is_empty() {
        message.set("tool_calls", raw_or_null(&calls));
    }
    if !thoughts.is_empty() {
        message.set(THINKING_BLOCKS, raw_or_null(&thoughts));
    }
    Ok(raw_or_null(&message))
}

fn call(block: &RawObject, at: &str) -> Result<Raw, RequestFault> {
    let needed = |field: &str| {
        let param = format!("{at}.{field}");
        word(block, field).ok_or_else(|| RequestFault::of(&*param, format!("`{param}` must be a string")))
    };
    let (id, name) = (needed("id")?, needed("name")?);
    let input = block.get_set("input").map_or("{}", |raw| raw);
    let function = object([("name", quoted(&name)), ("arguments", quoted(input))]);
    let call =
        object([("id", quoted(&id)), ("type", quoted("function")), ("function", raw_or_null(&function))]);
    Ok(raw_or_null(&call))
}

fn said(role: &str, parts: &[Raw]) -> Raw {
    raw_or_null(&object([("role", quoted(role)), ("content", content_of(parts))]))
}

/// One plain text is a string: every backend takes that.
fn content_of(parts: &[Raw]) -> Raw {
    if parts.is_empty() {
        return quoted("");
    }
    match only_text(parts) {
        Some(text) => Raw::checked(text),
        None => raw_or_null(parts),
    }
}
