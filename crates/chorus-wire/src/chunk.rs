//! Stream chunks: reading them, and writing our own. What backends get wrong is mended elsewhere.
//!
//! **Invariant:** a chunk that nobody edited is written back with the text of its values.

use crate::body::{BodyFault, Raw, RawObject, count, elements, is_null, raw_or_null, read_object, share};
use crate::content::{Content, word};
use crate::error::ErrorBody;
use crate::finish;
use crate::reply::Usage;
use crate::tool::{ToolCallDelta, has_bare_arguments};
use serde::Deserialize;
use serde::de::Error as _;
use serde_json::value::RawValue;

/// One `chat.completion.chunk`.
///
/// The fields are a view: what is sent is the body, which only the methods change.
#[derive(Debug, Clone)]
pub struct Chunk {
    pub(crate) body: RawObject,
    /// Its choices; empty for usage and filter reports.
    pub choices: Vec<ChunkChoice>,
    /// Totals so far; a later one replaces an earlier one, never adds to it (case I04).
    pub usage: Option<Usage>,
    /// An in-band error (case A12).
    pub error: Option<ErrorBody>,
    /// How each choice was written, by place.
    pub(crate) shapes: Vec<Shape>,
}

/// One choice of a chunk.
#[derive(Debug, Clone, Default)]
pub struct ChunkChoice {
    /// Which choice.
    pub index: u32,
    /// New text.
    pub content: Option<String>,
    /// New reasoning (`reasoning_content` or `reasoning`).
    pub reasoning: Option<String>,
    /// Parts of tool calls.
    pub tool_calls: Vec<ToolCallDelta>,
    /// Log-probabilities, as sent.
    pub logprobs: Option<Raw>,
    /// Why it ended, in the API's words (case B16); `None` for null or `""` (case A25).
    pub finish_reason: Option<String>,
}

impl ChunkChoice {
    /// Whether it carries text, reasoning or a tool call.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.content.as_ref().is_some_and(|t| !t.is_empty())
            || self.reasoning.as_ref().is_some_and(|t| !t.is_empty())
            || !self.tool_calls.is_empty()
    }
}

/// Where the writing of a choice departs from the API's, or decides what else must be written.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Shape {
    /// `delta` is an object.
    pub(crate) delta: bool,
    /// `delta.role` is there.
    pub(crate) role: bool,
    /// `index` is a number.
    pub(crate) index: bool,
    /// `delta.content` is a list of parts (case B15).
    pub(crate) parts: bool,
    /// A tool call's `arguments` are JSON instead of its text.
    pub(crate) bare_arguments: bool,
    /// `finish_reason` is not the API's word: `""`, or a backend's own.
    pub(crate) odd_reason: bool,
}

#[derive(Deserialize)]
struct ChoiceWire<'a> {
    #[serde(borrow)]
    index: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<DeltaWire<'a>>,
    #[serde(borrow)]
    logprobs: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct DeltaWire<'a> {
    #[serde(borrow)]
    role: Option<&'a RawValue>,
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
}

impl Chunk {
    /// Reads one `data:` payload.
    ///
    /// # Errors
    /// When it is not an object, or its `choices` cannot be read.
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyFault> {
        let body = RawObject::parse(bytes)?;
        let (mut choices, mut shapes) = (Vec::new(), Vec::new());
        let list =
            body.get_set("choices").map(|raw| elements(raw).ok_or_else(|| fault("`choices` is not a list")));
        for (at, raw) in list.transpose()?.unwrap_or_default().into_iter().enumerate() {
            let (choice, shape) = read_choice(raw, at)?;
            choices.push(choice);
            shapes.push(shape);
        }
        let usage = body.get("usage").and_then(|raw| Usage::read(raw));
        let error = (body.get_set("error").is_some() || body.get("choices").is_none())
            .then(|| ErrorBody::of_object(&body))
            .flatten();
        Ok(Self { body, choices, usage, error, shapes })
    }

    /// A chunk of our own: the opening role.
    #[must_use]
    pub fn role() -> Self {
        let delta = serde_json::json!({"role": "assistant", "content": ""});
        let choice = ChunkChoice { content: Some(String::new()), ..ChunkChoice::default() };
        Self::own(&delta, choice, Shape { role: true, ..Shape::OWN })
    }

    /// A chunk of our own: text of choice 0.
    #[must_use]
    pub fn content(text: &str) -> Self {
        let choice = ChunkChoice { content: Some(text.to_owned()), ..ChunkChoice::default() };
        Self::own(&serde_json::json!({"content": text}), choice, Shape::OWN)
    }

