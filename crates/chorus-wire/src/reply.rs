//! A whole chat completion: the lossless body, and the first choice as Chorus reads it.

use crate::body::{BodyFault, RawObject};
use crate::content::{Content, text, text_of, word};
use crate::finish;
use crate::raw::{Raw, count, elements, list_of, raw_or_null};
use crate::scan::{pick, rows};
use crate::tool::ToolCall;
use serde::de::Error as _;

/// Tokens of one call, or of several together.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Usage {
    /// Tokens read.
    pub prompt_tokens: u64,
    /// Tokens written.
    pub completion_tokens: u64,
    /// Both, or what the provider says if that is more.
    pub total_tokens: u64,
    /// Whether any part was estimated instead of reported.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(other.completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(other.total_tokens);
        self.estimated = self.estimated || other.estimated;
    }
}

impl Usage {
    /// Reads a backend's report. `None` when it says nothing: `null`, `{}`, no number. The total is what is
    /// reported or the sum, whichever is more. Source: case J02 (reasoning tokens stand in the total only).
    #[must_use]
    pub fn read(raw: &str) -> Option<Self> {
        const FIELDS: [&str; 4] = ["prompt_tokens", "completion_tokens", "total_tokens", "estimated"];
        let [prompt, completion, total, estimated] = pick(raw, FIELDS).ok()?;
        let [prompt, completion, total] = [prompt, completion, total].map(|raw| raw.and_then(count));
        prompt.or(completion).or(total)?;
        let (prompt_tokens, completion_tokens) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        Some(Self {
            prompt_tokens,
            completion_tokens,
            total_tokens: total.unwrap_or(0).max(prompt_tokens.saturating_add(completion_tokens)),
            estimated: estimated == Some("true"),
        })
    }
}

/// A whole reply.
#[derive(Debug, Clone)]
pub struct ChatReply {
    pub(crate) body: RawObject,
    /// Text of the first choice (string or parts); empty for `null`.
    pub content: String,
    /// Its reasoning (`reasoning_content` or `reasoning`).
    pub reasoning: Option<String>,
    /// Its tool calls.
    pub tool_calls: Vec<ToolCall>,
    /// Its finish reason in the API's words (case B16); `None` for null or `""`.
    pub finish_reason: Option<String>,
    /// What the backend reported.
    pub usage: Option<Usage>,
    /// Whether its only choice is written as the API would write it, so that there is nothing to rewrite.
    pub(crate) normal: bool,
}

/// What is read of the first choice's message.
const MESSAGE: [&str; 4] = ["content", "reasoning_content", "reasoning", "tool_calls"];

impl ChatReply {
    /// Reads a reply.
    ///
    /// # Errors
    /// When the bytes are not an object with a `choices` array, or its first choice has no readable message.
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyFault> {
        Self::of(RawObject::parse(bytes)?)
    }

    /// [`parse`](Self::parse) of a body that has been read.
    ///
    /// # Errors
    /// When it has no `choices` array, or its first choice has no readable message.
    pub fn of(body: RawObject) -> Result<Self, BodyFault> {
        let First { content, reasoning, tool_calls, finish_reason, normal } = first(&body)?;
        let usage = body.get("usage").and_then(|raw| Usage::read(raw));
        Ok(Self { body, content, reasoning, tool_calls, finish_reason, usage, normal })
    }

    /// A reply of our own with one text choice and finish reason `stop`.
    #[must_use]
    pub fn text(id: &str, model: &str, created: u64, content: &str) -> Self {
        let choices = serde_json::json!([{
            "index": 0,
            "message": {"role": "assistant", "content": content},
            "logprobs": null,
            "finish_reason": "stop",
        }]);
        Self {
            body: envelope(id, model, created, raw_or_null(&choices)),
            content: content.to_owned(),
            reasoning: None,
            tool_calls: Vec::new(),
            finish_reason: Some("stop".to_owned()),
            usage: None,
            normal: true,
        }
    }

