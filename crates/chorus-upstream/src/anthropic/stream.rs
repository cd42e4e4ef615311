//! Events of the API → chunks of a chat completion.

use super::{error_of, finish_reason, usage_of};
use crate::UpstreamFault;
use crate::seam::{Reader, Said};
use chorus_wire::anthropic::extras::THINKING_BLOCKS;
use chorus_wire::{Chunk, SseEvent};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Reads one stream of the Messages API.
#[derive(Debug, Default)]
pub(crate) struct Events {
    id: Value,
    model: Value,
    /// All that was reported of usage, later fields over earlier ones: the input stands in the first event, the output in
    /// the last but one.
    usage: Map<String, Value>,
    /// Tool calls by the number of their block.
    calls: BTreeMap<u64, Call>,
}

#[derive(Debug)]
struct Call {
    index: usize,
    has_arguments: bool,
}

impl Reader for Events {
    fn event(&mut self, event: &SseEvent) -> Result<Said, UpstreamFault> {
        if event.data.trim_ascii().is_empty() {
            return Ok(Said::Nothing);
        }
        let told: Value = serde_json::from_slice(&event.data).map_err(UpstreamFault::malformed)?;
        let at = told.get("index").and_then(Value::as_u64).unwrap_or(0);
        match told.get("type").and_then(Value::as_str) {
            Some("message_start") => {
                let message = told.get("message").cloned().unwrap_or_default();
                self.id = message.get("id").cloned().unwrap_or_default();
                self.model = message.get("model").cloned().unwrap_or_default();
                self.count(message.get("usage"));
                self.chunk(&json!({"role": "assistant", "content": ""}))
            }
            Some("content_block_start") => self.started(at, told.get("content_block")),
            Some("content_block_delta") => self.delta(at, told.get("delta")),
            Some("content_block_stop") => match self.calls.get(&at) {
                // A call without arguments is a call with an empty object of them.
                Some(call) if !call.has_arguments => self.arguments(call.index, "{}"),
                _ => Ok(Said::Nothing),
            },
            Some("message_delta") => self.ended(&told),
            Some("message_stop") => Ok(Said::Done),
            Some("error") => {
                let error = error_of(&event.data);
                Err(error.map_or_else(|| UpstreamFault::malformed("an error event"), UpstreamFault::in_band))
            }
            // `ping`, and what the API may add later.
            _ => Ok(Said::Nothing),
        }
    }
}

impl Events {
    fn started(&mut self, at: u64, block: Option<&Value>) -> Result<Said, UpstreamFault> {
        let Some(block) = block else { return Ok(Said::Nothing) };
        match block.get("type").and_then(Value::as_str) {
            Some("tool_use") => {
                let index = self.calls.len();
                self.calls.insert(at, Call { index, has_arguments: false });
                let function = json!({"name": block.get("name"), "arguments": ""});
                let call =
                    json!({"index": index, "id": block.get("id"), "type": "function", "function": function});
                self.chunk(&json!({"tool_calls": [call]}))
            }
            Some("redacted_thinking") => self.chunk(&json!({THINKING_BLOCKS: [block]})),
            Some("text") if block.get("text") != Some(&json!("")) => {
                self.chunk(&json!({"content": block.get("text")}))
            }
            _ => Ok(Said::Nothing),
        }
    }

    fn delta(&mut self, at: u64, delta: Option<&Value>) -> Result<Said, UpstreamFault> {
        let Some(delta) = delta else { return Ok(Said::Nothing) };
        let text = |field: &str| delta.get(field).cloned().unwrap_or_default();
        match delta.get("type").and_then(Value::as_str) {
            Some("text_delta") => self.chunk(&json!({"content": text("text")})),
            Some("thinking_delta") => self.chunk(&json!({"reasoning_content": text("thinking")})),
            Some("signature_delta") => {
                let block = json!({"type": "thinking", "signature": text("signature")});
                self.chunk(&json!({THINKING_BLOCKS: [block]}))
            }
            Some("input_json_delta") => {
                let piece = delta.get("partial_json").and_then(Value::as_str).unwrap_or_default();
                let Some(call) = self.calls.get_mut(&at).filter(|_| !piece.is_empty()) else {
                    return Ok(Said::Nothing);
                };
                call.has_arguments = true;
                let index = call.index;
                self.arguments(index, piece)
            }
            _ => Ok(Said::Nothing),
        }
    }

