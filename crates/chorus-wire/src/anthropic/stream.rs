//! Chunks of a chat completion → events of the protocol.
//!
//! Blocks follow each other: a new kind of news closes the block before it. A late piece of an earlier tool call still
//! goes to its own block, by number. **Invariant:** `message_stop` is written by [`MessageStream::end`] alone, behind a
//! whole answer (case A13).

use super::extras::THINKING_BLOCKS;
use super::reply::{stop_reason, usage_of};
use crate::body::RawObject;
use crate::chunk::{Chunk, ChunkChoice};
use crate::content::text;
use crate::raw::{Raw, elements, raw_or_null};
use crate::sse;
use crate::tool::ToolCallDelta;
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One answer as a stream of the Messages protocol.
#[derive(Debug)]
pub struct MessageStream {
    id: String,
    model: String,
    /// An estimate, until the totals are known.
    input_tokens: u64,
    /// Top-level fields of chunks to hand on.
    shown: &'static [&'static str],
    begun: bool,
    open: Option<Open>,
    blocks: usize,
    /// Number of the block of each tool call.
    calls: BTreeMap<u32, usize>,
    finish: Option<String>,
    sequence: Option<String>,
    usage: Option<Raw>,
}

/// The block that is being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Thinking,
    Text,
    Call(u32),
}

