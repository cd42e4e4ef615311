//! What a dialect with blocks answers, said in our words: a chat completion, or chunks of one.
//!
//! It knows no API by name. **Invariant:** a chunk and a whole answer made of the same blocks say the same.

use crate::UpstreamFault;
use chorus_wire::{ChatReply, Chunk};
use serde_json::{Map, Value, json};

/// A whole answer in the making.
#[derive(Debug, Default)]
pub(crate) struct Spoken {
    text: String,
    reasoning: String,
    calls: Vec<Value>,
}

impl Spoken {
    /// More words.
    pub(crate) fn text(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// More reasoning.
    pub(crate) fn reasoning(&mut self, text: &str) {
        self.reasoning.push_str(text);
    }

    /// A call of a function; numbers are for streams only.
    pub(crate) fn call(&mut self, mut call: Value) {
        if let Some(fields) = call.as_object_mut() {
            fields.remove("index");
        }
        self.calls.push(call);
    }

    /// Whether a function is called.
    pub(crate) fn calls_any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// The completion.
    pub(crate) fn reply(
        self,
        id: &Value,
        model: &Value,
        finish: Option<&str>,
        usage: Option<Value>,
    ) -> Result<ChatReply, UpstreamFault> {
        let content = if self.text.is_empty() && self.calls_any() { Value::Null } else { json!(self.text) };
        let mut message =
            Map::from_iter([("role".to_owned(), json!("assistant")), ("content".to_owned(), content)]);
        if !self.reasoning.is_empty() {
            message.insert("reasoning_content".to_owned(), json!(self.reasoning));
        }
        if self.calls_any() {
            message.insert("tool_calls".to_owned(), json!(self.calls));
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": finish});
        let mut body = Map::from_iter([
            ("id".to_owned(), id.clone()),
            ("object".to_owned(), json!("chat.completion")),
            ("created".to_owned(), json!(0)),
            ("model".to_owned(), model.clone()),
            ("choices".to_owned(), json!([choice])),
        ]);
        body.extend(usage.map(|usage| ("usage".to_owned(), usage)));
        let bytes = Value::Object(body).to_string();
        ChatReply::parse(bytes.as_bytes()).map_err(UpstreamFault::malformed)
    }
}

/// A call as a stream has it.
pub(crate) fn call(index: usize, id: &str, name: &str, arguments: &str) -> Value {
    let function = json!({"name": name, "arguments": arguments});
    json!({"index": index, "id": id, "type": "function", "function": function})
}

/// A chunk with these choices and totals.
pub(crate) fn chunk(
    id: &Value,
    model: &Value,
    choices: &Value,
    usage: Option<Value>,
) -> Result<Chunk, UpstreamFault> {
    let mut body = Map::from_iter([
        ("id".to_owned(), id.clone()),
        ("object".to_owned(), json!("chat.completion.chunk")),
        ("created".to_owned(), json!(0)),
        ("model".to_owned(), model.clone()),
        ("choices".to_owned(), choices.clone()),
    ]);
    body.extend(usage.map(|usage| ("usage".to_owned(), usage)));
    Chunk::parse(Value::Object(body).to_string().as_bytes()).map_err(UpstreamFault::malformed)
}

/// Choice 0 with that news.
pub(crate) fn delta(delta: &Value) -> Value {
    json!([{"index": 0, "delta": delta, "finish_reason": null}])
}

/// The end of choice 0.
pub(crate) fn finish(reason: &str) -> Value {
    json!([{"index": 0, "delta": {}, "finish_reason": reason}])
}
