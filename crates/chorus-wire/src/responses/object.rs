//! The object of one response, at any time of its life.

use super::request::Settings;
use crate::body::RawObject;
use crate::raw::{Raw, count, raw_or_null};
use serde_json::{Value, json};

/// How far a response is.
#[derive(Debug, Clone)]
pub enum Outcome {
    /// Accepted, in the background.
    Queued,
    /// Being made.
    InProgress,
    /// Made, or cut short; the chat's finish reason says which.
    Ended {
        /// Such as `stop` or `length`.
        finish: Option<String>,
        /// The output items.
        output: Vec<Value>,
        /// The chat's usage, as reported.
        usage: Option<Raw>,
    },
    /// Not made.
    Failed {
        /// A stable word.
        code: String,
        /// A sentence for people.
        message: String,
    },
    /// Given up by its client.
    Cancelled,
}

/// What stays the same of a response while it is made.
#[derive(Debug, Clone)]
pub struct ResponseObject {
    /// Its name, `resp_…`.
    pub id: String,
    /// Seconds since 1970.
    pub created_at: u64,
    /// The model asked for.
    pub model: String,
    /// As sent.
    pub settings: Settings,
    /// Top-level fields of the answer to hand on, such as a looper's trace.
    pub shown: Vec<(String, Raw)>,
}

impl ResponseObject {
    /// A response to be made.
    #[must_use]
    pub fn new(id: String, created_at: u64, model: String, settings: Settings) -> Self {
        Self { id, created_at, model, settings, shown: Vec::new() }
    }

    /// Keeps those fields of an answer's body that are to be handed on.
    pub fn show(&mut self, body: &RawObject, fields: &[&str]) {
        let found = fields.iter().filter_map(|field| Some(((*field).to_owned(), body.get(field)?.clone())));
        self.shown.extend(found);
    }

    /// The whole object.
    #[must_use]
    pub fn json(&self, outcome: &Outcome) -> RawObject {
        let mut object = RawObject::default();
        let mut set = |field: &str, value: Value| object.set(field, raw_or_null(&value));
        let (status, incomplete) = status_of(outcome);
        set("id", json!(self.id));
        set("object", json!("response"));
        set("created_at", json!(self.created_at));
        set("status", json!(status));
        set("background", json!(self.settings.background));
        set("error", error_of(outcome));
        set("incomplete_details", incomplete.map_or(Value::Null, |reason| json!({"reason": reason})));
        set("model", json!(self.model));
        let output = if let Outcome::Ended { output, .. } = outcome { output.as_slice() } else { &[] };
        set("output", json!(output));
        set("previous_response_id", json!(self.settings.previous));
        set("store", json!(self.settings.store));
        let usage = if let Outcome::Ended { usage, .. } = outcome { usage.as_deref() } else { None };
        set("usage", usage.map_or(Value::Null, usage_of));
        for (field, default) in defaults() {
            match self.settings.told.get(field) {
                Some(sent) => object.set(field, sent.clone()),
                None => object.set(field, raw_or_null(&default)),
            }
        }
        for (field, value) in &self.shown {
            object.set(field, value.clone());
        }
        object
    }
}

/// The protocol's word for it, and why an answer is not whole.
fn status_of(outcome: &Outcome) -> (&'static str, Option<&'static str>) {
    match outcome {
        Outcome::Queued => ("queued", None),
        Outcome::InProgress => ("in_progress", None),
        Outcome::Ended { finish, .. } => match finish.as_deref() {
            Some("length") => ("incomplete", Some("max_output_tokens")),
            Some("content_filter") => ("incomplete", Some("content_filter")),
            _ => ("completed", None),
        },
        Outcome::Failed { .. } => ("failed", None),
        Outcome::Cancelled => ("cancelled", None),
    }
}

fn error_of(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Failed { code, message } => json!({"code": code, "message": message}),
        _ => Value::Null,
    }
}

/// Settings that every object repeats, with what they are where a client says nothing.
fn defaults() -> [(&'static str, Value); 13] {
    [
        ("instructions", Value::Null),
        ("max_output_tokens", Value::Null),
        ("metadata", json!({})),
        ("parallel_tool_calls", json!(true)),
        ("reasoning", json!({"effort": null, "summary": null})),
        ("service_tier", json!("default")),
        ("temperature", Value::Null),
        ("text", json!({"format": {"type": "text"}})),
        ("tool_choice", json!("auto")),
        ("tools", json!([])),
        ("top_p", Value::Null),
        ("truncation", json!("disabled")),
        ("user", Value::Null),
    ]
}

fn usage_of(raw: &str) -> Value {
    let usage: RawObject = serde_json::from_str(raw).unwrap_or_default();
    let number = |object: &RawObject, field: &str| object.get(field).and_then(|raw| count(raw)).unwrap_or(0);
    let details = |field: &str| usage.read::<RawObject>(field).ok().flatten().unwrap_or_default();
    let (input, output) = (number(&usage, "prompt_tokens"), number(&usage, "completion_tokens"));
    let mut told = json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": number(&details("prompt_tokens_details"), "cached_tokens")},
        "output_tokens": output,
        "output_tokens_details":
            {"reasoning_tokens": number(&details("completion_tokens_details"), "reasoning_tokens")},
        "total_tokens": number(&usage, "total_tokens").max(input.saturating_add(output)),
    });
    if let (Some(fields), true) = (told.as_object_mut(), usage.get("estimated").is_some()) {
        fields.insert("estimated".to_owned(), Value::Bool(true));
    }
    told
}
