//! What only an Anthropic backend understands, and how it is taken off for every other one (case B22).
//!
//! It travels in the chat request: [`FIELDS`] at its top, `thinking_blocks` and `is_error` in messages, `cache_control`
//! in parts and tools. **Invariant:** a request that never had extras is not looked at.

use crate::body::RawObject;
use crate::chat::ChatRequest;
use crate::message::Message;
use crate::raw::{Raw, elements, raw_or_null};

/// Fields of a request that only an Anthropic backend understands.
pub const FIELDS: &[&str] = &["thinking", "metadata", "service_tier"];

/// The thinking of an earlier turn, as blocks of the protocol, in an assistant message.
pub const THINKING_BLOCKS: &str = "thinking_blocks";

/// Whether a tool failed, in a tool message.
pub const IS_ERROR: &str = "is_error";

/// A mark for the backend's prompt cache, on a part or a tool.
pub const CACHE_CONTROL: &str = "cache_control";

impl ChatRequest {
    /// Takes off what only an Anthropic backend understands; nothing for a request that came by another door.
    pub fn strip_extras(&mut self) {
        if !self.has_extras() {
            return;
        }
        FIELDS.iter().for_each(|field| self.remove(field));
        let messages: Vec<Message> = self.messages().iter().enumerate().map(|(at, m)| bare(m, at)).collect();
        self.set_messages(messages);
        if let Some(tools) = self.body().get("tools").and_then(|raw| bare_list(raw)) {
            self.set("tools", &tools);
        }
        self.mark_extras(false);
    }
}

fn bare(message: &Message, at: usize) -> Message {
    let Ok(mut object) = RawObject::parse(message.raw().as_bytes()) else {
        return message.clone();
    };
    let had = object.remove(THINKING_BLOCKS).is_some() | object.remove(IS_ERROR).is_some();
    let parts = object.get("content").and_then(|raw| bare_list(raw));
    if !had && parts.is_none() {
        return message.clone();
    }
    if let Some(parts) = parts {
        object.set("content", raw_or_null(&parts));
    }
    // It was read before, and has only lost fields that the reading does not look at.
    Message::parse(raw_or_null(&object), at).unwrap_or_else(|_| message.clone())
}

/// The list without marks; `None` when there are none in it, or it is no list.
fn bare_list(raw: &str) -> Option<Vec<Raw>> {
    if !raw.contains(CACHE_CONTROL) {
        return None;
    }
    let unmarked = |raw: &str| {
        let Ok(mut object) = RawObject::parse(raw.as_bytes()) else {
            return Raw::checked(raw);
        };
        if object.remove(CACHE_CONTROL).is_some() { raw_or_null(&object) } else { Raw::checked(raw) }
    };
    Some(elements(raw)?.into_iter().map(unmarked).collect())
}
