//! A whole answer as the stream that the client asked for.
//!
//! **Invariant:** every choice keeps what it has besides its text: tool calls, reasoning, fields that a looper added.

use chorus_collab::{CallFault, Live, Reply};
use chorus_wire::{Assembler, Chunk, StreamIdentity};
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value, json};

/// Each choice as one chunk with all of it, and one with its end.
#[must_use]
pub(crate) fn as_live(reply: Reply) -> Live {
    let choices = reply.reply.body().read::<Vec<Map<String, Value>>>("choices").ok().flatten();
    let told = choices.unwrap_or_default().into_iter().enumerate().flat_map(|(at, choice)| told(at, choice));
    let chunks: Vec<_> = std::iter::once(Chunk::role()).chain(told).map(Ok).collect();
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
}
