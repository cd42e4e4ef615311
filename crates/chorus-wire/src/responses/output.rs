//! What a chat answer says, as output items of the protocol.

use crate::reply::ChatReply;
use crate::tool::ToolCall;
use serde_json::{Value, json};

/// Makes the ids of one response's items: the response's own digits, and a number.
#[derive(Debug, Clone)]
pub struct OutputIds {
    digits: String,
}

impl OutputIds {
    /// The ids of the items of that response.
    #[must_use]
    pub fn of(response: &str) -> Self {
        Self { digits: response.trim_start_matches("resp_").to_owned() }
    }

    pub(super) fn id(&self, prefix: &str, at: usize) -> String {
        format!("{prefix}_{}{at:02x}", self.digits)
    }
}

/// The items of a whole answer: what was thought, said and called. Only the first choice counts.
#[must_use]
pub fn items_of(reply: &ChatReply, ids: &OutputIds) -> Vec<Value> {
    let mut items = Vec::new();
    if let Some(thought) = reply.reasoning.as_deref().filter(|text| !text.is_empty()) {
        items.push(reasoning(&ids.id("rs", 0), thought));
    }
    if !reply.content.is_empty() || reply.tool_calls.is_empty() {
        items.push(message(&ids.id("msg", items.len()), &reply.content, "completed"));
    }
    for call in &reply.tool_calls {
        items.push(function_call(&ids.id("fc", items.len()), call, "completed"));
    }
    items
}

pub(super) fn reasoning(id: &str, text: &str) -> Value {
    json!({"id": id, "type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}]})
}

pub(super) fn message(id: &str, text: &str, status: &str) -> Value {
    let content = if status == "in_progress" { json!([]) } else { json!([output_text(text)]) };
    json!({"id": id, "type": "message", "status": status, "role": "assistant", "content": content})
}

pub(super) fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn function_call(id: &str, call: &ToolCall, status: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "call_id": call.id, "name": call.name,
        "arguments": call.arguments,
    })
}