    /// Whether there is text (after trim), reasoning or a tool call.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        !self.content.trim().is_empty()
            || self.reasoning.as_ref().is_some_and(|r| !r.trim().is_empty())
            || !self.tool_calls.is_empty()
    }

    /// The whole body.
    #[must_use]
    pub fn body(&self) -> &RawObject {
        &self.body
    }

    /// Sets a top-level field (such as `model`, `usage` or `fusion`); a value without JSON form is written as `null`.
    pub fn set<T: serde::Serialize>(&mut self, key: &str, value: &T) {
        self.body.set(key, raw_or_null(value));
        self.normal &= key != "choices";
        self.read_usage_again(key);
    }

    /// Removes top-level fields.
    pub fn remove_all(&mut self, keys: &[&str]) {
        self.body.remove_all(keys);
        keys.iter().for_each(|key| self.read_usage_again(key));
    }

    /// Rewrites `choices[*].message.content` given as parts to a string (case B15) and `choices[*].finish_reason` to
    /// the API's words (case B16), `""` to null; other fields stay as they are.
    pub fn normalise(&mut self) {
        if self.normal {
            return;
        }
        if let Some(choices) = self.body.get("choices").and_then(|raw| mended_choices(raw)) {
            self.body.set("choices", choices);
        }
    }

    /// The body as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.body.to_bytes()
    }

    fn read_usage_again(&mut self, key: &str) {
        if key == "usage" {
            self.usage = self.body.get("usage").and_then(|raw| Usage::read(raw));
        }
    }
}

fn fault(problem: impl std::fmt::Display) -> BodyFault {
    BodyFault::Json(serde_json::Error::custom(problem))
}

/// The body of a completion of our own.
pub(crate) fn envelope(id: &str, model: &str, created: u64, choices: Raw) -> RawObject {
    let mut body = RawObject::default();
    body.set("id", raw_or_null(id));
    body.set("object", raw_or_null("chat.completion"));
    body.set("created", raw_or_null(&created));
    body.set("model", raw_or_null(model));
    body.set("choices", choices);
    body
}

/// What is read of the first choice.
struct First {
    content: String,
    reasoning: Option<String>,
    tool_calls: Vec<ToolCall>,
    finish_reason: Option<String>,
    normal: bool,
}

fn first(body: &RawObject) -> Result<First, BodyFault> {
    let choices = body.get("choices").ok_or_else(|| fault("`choices` is missing"))?;
    let (mut choice, mut count) = (None, 0);
    rows(choices, ["message", "finish_reason"], |_, picked| {
        choice.get_or_insert(picked);
        count += 1;
    })
    .ok_or_else(|| fault("`choices` is not a list"))?;
    let [message, reason] = choice.transpose().map_err(fault)?.unwrap_or_default();
    let [content, reasoning_content, reasoning, tool_calls] =
        message.map(|raw| pick(raw, MESSAGE)).transpose().map_err(fault)?.unwrap_or_default();
    let content = content
        .map_or_else(|| Some(Content::default()), Content::read)
        .ok_or_else(|| fault("`content` is neither a string, a list of parts, nor null"))?;
    let tool_calls = tool_calls
        .map_or_else(|| Some(Vec::new()), ToolCall::read_all)
        .ok_or_else(|| fault("`tool_calls` is not a list of tool calls"))?;
    let sent = reason.and_then(text_of);
    let finish_reason = sent.as_deref().filter(|word| !word.is_empty()).map(finish::mended);
    Ok(First {
        normal: count == 1 && !content.in_parts && sent.as_deref() == finish_reason.as_deref(),
        content: content.text.into_owned(),
        reasoning: reasoning_content.and_then(word).or_else(|| reasoning.and_then(word)),
        tool_calls,
        finish_reason,
    })
}

/// The choices as the API would write them; `None` when they already are.
fn mended_choices(raw: &str) -> Option<Raw> {
    let choices = elements(raw)?;
    let mended: Vec<Option<Raw>> = choices.iter().map(|raw| mended_choice(raw)).collect();
    mended
        .iter()
        .any(Option::is_some)
        .then(|| list_of(mended.iter().zip(&choices).map(|(new, old)| new.as_deref().unwrap_or(old))))
}

/// The choice as the API would write it; `None` when it already does.
fn mended_choice(raw: &str) -> Option<Raw> {
    let mut choice: RawObject = serde_json::from_str(raw).ok()?;
    let message = choice.get("message").and_then(|raw| mended_message(raw));
    let reason = choice.get("finish_reason").and_then(|raw| mended_reason(raw));
    if message.is_none() && reason.is_none() {
        return None;
    }
    if let Some(message) = message {
        choice.set("message", message);
    }
    if let Some(reason) = reason {
        choice.set("finish_reason", reason);
    }
    Some(choice.to_raw())
}

fn mended_message(raw: &str) -> Option<Raw> {
    let mut message: RawObject = serde_json::from_str(raw).ok()?;
    let content =
        message.get("content").and_then(|raw| Content::read(raw)).filter(|content| content.in_parts)?;
    let text = raw_or_null(&content.text);
    message.set("content", text);
    Some(message.to_raw())
}

fn mended_reason(raw: &str) -> Option<Raw> {
    let sent = text(raw)?;
    if sent.is_empty() {
        return Some(raw_or_null(&()));
    }
    finish::canonical(&sent).filter(|reason| *reason != sent).map(raw_or_null)
}
