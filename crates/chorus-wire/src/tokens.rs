//! A documented estimate of token counts, for where no tokenizer is at hand. It knows no model.

use crate::chat::ChatRequest;
use crate::message::Message;

/// Tokens that one image counts for.
const PER_IMAGE: u64 = 8192;
/// Tokens that every message counts for, besides its text.
const PER_MESSAGE: u64 = 4;
/// Tokens that every tool call and tool definition counts for, besides its JSON.
const PER_TOOL: u64 = 8;

/// Tokens of a text: a quarter of its UTF-8 bytes, rounded up. Source: contract §1.4 (`context`).
#[must_use]
pub fn of_text(text: &str) -> u64 {
    of_bytes(text.len())
}

/// Tokens of a whole request: text, plus 8,192 an image, 4 a message, 8 a tool call and a tool definition (and its
/// JSON by [`of_text`]), plus the output it reserves. Source: contract §1.4 (`context`).
#[must_use]
pub fn of_request(request: &ChatRequest) -> u64 {
    let text_bytes: usize = request.messages().iter().map(|message| message.text.len()).sum();
    let messages: u64 = request.messages().iter().map(besides_text).sum();
    let tools: u64 = request.tool_definitions().iter().map(|tool| PER_TOOL + of_text(tool.get())).sum();
    (of_bytes(text_bytes) + messages + tools).saturating_add(request.max_output_tokens().unwrap_or(0))
}

fn besides_text(message: &Message) -> u64 {
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| PER_TOOL + of_bytes(call.name.len() + call.arguments.len()))
        .sum();
    PER_MESSAGE + PER_IMAGE * message.images as u64 + calls
}

fn of_bytes(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