impl MessageStream {
    /// A stream of that message. `input_tokens` is what the prompt is taken to hold, which the last event corrects;
    /// `shown` are top-level fields of chunks that are handed on in the first event, such as a looper's trace.
    #[must_use]
    pub fn new(id: String, model: String, input_tokens: u64, shown: &'static [&'static str]) -> Self {
        Self {
            id,
            model,
            input_tokens,
            shown,
            begun: false,
            open: None,
            blocks: 0,
            calls: BTreeMap::new(),
            finish: None,
            sequence: None,
            usage: None,
        }
    }

    /// The events that a chunk becomes; empty when it says nothing.
    pub fn push(&mut self, chunk: &Chunk) -> Bytes {
        let mut out = BytesMut::new();
        self.begin(chunk.body(), &mut out);
        if chunk.usage.is_some() {
            self.usage = chunk.body().get("usage").cloned();
        }
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            self.choice(choice, chunk, &mut out);
        }
        out.freeze()
    }

    /// The events behind a whole answer.
    pub fn end(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.begin(&RawObject::default(), &mut out);
        self.close(&mut out);
        let reason = stop_reason(self.finish.as_deref(), !self.calls.is_empty(), self.sequence.is_some());
        let usage = usage_of(self.usage.as_deref());
        let delta = json!({"stop_reason": reason, "stop_sequence": self.sequence});
        write(&mut out, "message_delta", &json!({"type": "message_delta", "delta": delta, "usage": usage}));
        write(&mut out, "message_stop", &json!({"type": "message_stop"}));
        out.freeze()
    }

    /// An event that says that the server still works.
    #[must_use]
    pub fn ping() -> Bytes {
        sse::encode_named("ping", br#"{"type":"ping"}"#)
    }

    /// An error, after which nothing comes. It may be the first event.
    #[must_use]
    pub fn failed(kind: &str, message: &str, code: Option<&str>) -> Bytes {
        sse::encode_named("error", &super::error_bytes(kind, message, code, None))
    }

    fn begin(&mut self, body: &RawObject, out: &mut BytesMut) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let usage = json!({
            "input_tokens": self.input_tokens, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": 0,
        });
        let mut message = RawObject::default();
        for (field, value) in [
            ("id", json!(self.id)),
            ("type", json!("message")),
            ("role", json!("assistant")),
            ("model", json!(self.model)),
            ("content", json!([])),
            ("stop_reason", Value::Null),
            ("stop_sequence", Value::Null),
            ("usage", usage),
        ] {
            message.set(field, raw_or_null(&value));
        }
        for field in self.shown {
            if let Some(value) = body.get(field) {
                message.set(field, value.clone());
            }
        }
        let mut event = RawObject::default();
        event.set("type", raw_or_null("message_start"));
        event.set("message", raw_or_null(&message));
        out.extend_from_slice(&sse::encode_named("message_start", &event.to_bytes()));
    }

    fn choice(&mut self, choice: &ChunkChoice, chunk: &Chunk, out: &mut BytesMut) {
        if let Some(thinking) = choice.reasoning.as_deref().filter(|text| !text.is_empty()) {
            self.open(Open::Thinking, &json!({"type": "thinking", "thinking": "", "signature": ""}), out);
            self.delta(&json!({"type": "thinking_delta", "thinking": thinking}), out);
        }
        if chunk.body().get("choices").is_some_and(|raw| raw.contains(THINKING_BLOCKS)) {
            self.thinking_blocks(chunk, out);
        }
        if let Some(text) = choice.content.as_deref().filter(|text| !text.is_empty()) {
            self.open(Open::Text, &json!({"type": "text", "text": ""}), out);
            self.delta(&json!({"type": "text_delta", "text": text}), out);
        }
        for part in &choice.tool_calls {
            self.call(part, out);
        }
        if let Some(reason) = &choice.finish_reason {
            self.finish = Some(reason.clone());
            self.sequence =
                first_choice(chunk).and_then(|c| c.get_set("stop_reason").and_then(|raw| text(raw)));
        }
    }

    /// Signatures and hidden thoughts, as an Anthropic backend gives them.
    fn thinking_blocks(&mut self, chunk: &Chunk, out: &mut BytesMut) {
        let delta: Option<RawObject> = first_choice(chunk).and_then(|c| c.read("delta").ok().flatten());
        let blocks = delta.as_ref().and_then(|delta| elements(delta.get(THINKING_BLOCKS)?));
        for block in blocks.unwrap_or_default() {
            let Ok(block) = RawObject::parse(block.as_bytes()) else { continue };
            if let Some(signature) = block.get("signature").and_then(|raw| text(raw)) {
                self.open(Open::Thinking, &json!({"type": "thinking", "thinking": "", "signature": ""}), out);
                self.delta(&json!({"type": "signature_delta", "signature": signature}), out);
            } else if block.get("data").is_some() {
                self.close(out);
                self.start(&block, out);
                self.stop(out);
            }
        }
    }

    fn call(&mut self, part: &ToolCallDelta, out: &mut BytesMut) {
        let number = part.index.unwrap_or(0);
        if !self.calls.contains_key(&number) {
            self.close(out);
            self.calls.insert(number, self.blocks);
            let (id, name) =
                (part.id.as_deref().unwrap_or_default(), part.name.as_deref().unwrap_or_default());
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            self.open(Open::Call(number), &block, out);
        }
        if let (Some(at), false) = (self.calls.get(&number), part.arguments.is_empty()) {
            let delta = json!({"type": "input_json_delta", "partial_json": part.arguments});
            write(out, DELTA, &json!({"type": DELTA, "index": at, "delta": delta}));
        }
    }

    fn open(&mut self, kind: Open, block: &Value, out: &mut BytesMut) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        self.start(block, out);
        self.open = Some(kind);
    }

    fn start<T: serde::Serialize>(&self, block: &T, out: &mut BytesMut) {
        let mut event = RawObject::default();
        event.set("type", raw_or_null("content_block_start"));
        event.set("index", raw_or_null(&self.blocks));
        event.set("content_block", raw_or_null(block));
        out.extend_from_slice(&sse::encode_named("content_block_start", &event.to_bytes()));
    }

    fn delta(&self, delta: &Value, out: &mut BytesMut) {
        write(out, DELTA, &json!({"type": DELTA, "index": self.blocks, "delta": delta}));
    }

    fn close(&mut self, out: &mut BytesMut) {
        if self.open.take().is_some() {
            self.stop(out);
        }
    }

    fn stop(&mut self, out: &mut BytesMut) {
        write(out, "content_block_stop", &json!({"type": "content_block_stop", "index": self.blocks}));
        self.blocks += 1;
    }
}

/// The name of the event that carries news of a block.
const DELTA: &str = "content_block_delta";

