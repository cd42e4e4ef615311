//! A chat completion request: the lossless body, and the few fields that Chorus reads.
//!
//! **Invariant:** every field that no setter named is forwarded with the text it came with, at its place.

use crate::body::RawObject;
use crate::content::text;
use crate::fault::RequestFault;
use crate::message::{FIELDS, Message, Role};
use crate::parameters;
use crate::raw::{Elements, count, elements, list_of, raw_or_null};
use crate::scan::rows;
use std::sync::Arc;

/// Bounds of a request, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct RequestLimits {
    /// Most messages (`max_messages`, default 4,096).
    pub max_messages: usize,
}

impl Default for RequestLimits {
    fn default() -> Self {
        Self { max_messages: 4096 }
    }
}

/// A chat completion request.
///
/// Cloning is cheap: field texts and messages are shared.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    model: String,
    messages: Arc<[Message]>,
    body: RawObject,
    /// Whether it may hold what only an Anthropic backend understands.
    extras: bool,
}

impl ChatRequest {
    /// Reads and checks a request: `model` a non-empty string, `messages` a non-empty array of objects with a role,
    /// ranges of `temperature`, `top_p`, `n`, `max_tokens`, `max_completion_tokens`, types of `stream`,
    /// `stream_options`, `stop`, `tools` and `plugins`. A parameter that is `null` counts as absent.
    ///
    /// # Errors
    /// The first [`RequestFault`].
    pub fn parse(bytes: &[u8], limits: &RequestLimits) -> Result<Self, RequestFault> {
        Self::of(RawObject::parse(bytes)?, limits)
    }

    /// [`parse`](Self::parse) of a body that has been read.
    ///
    /// # Errors
    /// The first [`RequestFault`].
    pub fn of(body: RawObject, limits: &RequestLimits) -> Result<Self, RequestFault> {
        let model = read_model(&body)?;
        let messages = read_messages(&body, limits)?;
        parameters::check(&body)?;
        Ok(Self { model, messages, body, extras: false })
    }

    /// A request of our own.
    #[must_use]
    pub fn new(model: &str, messages: Vec<Message>) -> Self {
        let mut request =
            Self { model: String::new(), messages: Arc::from([]), body: RawObject::default(), extras: false };
        request.set_model(model);
        request.set_messages(messages);
        request
    }

    /// The model asked for.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The conversation.
    #[must_use]
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// Whether the client wants a stream.
    #[must_use]
    pub fn stream(&self) -> bool {
        self.body.get("stream").is_some_and(|raw| is_true(raw))
    }

    /// Whether the client wants a usage chunk; false without `stream`.
    #[must_use]
    pub fn include_usage(&self) -> bool {
        self.stream() && self.stream_options().get("include_usage").is_some_and(|raw| is_true(raw))
    }

    /// The whole body.
    #[must_use]
    pub fn body(&self) -> &RawObject {
        &self.body
    }

    /// Changes the model.
    pub fn set_model(&mut self, model: &str) {
        model.clone_into(&mut self.model);
        self.body.set("model", raw_or_null(model));
    }

    /// Changes streaming; `include_usage` sets `stream_options.include_usage` (other stream options survive) and is
    /// ignored when `stream` is false, where `stream_options` is removed. What already says so stays as written.
    pub fn set_stream(&mut self, stream: bool, include_usage: bool) {
        if self.stream() != stream {
            self.body.set("stream", raw_or_null(&stream));
        }
        if !stream {
            self.body.remove("stream_options");
        } else if self.include_usage() != include_usage {
            let mut options = self.stream_options();
            if include_usage {
                options.set("include_usage", raw_or_null(&true));
            } else {
                options.remove("include_usage");
            }
            self.write_stream_options(&options);
        }
    }

    /// Replaces the conversation.
    pub fn set_messages(&mut self, messages: Vec<Message>) {
        self.body.set("messages", list_of(messages.iter().map(|message| message.raw().get())));
        self.messages = messages.into();
    }

    /// Sets any field other than `model`, `messages` and `stream`, which have setters of their own. A value without
    /// JSON form (a map whose keys are no strings) is written as `null`.
    pub fn set<T: serde::Serialize>(&mut self, key: &str, value: &T) {
        self.body.set(key, raw_or_null(value));
    }

    /// Removes a field other than `model` and `messages`.
    pub fn remove(&mut self, key: &str) {
        self.body.remove(key);
    }

    /// How many tools `tools` holds.
    #[must_use]
    pub fn tool_count(&self) -> usize {
        self.tool_definitions().len()
    }

    /// The JSON text of each tool definition.
    pub(crate) fn tool_definitions(&self) -> Elements<'_> {
        self.body.get("tools").and_then(|raw| elements(raw)).unwrap_or_default()
    }

    /// The smaller of `max_tokens` and `max_completion_tokens`.
    #[must_use]
    pub fn max_output_tokens(&self) -> Option<u64> {
        ["max_tokens", "max_completion_tokens"].into_iter().filter_map(|key| count(self.body.get(key)?)).min()
    }

    /// Text of the last user message; empty when there is none.
    #[must_use]
    pub fn last_user_text(&self) -> &str {
        self.messages.iter().rfind(|message| message.role == Role::User).map_or("", |message| &message.text)
    }

    /// The body as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.body.to_bytes()
    }

    /// Whether it may hold what only an Anthropic backend understands ([`crate::anthropic::extras`]).
    #[must_use]
    pub fn has_extras(&self) -> bool {
        self.extras
    }

    /// Says whether it may.
    pub(crate) fn mark_extras(&mut self, extras: bool) {
        self.extras = extras;
    }

    fn stream_options(&self) -> RawObject {
        self.body.read("stream_options").ok().flatten().unwrap_or_default()
    }

    fn write_stream_options(&mut self, options: &RawObject) {
        if options.is_empty() {
            self.body.remove("stream_options");
        } else {
            self.body.set("stream_options", options.to_raw());
        }
    }
}

fn is_true(raw: &str) -> bool {
    raw == "true"
}

fn read_model(body: &RawObject) -> Result<String, RequestFault> {
    let Some(raw) = body.get_set("model") else {
        return Err(RequestFault::of("model", "`model` is missing: name the model that should answer"));
    };
    match text(raw) {
        Some(model) if !model.is_empty() => Ok(model),
        _ => Err(RequestFault::of("model", "`model` must be a non-empty string")),
    }
}

fn read_messages(body: &RawObject, limits: &RequestLimits) -> Result<Arc<[Message]>, RequestFault> {
    let fault = |message: String| RequestFault::of("messages", message);
    let raw = body.get_set("messages").ok_or_else(|| fault("`messages` is missing".to_owned()))?;
    let most = limits.max_messages;
    let (mut messages, mut bad, mut len) = (Vec::new(), None, 0);
    rows(raw, FIELDS, |element, picked| {
        if bad.is_none() && len < most {
            match Message::of(raw, element, picked, len) {
                Ok(message) => messages.push(message),
                Err(fault) => bad = Some(fault),
            }
        }
        len += 1;
    })
    .ok_or_else(|| fault("`messages` must be a list of messages".to_owned()))?;
    if len == 0 {
        return Err(fault("`messages` must hold at least one message".to_owned()));
    }
    if len > most {
        return Err(fault(format!("`messages` holds {len} messages; the bound is {most} (max_messages)")));
    }
    bad.map_or_else(|| Ok(messages.into()), Err)
}
