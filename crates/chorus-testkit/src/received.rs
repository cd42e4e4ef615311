//! What arrived: every request as it was on the wire, and what became of it.

use bytes::Bytes;
use serde_json::Value;

/// What became of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The script is still playing.
    Open,
    /// The script was played to its end.
    Answered,
    /// The client closed or reset the connection while the script was playing (case A16).
    ClientLeft,
}

/// One request.
#[derive(Debug, Clone)]
pub struct Received {
    /// Position among all requests, from 0; the largest number where requests are not recorded.
    pub seat: usize,
    /// Connection that it came on, from 0.
    pub connection: usize,
    /// Such as `POST`.
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body as it came.
    pub body: Bytes,
    /// `model` of the body; empty when there is none.
    pub model: String,
    /// What became of it.
    pub outcome: Outcome,
}

impl Received {
    /// The first header of that name (in lower case).
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; `null` when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    /// Text of the last user message; empty when there is none.
    #[must_use]
    pub fn last_user_text(&self) -> String {
        let body = self.json();
        let messages = body.get("messages").and_then(Value::as_array).into_iter().flatten();
        let last = messages.rev().find(|m| m.get("role").and_then(Value::as_str) == Some("user"));
        match last.and_then(|m| m.get("content")) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                parts.iter().filter_map(|p| p.get("text").and_then(Value::as_str)).collect()
            }
            _ => String::new(),
        }
    }

    pub(crate) fn wants_stream(&self) -> bool {
        self.json().get("stream").and_then(Value::as_bool).unwrap_or(false)
    }

    pub(crate) fn wants_usage(&self) -> bool {
        self.json().pointer("/stream_options/include_usage").and_then(Value::as_bool).unwrap_or(false)
    }
}
