//! Chunks of a chat completion → typed events of the protocol.
//!
//! Items follow each other in the order in which they begin. Calls of functions stay open until the end: their pieces may
//! come in any order. **Invariant:** `response.completed` and `response.incomplete` are written by
//! [`ResponseStream::end`] alone, behind a whole answer (case A13).

use super::object::{Outcome, ResponseObject};
use super::output::{OutputIds, function_call, message, output_text, reasoning};
use crate::body::RawObject;
use crate::chunk::{Chunk, ChunkChoice};
use crate::raw::{Raw, raw_or_null};
use crate::sse;
use crate::tool::{ToolCall, ToolCallDelta};
use bytes::{Bytes, BytesMut};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One response as a stream.
#[derive(Debug)]
pub struct ResponseStream {
    object: ResponseObject,
    ids: OutputIds,
    shown: &'static [&'static str],
    sequence: u64,
    items: Vec<Item>,
    /// The item that grows, if it is a text.
    open: Option<usize>,
    /// Place of each call's item.
    calls: BTreeMap<u32, usize>,
    finish: Option<String>,
    usage: Option<Raw>,
    begun: bool,
}

/// One output item as it grows.
#[derive(Debug)]
enum Item {
    Reasoning(String),
    Text(String),
    Call(ToolCall),
}

