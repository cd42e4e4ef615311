//! Answers in the OpenAI shape, whole and as stream chunks.

use serde_json::{Value, json};

/// Creation time of every scripted answer: a fixed one, so that bodies compare equal.
pub const CREATED: u64 = 1_767_225_600;

/// Id of every scripted answer.
pub const ID: &str = "chatcmpl-scripted";

/// One answer, independent of whether it is asked for whole or as a stream.
#[derive(Debug, Clone)]
pub struct ChatAnswer {
    pieces: Vec<String>,
    reasoning: Option<String>,
    tool_calls: Vec<(String, String, String)>,
    logprobs: Option<Vec<(String, f64)>>,
    finish_reason: String,
    usage: Option<(u64, u64)>,
}

impl ChatAnswer {
    /// A text, streamed word by word; it reports 10 prompt tokens and one completion token a piece.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self::pieces(text.split_inclusive(' '))
    }

    /// A text in these pieces.
    #[must_use]
    pub fn pieces<S: AsRef<str>>(pieces: impl IntoIterator<Item = S>) -> Self {
        let pieces: Vec<String> = pieces.into_iter().map(|piece| piece.as_ref().to_owned()).collect();
        let usage = Some((10, pieces.len() as u64));
        Self {
            pieces,
            reasoning: None,
            tool_calls: Vec::new(),
            logprobs: None,
            finish_reason: "stop".to_owned(),
            usage,
        }
    }

    /// Adds `reasoning_content`, streamed before the text.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.reasoning = Some(text.to_owned());
        self
    }

    /// Adds a tool call and makes `tool_calls` the finish reason. Streamed in two parts.
    #[must_use]
    pub fn tool_call(mut self, id: &str, name: &str, arguments: &str) -> Self {
        self.tool_calls.push((id.to_owned(), name.to_owned(), arguments.to_owned()));
        "tool_calls".clone_into(&mut self.finish_reason);
        self
    }

    /// Adds log-probabilities (natural logarithm, ≤ 0) of the text's tokens; streamed with the piece of their position.
    #[must_use]
    pub fn logprobs<S: AsRef<str>>(mut self, tokens: impl IntoIterator<Item = (S, f64)>) -> Self {
        self.logprobs = Some(tokens.into_iter().map(|(token, lp)| (token.as_ref().to_owned(), lp)).collect());
        self
    }

    /// Another finish reason, such as `length`.
    #[must_use]
    pub fn finish_reason(mut self, reason: &str) -> Self {
        reason.clone_into(&mut self.finish_reason);
        self
    }

    /// Reports these totals.
    #[must_use]
    pub fn usage(mut self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        self.usage = Some((prompt_tokens, completion_tokens));
        self
    }

    /// Reports no totals.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// The `chat.completion` body.
    #[must_use]
    pub fn whole(&self, model: &str) -> Value {
        let text = self.pieces.concat();
        let content = if text.is_empty() && !self.tool_calls.is_empty() { Value::Null } else { json!(text) };
        let mut message = json!({"role": "assistant", "content": content});
        if let Some(reasoning) = &self.reasoning {
            set(&mut message, "reasoning_content", json!(reasoning));
        }
        if !self.tool_calls.is_empty() {
            let calls: Vec<Value> =
                self.tool_calls.iter().map(|(id, name, arguments)| call(id, name, arguments)).collect();
            set(&mut message, "tool_calls", json!(calls));
        }
        let mut choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason});
        if let Some(tokens) = &self.logprobs {
            set(&mut choice, "logprobs", logprobs(tokens));
        }
        let mut body = json!({
            "id": ID, "object": "chat.completion", "created": CREATED, "model": model, "choices": [choice]
        });
        if let Some(usage) = self.usage_json() {
            set(&mut body, "usage", usage);
        }
        body
    }

    /// The `chat.completion.chunk` bodies, without `[DONE]`; totals come last, in a chunk without choices.
    #[must_use]
    pub fn chunks(&self, model: &str, include_usage: bool) -> Vec<Value> {
        let mut chunks = vec![chunk(model, &json!({"role": "assistant", "content": ""}))];
        if let Some(reasoning) = &self.reasoning {
            chunks.push(chunk(model, &json!({"reasoning_content": reasoning})));
        }
        for (at, piece) in self.pieces.iter().enumerate() {
            let mut next = chunk(model, &json!({"content": piece}));
            let token = self.logprobs.as_ref().and_then(|tokens| tokens.get(at..=at));
            if let (Some(token), Some(choice)) = (token, next.pointer_mut("/choices/0")) {
                set(choice, "logprobs", logprobs(token));
            }
            chunks.push(next);
        }
        for (index, (id, name, arguments)) in self.tool_calls.iter().enumerate() {
            let mut first = call(id, name, "");
            set(&mut first, "index", json!(index));
            chunks.push(chunk(model, &json!({"tool_calls": [first]})));
            let rest = json!({"index": index, "function": {"arguments": arguments}});
            chunks.push(chunk(model, &json!({"tool_calls": [rest]})));
        }
        let mut last = chunk(model, &json!({}));
        if let Some(choice) = last.pointer_mut("/choices/0") {
            set(choice, "finish_reason", json!(self.finish_reason));
        }
        chunks.push(last);
        if let Some(usage) = self.usage_json().filter(|_| include_usage) {
            let mut totals = chunk(model, &json!({}));
            set(&mut totals, "choices", json!([]));
            set(&mut totals, "usage", usage);
            chunks.push(totals);
        }
        chunks
    }

    fn usage_json(&self) -> Option<Value> {
        self.usage.map(|(prompt, completion)| {
            json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
        })
    }
}

/// A chunk with one choice.
#[must_use]
pub fn chunk(model: &str, delta: &Value) -> Value {
    json!({
        "id": ID, "object": "chat.completion.chunk", "created": CREATED, "model": model,
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]
    })
}

fn call(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

fn logprobs(tokens: &[(String, f64)]) -> Value {
    let content: Vec<Value> = tokens
        .iter()
        .map(|(token, lp)| json!({"token": token, "logprob": lp, "bytes": token.as_bytes(), "top_logprobs": []}))
        .collect();
    json!({"content": content})
}

fn set(object: &mut Value, key: &str, value: Value) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(key.to_owned(), value);
    }
}
