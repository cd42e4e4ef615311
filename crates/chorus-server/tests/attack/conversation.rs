//! A conversation before any protocol, and its words at each door.

use serde_json::{Value, json};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Who {
    System,
    User,
    Assistant,
    Tool,
}

/// Who says what, in order.
pub(crate) type Turns = Vec<(Who, String)>;

/// A way in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Door {
    pub(crate) path: &'static str,
    pub(crate) stream: bool,
}

impl Door {
    pub(crate) const ALL: [Self; 6] = [
        Self { path: "/v1/chat/completions", stream: false },
        Self { path: "/v1/chat/completions", stream: true },
        Self { path: "/v1/messages", stream: false },
        Self { path: "/v1/messages", stream: true },
        Self { path: "/v1/responses", stream: false },
        Self { path: "/v1/responses", stream: true },
    ];

    /// A word for tables.
    pub(crate) fn name(self) -> String {
        let door = self.path.trim_start_matches("/v1/");
        format!("{door}{}", if self.stream { ", streamed" } else { "" })
    }

    /// The request in this door's words.
    pub(crate) fn request(self, model: &str, turns: &Turns) -> Value {
        let mut body = match self.path {
            "/v1/messages" => messages(turns),
            "/v1/responses" => responses(turns),
            _ => json!({"messages": chat(turns)}),
        };
        body["model"] = model.into();
        body["stream"] = self.stream.into();
        body
    }

    /// What the client is told, of a whole body or of events.
    pub(crate) fn text(self, body: &[u8]) -> String {
        let text = String::from_utf8_lossy(body);
        if !self.stream {
            return told(&serde_json::from_str(&text).unwrap_or_default());
        }
        let data = text.lines().filter_map(|line| line.strip_prefix("data:"));
        data.filter_map(|line| serde_json::from_str(line).ok()).map(|event: Value| delta(&event)).collect()
    }
}

/// The text of a whole answer.
fn told(body: &Value) -> String {
    let text = |at: &str| body.pointer(at).and_then(Value::as_str).map(str::to_owned);
    let output = body["output"].as_array().into_iter().flatten();
    let of_output =
        output.filter_map(|item| item.pointer("/content/0/text").and_then(Value::as_str)).collect();
    text("/choices/0/message/content").or_else(|| text("/content/0/text")).unwrap_or(of_output)
}

/// What an event adds to the text.
fn delta(event: &Value) -> String {
    let text = |at: &str| event.pointer(at).and_then(Value::as_str);
    let of_response = || text("/delta").filter(|_| event["type"] == "response.output_text.delta");
    let found = text("/choices/0/delta/content").or_else(|| text("/delta/text")).or_else(of_response);
    found.unwrap_or_default().to_owned()
}

pub(crate) fn chat(turns: &Turns) -> Value {
    let mut all = Vec::new();
    for (at, (who, text)) in turns.iter().enumerate() {
        let (id, call) = (format!("c{at}"), json!({"name": "lookup", "arguments": "{}"}));
        match who {
            Who::System => all.push(json!({"role": "system", "content": text})),
            Who::User => all.push(json!({"role": "user", "content": text})),
            Who::Assistant => all.push(json!({"role": "assistant", "content": text})),
            Who::Tool => {
                let calls = json!([{"id": id, "type": "function", "function": call}]);
                all.push(json!({"role": "assistant", "content": null, "tool_calls": calls}));
                all.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            }
        }
    }
    all.into()
}

fn messages(turns: &Turns) -> Value {
    let (mut all, mut system) = (Vec::new(), String::new());
    for (at, (who, text)) in turns.iter().enumerate() {
        let id = format!("c{at}");
        match who {
            Who::System => system.clone_from(text),
            Who::User => all.push(json!({"role": "user", "content": text})),
            Who::Assistant => all.push(json!({"role": "assistant", "content": text})),
            Who::Tool => {
                let used = json!([{"type": "tool_use", "id": id, "name": "lookup", "input": {}}]);
                all.push(json!({"role": "assistant", "content": used}));
                let result = json!([{"type": "tool_result", "tool_use_id": id, "content": text}]);
                all.push(json!({"role": "user", "content": result}));
            }
        }
    }
    let mut body = json!({"max_tokens": 200, "messages": all});
    if !system.is_empty() {
        body["system"] = system.into();
    }
    body
}

fn responses(turns: &Turns) -> Value {
    let (mut all, mut system) = (Vec::new(), String::new());
    for (at, (who, text)) in turns.iter().enumerate() {
        let id = format!("c{at}");
        match who {
            Who::System => system.clone_from(text),
            Who::User => all.push(json!({"role": "user", "content": text})),
            Who::Assistant => all.push(json!({"role": "assistant", "content": text})),
            Who::Tool => {
                all.push(
                    json!({"type": "function_call", "call_id": id, "name": "lookup", "arguments": "{}"}),
                );
                all.push(json!({"type": "function_call_output", "call_id": id, "output": text}));
            }
        }
    }
    let mut body = json!({"input": all, "store": false});
    if !system.is_empty() {
        body["instructions"] = system.into();
    }
    body
}
