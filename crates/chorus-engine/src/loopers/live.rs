//! A whole answer as the stream that the client asked for.
//!
//! **Invariant:** every choice keeps what it has besides its text: tool calls, reasoning, fields that a looper added.

use chorus_collab::{CallFault, Live, Reply};
use chorus_wire::{Assembler, Chunk, StreamIdentity};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

/// Each choice as one chunk with all of it, and one with its end; then the usage, where the answer has one.
#[must_use]
pub(crate) fn as_live(reply: Reply) -> Live {
    live(reply, told)
}

/// As [`as_live`], with the texts of each choice in pieces, as a model would have written them.
#[must_use]
pub(crate) fn as_live_pieces(reply: Reply) -> Live {
    live(reply, told_in_pieces)
}

fn live(reply: Reply, told: impl Fn(usize, Map<String, Value>) -> Vec<Chunk>) -> Live {
    let choices = reply.reply.body().read::<Vec<Map<String, Value>>>("choices").ok().flatten();
    let told = choices.unwrap_or_default().into_iter().enumerate().flat_map(|(at, choice)| told(at, choice));
    let usage = reply.reply.body().get_set("usage").and_then(|usage| {
        let body = format!(r#"{{"object":"chat.completion.chunk","choices":[],"usage":{}}}"#, usage.get());
        Chunk::parse(body.as_bytes()).ok()
    });
    let chunks: Vec<_> = std::iter::once(Chunk::role()).chain(told).chain(usage).map(Ok).collect();
    Live { model: reply.model, chunks: stream::iter(chunks).boxed() }
}

/// A stream as the whole answer that it comes to.
///
/// # Errors
/// The fault that ends it.
pub(crate) async fn as_reply(mut live: Live) -> Result<Reply, CallFault> {
    let mut all = Assembler::default();
    while let Some(chunk) = live.chunks.next().await {
        all.push(&chunk?);
    }
    let identity = StreamIdentity { id: String::new(), model: live.model.clone(), created: 0 };
    let reply = all.finish(&identity);
    Ok(Reply { model: live.model, usage: reply.usage.unwrap_or_default(), reply })
}

fn told(at: usize, mut choice: Map<String, Value>) -> Vec<Chunk> {
    let end = choice.remove("finish_reason").filter(|reason| !reason.is_null());
    let mut delta = choice.remove("message").unwrap_or_else(|| json!({}));
    number_tool_calls(&mut delta);
    choice.insert("index".to_owned(), at.into());
    choice.insert("delta".to_owned(), delta);
    choice.insert("finish_reason".to_owned(), Value::Null);
    let finish = json!({"index": at, "delta": {}, "finish_reason": end.unwrap_or_else(|| "stop".into())});
    [Value::Object(choice), finish].iter().filter_map(chunk).collect()
}

/// Texts of a message that a model writes piece by piece, in the order in which it does.
const WRITTEN: [&str; 4] = ["reasoning_content", "reasoning", "content", "refusal"];

/// Bytes of a piece, about.
const PIECE_BYTES: usize = 48;

fn told_in_pieces(at: usize, mut choice: Map<String, Value>) -> Vec<Chunk> {
    let mut pieces = Vec::new();
    if let Some(message) = choice.get_mut("message").and_then(Value::as_object_mut) {
        for field in WRITTEN {
            let is_text =
                message.get(field).is_some_and(|it| it.as_str().is_some_and(|text| !text.is_empty()));
            if let Some(Value::String(text)) = is_text.then(|| message.remove(field)).flatten() {
                let piece = |text: &str| json!({"index": at, "delta": {field: text}, "finish_reason": null});
                pieces.extend(in_pieces(&text).into_iter().map(piece));
            }
        }
        // What is left of a message without a text has none to repeat.
        message.retain(|key, value| !(value.is_null() && WRITTEN.contains(&key.as_str())));
    }
    let pieces: Vec<Chunk> = pieces.iter().filter_map(chunk).collect();
    pieces.into_iter().chain(told(at, choice)).collect()
}

/// A text cut before words.
fn in_pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut from, mut space) = (0, false);
    for (at, c) in text.char_indices() {
        if space && !c.is_whitespace() && at - from >= PIECE_BYTES {
            pieces.push(text.get(from..at).unwrap_or_default());
            from = at;
        }
        space = c.is_whitespace();
    }
    pieces.push(text.get(from..).unwrap_or_default());
    pieces
}

/// A stream numbers its tool calls; a whole message does not.
fn number_tool_calls(delta: &mut Value) {
    let calls = delta.get_mut("tool_calls").and_then(Value::as_array_mut);
    for (at, call) in calls.into_iter().flatten().enumerate() {
        if let Some(fields) = call.as_object_mut() {
            fields.insert("index".to_owned(), at.into());
        }
    }
}

fn chunk(choice: &Value) -> Option<Chunk> {
    let body = json!({"object": "chat.completion.chunk", "choices": [choice]});
    Chunk::parse(body.to_string().as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{ChatReply, Usage};

    #[tokio::test]
    async fn every_choice_and_its_own_fields_reach_the_stream() {
        let call = json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let body = json!({"object": "chat.completion", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "one"}, "finish_reason": "length", "rating": 0.5},
            {"index": 1, "message": {"role": "assistant", "content": null, "tool_calls": [call]}, "finish_reason": "tool_calls"},
        ]});
        let reply = ChatReply::parse(body.to_string().as_bytes()).unwrap();
        let live = as_live(Reply { model: "m".into(), reply, usage: Usage::default() });
        let chunks: Vec<Value> = live
            .chunks
            .map(|chunk| serde_json::from_slice(&chunk.unwrap().to_bytes()).unwrap())
            .collect()
            .await;
        let seen: Vec<&Value> = chunks.iter().skip(1).map(|chunk| &chunk["choices"][0]).collect();
        assert_eq!((&seen[0]["delta"]["content"], &seen[0]["rating"]), (&json!("one"), &json!(0.5)));
        assert_eq!((&seen[1]["index"], &seen[1]["finish_reason"]), (&json!(0), &json!("length")));
        assert_eq!(seen[2]["delta"]["tool_calls"][0]["index"], 0);
        assert_eq!((&seen[3]["index"], &seen[3]["finish_reason"]), (&json!(1), &json!("tool_calls")));
    }

    #[tokio::test]
    async fn f06_an_answer_in_pieces_comes_together_again() {
        let text = "Many words that nobody writes in one go, and then some more of them, to the very end.";
        let call =
            json!({"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}, "extra": 1});
        let message = json!({"role": "assistant", "content": text, "reasoning_content": text,
            "tool_calls": [call], "annotations": [{"n": 1}]});
        let choices =
            json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": "tool_calls"}]);
        let usage =
            json!({"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3, "details": {"x": 1}});
        let body = json!({"object": "chat.completion", "choices": choices, "usage": usage});
        let reply = ChatReply::parse(body.to_string().as_bytes()).unwrap();
        let live = as_live_pieces(Reply { model: "m".into(), reply, usage: Usage::default() });
        let mut all = Assembler::default();
        let chunks: Vec<Chunk> = live.chunks.map(Result::unwrap).collect().await;
        assert!(chunks.len() > 6);
        chunks.iter().for_each(|chunk| all.push(chunk));
        let whole = all.finish(&StreamIdentity { id: String::new(), model: String::new(), created: 0 });
        let whole: Value = serde_json::from_slice(&whole.to_bytes()).unwrap();
        assert_eq!((&whole["choices"], &whole["usage"]), (&choices, &usage));
    }
}