impl ResponseStream {
    /// A stream of that response; `shown` are top-level fields of the first chunk to hand on, such as a looper's trace.
    #[must_use]
    pub fn new(object: ResponseObject, shown: &'static [&'static str]) -> Self {
        let ids = OutputIds::of(&object.id);
        Self {
            object,
            ids,
            shown,
            sequence: 0,
            items: Vec::new(),
            open: None,
            calls: BTreeMap::new(),
            finish: None,
            usage: None,
            begun: false,
        }
    }

    /// The first events.
    pub fn opening(&mut self) -> Bytes {
        let mut out = BytesMut::new();
        self.lifecycle("response.created", &Outcome::InProgress, &mut out);
        self.lifecycle("response.in_progress", &Outcome::InProgress, &mut out);
        out.freeze()
    }

    /// The events that a chunk becomes; empty when it says nothing.
    pub fn push(&mut self, chunk: &Chunk) -> Bytes {
        let mut out = BytesMut::new();
        if !std::mem::replace(&mut self.begun, true) {
            self.object.show(chunk.body(), self.shown);
        }
        if chunk.usage.is_some() {
            self.usage = chunk.body().get("usage").cloned();
        }
        for choice in chunk.choices.iter().filter(|choice| choice.index == 0) {
            self.choice(choice, &mut out);
        }
        out.freeze()
    }

    /// The events behind a whole answer, and the object that they end with.
    pub fn end(&mut self) -> (Bytes, RawObject) {
        let mut out = BytesMut::new();
        if self.items.is_empty() {
            self.text("", &mut out);
        }
        self.close(&mut out);
        let calls: Vec<usize> = self.calls.values().copied().collect();
        for at in calls {
            self.finish_call(at, &mut out);
        }
        let output = (0..self.items.len()).map(|at| self.item(at, "completed")).collect();
        let outcome = Outcome::Ended { finish: self.finish.clone(), output, usage: self.usage.clone() };
        let cut = matches!(self.finish.as_deref(), Some("length" | "content_filter"));
        let name = if cut { "response.incomplete" } else { "response.completed" };
        let object = self.lifecycle(name, &outcome, &mut out);
        (out.freeze(), object)
    }

    /// The last event of a response that failed, and its object.
    pub fn failed(&mut self, code: &str, message: &str) -> (Bytes, RawObject) {
        let mut out = BytesMut::new();
        let outcome = Outcome::Failed { code: code.to_owned(), message: message.to_owned() };
        let object = self.lifecycle("response.failed", &outcome, &mut out);
        (out.freeze(), object)
    }

    fn lifecycle(&mut self, name: &str, outcome: &Outcome, out: &mut BytesMut) -> RawObject {
        let object = self.object.json(outcome);
        let mut event = RawObject::default();
        event.set("type", raw_or_null(name));
        event.set("sequence_number", raw_or_null(&self.number()));
        event.set("response", raw_or_null(&object));
        out.extend_from_slice(&sse::encode_named(name, &event.to_bytes()));
        object
    }

    fn choice(&mut self, choice: &ChunkChoice, out: &mut BytesMut) {
        if let Some(thought) = choice.reasoning.as_deref().filter(|text| !text.is_empty()) {
            self.thought(thought, out);
        }
        if let Some(text) = choice.content.as_deref().filter(|text| !text.is_empty()) {
            self.text(text, out);
        }
        for part in &choice.tool_calls {
            self.call(part, out);
        }
        if let Some(reason) = &choice.finish_reason {
            self.finish = Some(reason.clone());
        }
    }

    fn thought(&mut self, more: &str, out: &mut BytesMut) {
        if !matches!(self.open.and_then(|at| self.items.get(at)), Some(Item::Reasoning(_))) {
            self.close(out);
            self.begin(Item::Reasoning(String::new()), out);
            self.part("response.content_part.added", &json!({"type": "reasoning_text", "text": ""}), out);
        }
        if let Some(Item::Reasoning(text)) = self.open.and_then(|at| self.items.get_mut(at)) {
            text.push_str(more);
        }
        self.tell(
            "response.reasoning_text.delta",
            &[("content_index", json!(0)), ("delta", json!(more))],
            out,
        );
    }

    fn text(&mut self, more: &str, out: &mut BytesMut) {
        if !matches!(self.open.and_then(|at| self.items.get(at)), Some(Item::Text(_))) {
            self.close(out);
            self.begin(Item::Text(String::new()), out);
            self.part("response.content_part.added", &output_text(""), out);
        }
        if let Some(Item::Text(text)) = self.open.and_then(|at| self.items.get_mut(at)) {
            text.push_str(more);
        }
        if !more.is_empty() {
            let news = [("content_index", json!(0)), ("delta", json!(more)), ("logprobs", json!([]))];
            self.tell("response.output_text.delta", &news, out);
        }
    }

    fn call(&mut self, part: &ToolCallDelta, out: &mut BytesMut) {
        let number = part.index.unwrap_or(0);
        let at = match self.calls.get(&number) {
            Some(at) => *at,
            None => {
                self.close(out);
                let (id, name) = (part.id.clone().unwrap_or_default(), part.name.clone().unwrap_or_default());
                let at = self.begin(Item::Call(ToolCall { id, name, arguments: String::new() }), out);
                self.open = None;
                self.calls.insert(number, at);
                at
            }
        };
        if part.arguments.is_empty() {
            return;
        }
        if let Some(Item::Call(call)) = self.items.get_mut(at) {
            call.arguments.push_str(&part.arguments);
        }
        let news = [("delta", json!(part.arguments))];
        self.tell_of(at, "response.function_call_arguments.delta", &news, out);
    }

    fn finish_call(&mut self, at: usize, out: &mut BytesMut) {
        let Some(Item::Call(call)) = self.items.get(at) else { return };
        let news = [("arguments", json!(call.arguments)), ("name", json!(call.name))];
        self.tell_of(at, "response.function_call_arguments.done", &news, out);
        self.item_event("response.output_item.done", at, "completed", out);
    }

    fn begin(&mut self, item: Item, out: &mut BytesMut) -> usize {
        let at = self.items.len();
        self.items.push(item);
        self.open = Some(at);
        self.item_event("response.output_item.added", at, "in_progress", out);
        at
    }

    /// Ends the text that grows, if one does.
    fn close(&mut self, out: &mut BytesMut) {
        let Some(at) = self.open else { return };
        let (name, text, part) = match self.items.get(at) {
            Some(Item::Reasoning(text)) => (
                "response.reasoning_text.done",
                text.clone(),
                json!({"type": "reasoning_text", "text": text}),
            ),
            Some(Item::Text(text)) => ("response.output_text.done", text.clone(), output_text(text)),
            _ => return,
        };
        self.tell(name, &[("content_index", json!(0)), ("text", json!(text)), ("logprobs", json!([]))], out);
        self.part("response.content_part.done", &part, out);
        self.item_event("response.output_item.done", at, "completed", out);
        self.open = None;
    }

    fn part(&mut self, name: &str, part: &Value, out: &mut BytesMut) {
        self.tell(name, &[("content_index", json!(0)), ("part", part.clone())], out);
    }

    fn item_event(&mut self, name: &str, at: usize, status: &str, out: &mut BytesMut) {
        let event = json!({
            "type": name, "sequence_number": self.number(), "output_index": at, "item": self.item(at, status),
        });
        write(out, name, &event);
    }

    fn tell(&mut self, name: &str, news: &[(&str, Value)], out: &mut BytesMut) {
        if let Some(at) = self.open {
            self.tell_of(at, name, news, out);
        }
    }

    fn tell_of(&mut self, at: usize, name: &str, news: &[(&str, Value)], out: &mut BytesMut) {
        let mut event = json!({
            "type": name, "sequence_number": self.number(), "item_id": self.id(at), "output_index": at,
        });
        if let Some(fields) = event.as_object_mut() {
            fields.extend(news.iter().map(|(field, value)| ((*field).to_owned(), value.clone())));
        }
        write(out, name, &event);
    }

    fn id(&self, at: usize) -> String {
        let prefix = match self.items.get(at) {
            Some(Item::Reasoning(_)) => "rs",
            Some(Item::Call(_)) => "fc",
            _ => "msg",
        };
        self.ids.id(prefix, at)
    }

    fn item(&self, at: usize, status: &str) -> Value {
        let id = self.id(at);
        match self.items.get(at) {
            Some(Item::Reasoning(text)) => reasoning(&id, text),
            Some(Item::Text(text)) => message(&id, text, status),
            Some(Item::Call(call)) => function_call(&id, call, status),
            None => Value::Null,
        }
    }

    fn number(&mut self) -> u64 {
        let number = self.sequence;
        self.sequence += 1;
        number
    }
}

