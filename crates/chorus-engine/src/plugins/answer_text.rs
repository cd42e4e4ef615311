//! The texts of a whole answer, for plugins that look at it or put a remark in front of it.
//!
//! It knows the shape of an answer, no plugin. **Invariant:** whoever puts a remark in front changes nothing else.

use crate::fault::Fault;
use crate::loopers::as_reply;
use chorus_collab::{Answer, Reply};
use chorus_wire::{ChatReply, ChatRequest};
use serde_json::{Value, json};

/// All of an answer; a stream is held until its end.
///
/// # Errors
/// The fault that ends the stream.
pub(super) async fn whole(answer: Answer) -> Result<Reply, Fault> {
    match answer {
        Answer::Finished(reply) => Ok(*reply),
        Answer::Live(live) => Ok(as_reply(live).await?),
    }
}

/// Everything that a model wrote: text, reasoning, refusal and the arguments of tool calls of every choice.
pub(super) fn written(reply: &ChatReply) -> Vec<String> {
    let mut all = Vec::new();
    for message in choices(reply).iter_mut().filter_map(|choice| choice.get_mut("message")) {
        let fields = ["content", "reasoning_content", "reasoning", "refusal"];
        all.extend(fields.iter().filter_map(|field| message.get(field)).flat_map(texts));
        let calls = message.get("tool_calls").and_then(Value::as_array);
        let arguments = calls.into_iter().flatten().filter_map(|call| call.pointer("/function/arguments"));
        all.extend(arguments.flat_map(texts));
    }
    all.retain(|text| !text.trim().is_empty());
    all
}

/// A string, or the texts of parts.
fn texts(value: &Value) -> Vec<String> {
    let part = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
    match value {
        Value::String(text) => vec![text.clone()],
        Value::Array(parts) => parts.iter().filter_map(part).collect(),
        _ => Vec::new(),
    }
}

/// The answer with a remark in front of the text of every choice that has one.
pub(super) fn prefixed(mut reply: Reply, remark: &str) -> Reply {
    let mut choices = choices(&reply.reply);
    for content in choices.iter_mut().filter_map(|choice| choice.pointer_mut("/message/content")) {
        match content {
            Value::String(text) if !text.is_empty() => text.insert_str(0, remark),
            Value::Array(parts) => parts.insert(0, json!({"type": "text", "text": remark})),
            _ => {}
        }
    }
    reply.reply.set("choices", &choices);
    if let Ok(read) = ChatReply::parse(&reply.reply.to_bytes()) {
        reply.reply = read;
    }
    reply
}

fn choices(reply: &ChatReply) -> Vec<Value> {
    reply.body().read("choices").ok().flatten().unwrap_or_default()
}

/// Whether a program reads the answer, so that no remark may stand in it: the client asked for JSON.
pub(super) fn is_for_a_program(request: &ChatRequest) -> bool {
    let format: Option<Value> = request.body().read("response_format").ok().flatten();
    let kind = format.as_ref().and_then(|it| it.get("type")).and_then(Value::as_str);
    kind.is_some_and(|kind| kind != "text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::Usage;

    fn reply(messages: &[Value]) -> Reply {
        let choices: Vec<Value> = messages.iter().map(|it| json!({"index": 0, "message": it})).collect();
        let body = json!({"object": "chat.completion", "choices": choices, "x": 1}).to_string();
        Reply {
            model: "m".into(),
            reply: ChatReply::parse(body.as_bytes()).unwrap(),
            usage: Usage::default(),
        }
    }

    #[test]
    fn everything_that_was_written_is_seen() {
        let call =
            json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{\"q\":1}"}});
        let reply = reply(&[
            json!({"role": "assistant", "content": "one", "reasoning_content": "why"}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "two"}], "refusal": "no"}),
            json!({"role": "assistant", "content": null, "tool_calls": [call]}),
        ]);
        assert_eq!(written(&reply.reply), ["one", "why", "two", "no", "{\"q\":1}"]);
    }

    #[test]
    fn a_remark_stands_in_front_of_texts_and_nothing_else_changes() {
        let before = reply(&[
            json!({"role": "assistant", "content": "one"}),
            json!({"role": "assistant", "content": [{"type": "text", "text": "two"}]}),
            json!({"role": "assistant", "content": null}),
        ]);
        let after = prefixed(before, "Mind: ");
        let body: Value = serde_json::from_slice(&after.reply.to_bytes()).unwrap();
        assert_eq!(body["choices"][0]["message"]["content"], "Mind: one");
        assert_eq!(body["choices"][1]["message"]["content"][0]["text"], "Mind: ");
        assert_eq!(body["choices"][1]["message"]["content"][1]["text"], "two");
        assert_eq!((&body["choices"][2]["message"]["content"], &body["x"]), (&Value::Null, &json!(1)));
        assert_eq!(after.reply.content, "Mind: one");
    }

    #[test]
    fn json_is_for_a_program() {
        for (format, want) in [("json_object", true), ("json_schema", true), ("text", false)] {
            let mut request = ChatRequest::new("m", Vec::new());
            request.set("response_format", &json!({"type": format}));
            assert_eq!(is_for_a_program(&request), want, "{format}");
        }
    }
}