fn write(out: &mut BytesMut, name: &str, event: &Value) {
    out.extend_from_slice(&sse::encode_named(name, event.to_string().as_bytes()));
}

fn first_choice(chunk: &Chunk) -> Option<RawObject> {
    let choices = chunk.body().get("choices")?;
    serde_json::from_str(elements(choices)?.first()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sse::SseDecoder;

    fn chunk(choice: &Value) -> Chunk {
        Chunk::parse(json!({"choices": [choice]}).to_string().as_bytes()).unwrap()
    }

    fn events(bytes: &[u8]) -> Vec<Value> {
        let (mut decoder, mut out) = (SseDecoder::new(1 << 20), Vec::new());
        decoder.push(bytes, &mut out).unwrap();
        out.iter()
            .map(|event| {
                let data: Value = serde_json::from_slice(&event.data).unwrap();
                assert_eq!(event.event.as_deref(), data["type"].as_str());
                data
            })
            .collect()
    }

    /// Kind and place of each event, and the text of each delta.
    fn told(all: &[Value]) -> Vec<String> {
        let text = |event: &Value| {
            let delta = &event["delta"];
            let words = ["text", "thinking", "signature", "partial_json", "stop_reason"];
            let said = words.iter().find_map(|field| delta[field].as_str()).unwrap_or_default().to_owned();
            let kind = event["type"].as_str().unwrap().trim_start_matches("content_block_");
            match event["index"].as_u64() {
                Some(at) => format!(
                    "{at} {kind} {}{said}",
                    event["content_block"]["type"].as_str().unwrap_or_default()
                ),
                None => format!("{kind} {said}"),
            }
        };
        all.iter().map(|event| text(event).trim().to_owned()).collect()
    }

    #[test]
    fn news_becomes_blocks_that_follow_each_other() {
        let mut stream = MessageStream::new("msg_1".into(), "m".into(), 7, &["fusion"]);
        let mut bytes = Vec::new();
        let mut first = chunk(&json!({"index": 0, "delta": {"role": "assistant", "content": ""}}));
        first.set("fusion", &json!({"n": 1}));
        bytes.extend(stream.push(&first));
        let call = |index: u32, id: Option<&str>, arguments: &str| {
            let name = id.map(|_| "sky");
            json!({"index": 0, "delta": {"tool_calls": [
                {"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]}})
        };
        for choice in [
            json!({"index": 0, "delta": {"reasoning_content": "Hm"}}),
            json!({"index": 0, "delta": {"thinking_blocks": [{"type": "thinking", "signature": "s1"}]}}),
            json!({"index": 0, "delta": {"content": "Hi"}}),
            json!({"index": 1, "delta": {"content": "not this choice"}}),
            json!({"index": 0, "delta": {"content": " you"}}),
            call(0, Some("c1"), ""),
            call(0, None, "{\"a\""),
            call(1, Some("c2"), "{}"),
            call(0, None, ":1}"),
            json!({"index": 0, "delta": {}, "finish_reason": "tool_calls"}),
        ] {
            bytes.extend(stream.push(&chunk(&choice)));
        }
        let totals =
            json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}});
        bytes.extend(stream.push(&Chunk::parse(totals.to_string().as_bytes()).unwrap()));
        bytes.extend(stream.end());
        let all = events(&bytes);
        assert_eq!(
            told(&all),
            [
                "message_start",
                "0 start thinking",
                "0 delta Hm",
                "0 delta s1",
                "0 stop",
                "1 start text",
                "1 delta Hi",
                "1 delta  you",
                "1 stop",
                "2 start tool_use",
                "2 delta {\"a\"",
                "2 stop",
                "3 start tool_use",
                "3 delta {}",
                "2 delta :1}",
                "3 stop",
                "message_delta tool_use",
                "message_stop",
            ]
        );
        assert_eq!(all[0]["message"]["fusion"]["n"], 1);
        assert_eq!(all[0]["message"]["usage"]["input_tokens"], 7);
        assert_eq!(all[16]["usage"]["input_tokens"], 5);
        assert_eq!(all[16]["usage"]["output_tokens"], 2);
    }
}
