//! Makes an answer that calls tools say so in its finish reason, whatever the backend wrote there (case B17).

use crate::calls::Live;
use chorus_wire::{ChatReply, Chunk};
use futures_util::StreamExt as _;
use serde_json::Value;

/// The reason of an answer that calls tools.
const TOOL_CALLS: &str = "tool_calls";

/// A whole reply.
pub(crate) fn whole(reply: &mut ChatReply) {
    if reply.tool_calls.is_empty() || reply.finish_reason.as_deref() == Some(TOOL_CALLS) {
        return;
    }
    if let Ok(Some(mut choices)) = reply.body().read::<Value>("choices") {
        mend(&mut choices, |choice| {
            choice
                .pointer("/message/tool_calls")
                .and_then(Value::as_array)
                .is_some_and(|calls| !calls.is_empty())
        });
        reply.set("choices", &choices);
        reply.finish_reason = Some(TOOL_CALLS.to_owned());
    }
}

/// A stream: its last chunks are mended once a tool call has gone by.
pub(crate) fn live(live: Live) -> Live {
    let mut called = false;
    let chunks = live.chunks.map(move |item| {
        item.map(|mut chunk| {
            called |= chunk.choices.iter().any(|choice| !choice.tool_calls.is_empty());
            if called && chunk.choices.iter().any(|choice| choice.finish_reason.as_deref() == Some("stop")) {
                retell(&mut chunk);
            }
            chunk
        })
    });
    Live { model: live.model, chunks: chunks.boxed() }
}

fn retell(chunk: &mut Chunk) {
    let choices = serde_json::from_slice::<Value>(&chunk.to_bytes()).ok();
    if let Some(mut choices) = choices.and_then(|mut body| body.get_mut("choices").map(Value::take)) {
        mend(&mut choices, |choice| choice.get("finish_reason").is_some_and(|reason| reason == "stop"));
        chunk.set("choices", &choices);
    }
    for choice in chunk.choices.iter_mut().filter(|choice| choice.finish_reason.as_deref() == Some("stop")) {
        choice.finish_reason = Some(TOOL_CALLS.to_owned());
    }
}

fn mend(choices: &mut Value, wrong: impl Fn(&Value) -> bool) {
    for choice in choices.as_array_mut().into_iter().flatten() {
        if wrong(choice)
            && let Some(fields) = choice.as_object_mut()
        {
            fields.insert("finish_reason".to_owned(), TOOL_CALLS.into());
        }
    }
}
