//! A chat completion → a message of the protocol.

use super::extras::THINKING_BLOCKS;
use crate::body::RawObject;
use crate::content::text;
use crate::raw::{Raw, count, elements, raw_or_null};
use crate::reply::ChatReply;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

/// A whole answer as a message. `id` is the message's own; `shown` are top-level fields of the answer to hand on, such
/// as a looper's trace. Only the first choice counts: the protocol has one.
#[must_use]
pub fn message_of(reply: &ChatReply, id: &str, shown: &[&str]) -> Vec<u8> {
    let choice = first_choice(reply).unwrap_or_default();
    let mut content = thoughts(&choice, reply.reasoning.as_deref());
    if !reply.content.is_empty() {
        content.push(raw_or_null(&json!({"type": "text", "text": reply.content})));
    }
    for call in &reply.tool_calls {
        let mut block = RawObject::default();
        block.set("type", raw_or_null("tool_use"));
        block.set("id", raw_or_null(&call.id));
        block.set("name", raw_or_null(&call.name));
        block.set("input", input_of(&call.arguments));
        content.push(raw_or_null(&block));
    }
    let model = reply.body().get("model").cloned().unwrap_or_else(|| raw_or_null(""));
    let sequence = stop_sequence(&choice);
    let called = !reply.tool_calls.is_empty();
    let reason = stop_reason(reply.finish_reason.as_deref(), called, sequence.is_some());
    let mut message = RawObject::default();
    message.set("id", raw_or_null(id));
    message.set("type", raw_or_null("message"));
    message.set("role", raw_or_null("assistant"));
    message.set("model", model);
    message.set("content", raw_or_null(&content));
    message.set("stop_reason", raw_or_null(reason));
    message.set("stop_sequence", raw_or_null(&sequence));
    message.set("usage", raw_or_null(&usage_of(reply.body().get("usage").map(|raw| &**raw))));
    for field in shown {
        if let Some(value) = reply.body().get(field) {
            message.set(field, value.clone());
        }
    }
    message.to_bytes()
}

/// The protocol's word for why an answer ended. A call is a call, whatever the backend says (case B17).
#[must_use]
pub fn stop_reason(finish: Option<&str>, called: bool, at_sequence: bool) -> &'static str {
    match finish {
        Some("length") => "max_tokens",
        Some("content_filter") => "refusal",
        Some("tool_calls" | "function_call") => "tool_use",
        _ if called => "tool_use",
        _ if at_sequence => "stop_sequence",
        _ => "end_turn",
    }
}

/// The protocol's usage. Its `input_tokens` do not hold what the prompt cache gave, OpenAI's `prompt_tokens` do.
pub(super) fn usage_of(usage: Option<&str>) -> Value {
    let usage = usage.and_then(|raw| serde_json::from_str::<RawObject>(raw).ok()).unwrap_or_default();
    let number = |object: &RawObject, field: &str| object.get(field).and_then(|raw| count(raw)).unwrap_or(0);
    let details: RawObject = usage.read("prompt_tokens_details").ok().flatten().unwrap_or_default();
    let (read, written) = (number(&details, "cached_tokens"), number(&details, "cache_creation_tokens"));
    let prompt = number(&usage, "prompt_tokens").saturating_sub(read).saturating_sub(written);
    let mut told = json!({
        "input_tokens": prompt,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": number(&usage, "completion_tokens"),
    });
    if let (Some(fields), true) = (told.as_object_mut(), usage.get("estimated").is_some()) {
        fields.insert("estimated".to_owned(), Value::Bool(true));
    }
    told
}

/// The arguments as an object; what is no JSON object is kept under a name of ours, so that nothing is lost.
pub(crate) fn input_of(arguments: &str) -> Raw {
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        return raw_or_null(&json!({}));
    }
    match serde_json::from_str::<IgnoredAny>(trimmed) {
        Ok(_) if trimmed.starts_with('{') => Raw::checked(trimmed),
        _ => raw_or_null(&json!({"unparsed_arguments": arguments})),
    }
}

/// A stop sequence that the backend names; servers of open weights do, in `stop_reason`.
fn stop_sequence(choice: &RawObject) -> Option<String> {
    choice.get_set("stop_reason").and_then(|raw| text(raw))
}

/// Blocks that an Anthropic backend wrote, with their signatures; else the reasoning of any other, without one.
fn thoughts(choice: &RawObject, reasoning: Option<&str>) -> Vec<Raw> {
    let message: RawObject = choice.read("message").ok().flatten().unwrap_or_default();
    let own = message.get_set(THINKING_BLOCKS).and_then(|raw| elements(raw));
    let own: Vec<Raw> = own.unwrap_or_default().into_iter().map(Raw::checked).collect();
    match reasoning {
        Some(thinking) if own.is_empty() => {
            vec![raw_or_null(&json!({"type": "thinking", "thinking": thinking, "signature": ""}))]
        }
        _ => own,
    }
}

fn first_choice(reply: &ChatReply) -> Option<RawObject> {
    let choices = reply.body().get("choices")?;
    let first = elements(choices)?.into_iter().next()?;
    serde_json::from_str(first).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(reply: &Value) -> Value {
        let reply = ChatReply::parse(reply.to_string().as_bytes()).unwrap();
        serde_json::from_slice(&message_of(&reply, "msg_1", &["fusion"])).unwrap()
    }

    #[test]
    fn everything_a_choice_says_is_a_block() {
        let told = message(&json!({
            "model": "m", "fusion": {"judge": 1}, "kept": 1,
            "choices": [{"index": 0, "finish_reason": "stop", "message": {
                "role": "assistant", "content": "Sunny.", "reasoning_content": "Look out.",
                "tool_calls": [
                    {"id": "c1", "type": "function", "function": {"name": "sky", "arguments": "{\"b\":1,\"a\":2.0}"}},
                    {"id": "c2", "type": "function", "function": {"name": "sky", "arguments": "oops"}}]}}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13,
                "prompt_tokens_details": {"cached_tokens": 4}},
        }));
        assert_eq!(told["content"][0], json!({"type": "thinking", "thinking": "Look out.", "signature": ""}));
        assert_eq!(told["content"][1], json!({"type": "text", "text": "Sunny."}));
        assert_eq!(told["content"][2]["input"].to_string(), r#"{"b":1,"a":2.0}"#);
        assert_eq!(told["content"][3]["input"], json!({"unparsed_arguments": "oops"}));
        assert_eq!(told["stop_reason"], "tool_use", "b17: a call is a call");
        assert_eq!(told["usage"]["input_tokens"], 6);
        assert_eq!(told["usage"]["cache_read_input_tokens"], 4);
        assert_eq!((&told["fusion"]["judge"], told.get("kept")), (&json!(1), None));
    }

    #[test]
    fn b16_every_reason_has_a_word() {
        for (finish, called, at, want) in [
            (Some("stop"), false, false, "end_turn"),
            (Some("stop"), false, true, "stop_sequence"),
            (Some("length"), true, false, "max_tokens"),
            (Some("content_filter"), false, false, "refusal"),
            (Some("tool_calls"), false, false, "tool_use"),
            (Some("weird"), false, false, "end_turn"),
            (None, false, false, "end_turn"),
        ] {
            assert_eq!(stop_reason(finish, called, at), want, "{finish:?}");
        }
    }
}