    /// A chunk of our own: the end of choice 0.
    #[must_use]
    pub fn finish(reason: &str) -> Self {
        let choice = ChunkChoice { finish_reason: Some(reason.to_owned()), ..ChunkChoice::default() };
        Self::own(&serde_json::json!({}), choice, Shape::OWN)
    }

    /// A chunk of our own: the totals, with `choices: []`.
    #[must_use]
    pub fn usage(usage: Usage) -> Self {
        let mut body = envelope(raw_or_null::<[(); 0]>(&[]));
        body.set("usage", raw_or_null(&usage));
        Self { body, choices: Vec::new(), usage: Some(usage), error: None, shapes: Vec::new() }
    }

    /// Whether it carries text, reasoning or a tool call.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.choices.iter().any(ChunkChoice::has_output)
    }

    /// Sets a top-level field, such as `fusion`; a value without JSON form is written as `null`.
    pub fn set<T: serde::Serialize>(&mut self, key: &str, value: &T) {
        self.body.set(key, raw_or_null(value));
    }

    /// The whole body.
    #[must_use]
    pub fn body(&self) -> &RawObject {
        &self.body
    }

    /// The chunk as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.body.to_bytes()
    }

    /// One choice of our own, with `delta` as its news.
    fn own(delta: &serde_json::Value, choice: ChunkChoice, shape: Shape) -> Self {
        let choices = serde_json::json!([{
            "index": choice.index,
            "delta": delta,
            "finish_reason": choice.finish_reason,
        }]);
        Self {
            body: envelope(raw_or_null(&choices)),
            choices: vec![choice],
            usage: None,
            error: None,
            shapes: vec![shape],
        }
    }
}

impl Shape {
    /// As this crate writes it.
    pub(crate) const OWN: Self = Self {
        delta: true,
        role: false,
        index: true,
        parts: false,
        bare_arguments: false,
        odd_reason: false,
    };
}

/// The body of a chunk of our own; whose stream it belongs to is stamped on it later.
fn envelope(choices: Raw) -> RawObject {
    let mut body = RawObject::default();
    body.set("id", raw_or_null(""));
    body.set("object", raw_or_null(OBJECT));
    body.set("created", raw_or_null(&0));
    body.set("model", raw_or_null(""));
    body.set("choices", choices);
    body
}

/// What every chunk says it is.
pub(crate) const OBJECT: &str = "chat.completion.chunk";

fn fault(problem: &str) -> BodyFault {
    BodyFault::Json(serde_json::Error::custom(problem))
}

fn read_choice(raw: &RawValue, at: usize) -> Result<(ChunkChoice, Shape), BodyFault> {
    let wire: ChoiceWire<'_> = read_object(raw)?;
    let has_delta = wire.delta.is_some();
    let delta = wire.delta.unwrap_or_default();
    let index = wire.index.and_then(count).and_then(|n| u32::try_from(n).ok());
    let content = match delta.content.filter(|raw| !is_null(raw)) {
        None => None,
        Some(raw) => {
            Some(Content::read(raw).ok_or_else(|| fault("`content` is neither a string nor parts"))?)
        }
    };
    let parts = content.as_ref().is_some_and(|content| content.in_parts);
    let tool_calls = match delta.tool_calls {
        None => Vec::new(),
        Some(raw) => {
            ToolCallDelta::read_all(raw).ok_or_else(|| fault("`tool_calls` is not a list of calls"))?
        }
    };
    let sent = wire.finish_reason.and_then(crate::content::text);
    let finish_reason = wire.finish_reason.and_then(word).map(finish::mended);
    let shape = Shape {
        delta: has_delta,
        role: delta.role.is_some_and(|raw| !is_null(raw)),
        index: index.is_some(),
        parts,
        bare_arguments: delta.tool_calls.is_some_and(has_bare_arguments),
        odd_reason: sent != finish_reason,
    };
    let choice = ChunkChoice {
        // A backend that forgets the index has written its choices in order.
        index: index.unwrap_or_else(|| u32::try_from(at).unwrap_or(u32::MAX)),
        content: content.map(|content| content.text),
        reasoning: delta.reasoning_content.and_then(word).or_else(|| delta.reasoning.and_then(word)),
        tool_calls,
        logprobs: wire.logprobs.filter(|raw| !is_null(raw)).map(share),
        finish_reason,
    };
    Ok((choice, shape))
}
