//! A message of the API → a chat completion.

use super::{error_of, finish_reason, usage_of};
use crate::UpstreamFault;
use chorus_wire::ChatReply;
use chorus_wire::anthropic::extras::THINKING_BLOCKS;
use serde_json::{Value, json};

/// A whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
    if let Some(error) = error_of(bytes) {
        return Err(UpstreamFault::in_band(error));
    }
    let message: Value = serde_json::from_slice(bytes).map_err(UpstreamFault::malformed)?;
    let Some(blocks) = message.get("content").and_then(Value::as_array) else {
        return Err(UpstreamFault::malformed("it is no message: `content` is not a list"));
    };
    let text_of =
        |block: &Value, field: &str| block.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut text, mut reasoning) = (String::new(), String::new());
    let (mut calls, mut thoughts) = (Vec::new(), Vec::new());
    for block in blocks {
        match block.get("type").and_then(Value::as_str) {
            Some("text") => text.push_str(&text_of(block, "text")),
            Some("tool_use") => {
                let arguments = block.get("input").map_or_else(|| "{}".to_owned(), Value::to_string);
                let function = json!({"name": block.get("name"), "arguments": arguments});
                calls.push(json!({"id": block.get("id"), "type": "function", "function": function}));
            }
            Some("thinking") => {
                reasoning.push_str(&text_of(block, "thinking"));
                thoughts.push(block.clone());
            }
            Some("redacted_thinking") => thoughts.push(block.clone()),
            // Blocks of tools that the API itself ran; what they found is in the text.
            _ => {}
        }
    }
    let mut said = json!({"role": "assistant", "content": text});
    let named = [
        ("tool_calls", json!(calls)),
        (THINKING_BLOCKS, json!(thoughts)),
        ("reasoning_content", json!(reasoning)),
    ];
    for (field, value) in named {
        let empty = value == json!([]) || value == json!("");
        if let (Some(fields), false) = (said.as_object_mut(), empty) {
            fields.insert(field.to_owned(), value);
        }
    }
    if let (Some(fields), true) = (said.as_object_mut(), text.is_empty()) {
        fields.insert("content".to_owned(), Value::Null);
    }
    let stop = message.get("stop_reason").and_then(Value::as_str);
    let mut choice = json!({"index": 0, "message": said, "finish_reason": stop.map(finish_reason)});
    if let (Some(fields), Some(sequence @ Value::String(_))) =
        (choice.as_object_mut(), message.get("stop_sequence"))
    {
        fields.insert("stop_reason".to_owned(), sequence.clone());
    }
    let mut reply = json!({
        "id": message.get("id"), "object": "chat.completion", "created": 0, "model": message.get("model"),
        "choices": [choice],
    });
    if let (Some(fields), Some(usage)) = (reply.as_object_mut(), message.get("usage")) {
        fields.insert("usage".to_owned(), usage_of(usage));
    }
    ChatReply::parse(reply.to_string().as_bytes()).map_err(UpstreamFault::malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_become_one_message() {
        let message = json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "t1", "name": "sky", "input": {"b": 1, "a": 2}}],
            "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 7},
        });
        let reply = whole(message.to_string().as_bytes()).unwrap();
        assert_eq!((&*reply.content, reply.reasoning.as_deref()), ("Looking.", Some("hm")));
        assert_eq!(reply.tool_calls[0].arguments, r#"{"b":1,"a":2}"#);
        assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
        let usage = reply.usage.unwrap();
        assert_eq!(
            (usage.prompt_tokens, usage.completion_tokens),
            (18, 7),
            "i05: the cache is part of the prompt"
        );
    }

    #[test]
    fn a12_b16_an_error_is_a_fault_and_every_stop_has_a_word() {
        let error =
            json!({"type": "error", "error": {"type": "overloaded_error", "message": "sk-live-1 is busy"}});
        let fault = whole(error.to_string().as_bytes()).unwrap_err();
        assert_eq!(fault.status(), Some(529));
        assert!(!fault.public().contains("sk-live"));
        for (stop, want) in [
            ("end_turn", "stop"),
            ("stop_sequence", "stop"),
            ("max_tokens", "length"),
            ("refusal", "content_filter"),
            ("pause_turn", "pause_turn"),
        ] {
            let message = json!({"content": [], "stop_reason": stop, "stop_sequence": null});
            assert_eq!(whole(message.to_string().as_bytes()).unwrap().finish_reason.as_deref(), Some(want));
        }
        assert!(whole(b"{}").is_err());
    }
}