fn write(out: &mut BytesMut, name: &str, event: &Value) {
    out.extend_from_slice(&sse::encode_named(name, event.to_string().as_bytes()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::responses::Settings;
    use crate::sse::SseDecoder;

    fn events(bytes: &[u8]) -> Vec<Value> {
        let (mut decoder, mut out) = (SseDecoder::new(1 << 20), Vec::new());
        decoder.push(bytes, &mut out).unwrap();
        out.iter().map(|event| serde_json::from_slice(&event.data).unwrap()).collect()
    }

    fn stream() -> ResponseStream {
        let object = ResponseObject::new("resp_1".into(), 5, "m".into(), Settings::default());
        ResponseStream::new(object, &["fusion"])
    }

    #[test]
    fn news_becomes_items_with_numbers_without_gaps() {
        let mut stream = stream();
        let mut bytes = stream.opening().to_vec();
        let call = |index: u32, id: Option<&str>, arguments: &str| {
            let name = id.map(|_| "sky");
            json!({"tool_calls": [{"index": index, "id": id, "function": {"name": name, "arguments": arguments}}]})
        };
        for delta in [
            json!({"role": "assistant", "content": ""}),
            json!({"reasoning_content": "hm"}),
            json!({"content": "Hi"}),
            json!({"content": " you"}),
            call(0, Some("c1"), "{\"a\""),
            call(1, Some("c2"), "{}"),
            call(0, None, ":1}"),
        ] {
            let chunk = json!({"fusion": {"n": 1}, "choices": [{"index": 0, "delta": delta}]});
            bytes.extend(stream.push(&Chunk::parse(chunk.to_string().as_bytes()).unwrap()));
        }
        let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}});
        bytes.extend(stream.push(&Chunk::parse(last.to_string().as_bytes()).unwrap()));
        let (end, object) = stream.end();
        bytes.extend(end);
        let all = events(&bytes);
        let numbers: Vec<u64> = all.iter().map(|e| e["sequence_number"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..all.len() as u64).collect::<Vec<_>>());
        let kinds: Vec<&str> =
            all.iter().map(|e| e["type"].as_str().unwrap().trim_start_matches("response.")).collect();
        assert_eq!(
            kinds,
            [
                "created",
                "in_progress",
                "output_item.added",
                "content_part.added",
                "reasoning_text.delta",
                "reasoning_text.done",
                "content_part.done",
                "output_item.done",
                "output_item.added",
                "content_part.added",
                "output_text.delta",
                "output_text.delta",
                "output_text.done",
                "content_part.done",
                "output_item.done",
                "output_item.added",
                "function_call_arguments.delta",
                "output_item.added",
                "function_call_arguments.delta",
                "function_call_arguments.delta",
                "function_call_arguments.done",
                "output_item.done",
                "function_call_arguments.done",
                "output_item.done",
                "completed",
            ]
        );
        let told = &all[all.len() - 1]["response"];
        assert_eq!(told, &serde_json::from_slice::<Value>(&object.to_bytes()).unwrap());
        let output = told["output"].as_array().unwrap();
        assert_eq!(output[1]["content"][0]["text"], "Hi you");
        assert_eq!((&output[2]["arguments"], &output[3]["call_id"]), (&json!("{\"a\":1}"), &json!("c2")));
        assert_eq!((&told["usage"]["input_tokens"], &told["fusion"]["n"]), (&json!(5), &json!(1)));
    }

    #[test]
    fn a13_a_failure_is_no_end_and_a_cut_is_no_whole_answer() {
        let mut broken = stream();
        let text = json!({"choices": [{"index": 0, "delta": {"content": "Hi"}}]});
        broken.push(&Chunk::parse(text.to_string().as_bytes()).unwrap());
        let (bytes, _) = broken.failed("upstream_failed", "it broke");
        let last = events(&bytes).pop().unwrap();
        assert_eq!(
            (&last["type"], &last["response"]["status"]),
            (&json!("response.failed"), &json!("failed"))
        );
        assert_eq!(last["response"]["error"]["code"], "upstream_failed");
        for (finish, kind, reason) in [
            ("length", "response.incomplete", json!("max_output_tokens")),
            ("content_filter", "response.incomplete", json!("content_filter")),
            ("stop", "response.completed", Value::Null),
        ] {
            let mut cut = stream();
            let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]});
            cut.push(&Chunk::parse(chunk.to_string().as_bytes()).unwrap());
            let last = events(&cut.end().0).pop().unwrap();
            assert_eq!(last["type"], kind);
            assert_eq!(
                last["response"].pointer("/incomplete_details/reason").unwrap_or(&Value::Null),
                &reason
            );
        }
    }
}