    /// The reason, and all that was used; `message_stop` follows.
    fn ended(&mut self, told: &Value) -> Result<Said, UpstreamFault> {
        self.count(told.get("usage"));
        let stop = told.pointer("/delta/stop_reason").and_then(Value::as_str);
        let mut choice = json!({"index": 0, "delta": {}, "finish_reason": stop.map(finish_reason)});
        let sequence = told.pointer("/delta/stop_sequence").filter(|sequence| sequence.is_string());
        if let (Some(fields), Some(sequence)) = (choice.as_object_mut(), sequence) {
            fields.insert("stop_reason".to_owned(), sequence.clone());
        }
        let finish = self.of(&json!([choice]), None)?;
        let usage = usage_of(&Value::Object(self.usage.clone()));
        Ok(Said::Chunks(vec![finish, self.of(&json!([]), Some(usage))?]))
    }

    fn count(&mut self, usage: Option<&Value>) {
        let reported = usage.and_then(Value::as_object).into_iter().flatten();
        self.usage.extend(reported.filter(|(_, n)| n.is_u64()).map(|(field, n)| (field.clone(), n.clone())));
    }

    fn arguments(&self, index: usize, piece: &str) -> Result<Said, UpstreamFault> {
        self.chunk(&json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    }

    fn chunk(&self, delta: &Value) -> Result<Said, UpstreamFault> {
        let choices = json!([{"index": 0, "delta": delta, "finish_reason": null}]);
        self.of(&choices, None).map(Said::Chunk)
    }

    fn of(&self, choices: &Value, usage: Option<Value>) -> Result<Chunk, UpstreamFault> {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": 0, "model": self.model, "choices": choices,
        });
        if let (Some(fields), Some(usage)) = (chunk.as_object_mut(), usage) {
            fields.insert("usage".to_owned(), usage);
        }
        Chunk::parse(chunk.to_string().as_bytes()).map_err(UpstreamFault::malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::{Assembler, StreamIdentity};

    fn feed(events: &[Value]) -> Result<(Vec<Chunk>, bool), UpstreamFault> {
        let (mut reader, mut chunks, mut done) = (Events::default(), Vec::new(), false);
        for event in events {
            let event = SseEvent { event: None, data: event.to_string().into_bytes() };
            match reader.event(&event)? {
                Said::Chunk(chunk) => chunks.push(chunk),
                Said::Chunks(more) => chunks.extend(more),
                Said::Done => done = true,
                Said::Nothing => {}
            }
        }
        Ok((chunks, done))
    }

    fn block(at: u64, kind: &str, rest: &Value) -> Value {
        let name = if kind == "start" { "content_block" } else { "delta" };
        json!({"type": format!("content_block_{kind}"), "index": at, name: rest})
    }

    #[test]
    fn a_stream_is_the_chunks_of_a_chat_completion() {
        let (chunks, done) = feed(&[
            json!({"type": "message_start", "message": {"id": "msg_1", "model": "m",
                "usage": {"input_tokens": 3, "cache_read_input_tokens": 4, "output_tokens": 1}}}),
            json!({"type": "ping"}),
            block(0, "start", &json!({"type": "thinking", "thinking": "", "signature": ""})),
            block(0, "delta", &json!({"type": "thinking_delta", "thinking": "hm"})),
            block(0, "delta", &json!({"type": "signature_delta", "signature": "s"})),
            block(1, "start", &json!({"type": "text", "text": ""})),
            block(1, "delta", &json!({"type": "text_delta", "text": "Hi"})),
            block(2, "start", &json!({"type": "tool_use", "id": "t1", "name": "sky", "input": {}})),
            block(2, "delta", &json!({"type": "input_json_delta", "partial_json": ""})),
            block(2, "delta", &json!({"type": "input_json_delta", "partial_json": "{\"a\":1}"})),
            block(2, "stop", &Value::Null),
            block(3, "start", &json!({"type": "tool_use", "id": "t2", "name": "now", "input": {}})),
            block(3, "stop", &Value::Null),
            json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null},
                "usage": {"output_tokens": 9}}),
            json!({"type": "message_stop"}),
        ])
        .unwrap();
        assert!(done);
        let mut assembler = Assembler::default();
        chunks.iter().for_each(|chunk| assembler.push(chunk));
        let identity = StreamIdentity { id: "x".into(), model: "m".into(), created: 0 };
        let reply = assembler.finish(&identity);
        assert_eq!((&*reply.content, reply.reasoning.as_deref()), ("Hi", Some("hm")));
        let calls: Vec<_> = reply.tool_calls.iter().map(|call| (&*call.id, &*call.arguments)).collect();
        assert_eq!(calls, [("t1", "{\"a\":1}"), ("t2", "{}")]);
        assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(reply.usage.map(|u| (u.prompt_tokens, u.completion_tokens)), Some((7, 9)));
    }

    #[test]
    fn c08_an_error_amid_the_stream_is_a_fault() {
        let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
        let start = block(0, "start", &json!({"type": "text", "text": "Hi"}));
        assert_eq!(feed(&[start, error]).unwrap_err().status(), Some(529));
    }
}
