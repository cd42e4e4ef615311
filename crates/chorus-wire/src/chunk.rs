//! Stream chunks: reading them, and writing our own. What backends get wrong is mended elsewhere.
//!
//! **Invariant:** a chunk that nobody edited is written back with the text of its values.

use crate::body::{BodyFault, RawObject};
use crate::content::{Content, text_of, word};
use crate::error::ErrorBody;
use crate::finish;
use crate::raw::{Raw, count, raw_or_null};
use crate::reply::Usage;
use crate::scan::{PickFault, Picked, pick, rows};
use crate::tool::{ToolCallDelta, has_bare_arguments};
use serde::de::Error as _;
use smallvec::SmallVec;

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
    pub(crate) shapes: Shapes,
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

/// What is read of a choice.
pub(crate) const CHOICE: [&str; 4] = ["index", "delta", "logprobs", "finish_reason"];
/// What is read of its delta.
pub(crate) const DELTA: [&str; 5] = ["role", "content", "reasoning_content", "reasoning", "tool_calls"];

impl Chunk {
    /// Reads one `data:` payload.
    ///
    /// # Errors
    /// When it is not an object, or its `choices` cannot be read.
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyFault> {
        Self::of(RawObject::parse(bytes)?)
    }

    /// [`parse`](Self::parse) of a payload that has been read.
    ///
    /// # Errors
    /// When its `choices` cannot be read.
    pub fn of(body: RawObject) -> Result<Self, BodyFault> {
        let (mut choices, mut shapes) = (Vec::with_capacity(1), Shapes::new());
        if let Some(raw) = body.get_set("choices") {
            let mut bad = None;
            let list = rows(raw, CHOICE, |_, picked| match read_choice(raw, picked, choices.len()) {
                Ok((choice, shape)) => {
                    choices.push(choice);
                    shapes.push(shape);
                }
                Err(fault) => bad = Some(fault),
            });
            list.ok_or_else(|| fault("`choices` is not a list"))?;
            bad.map_or(Ok(()), Err)?;
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
        Self { body, choices: Vec::new(), usage: Some(usage), error: None, shapes: Shapes::new() }
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
            shapes: Shapes::from_slice(&[shape]),
        }
    }
}

/// Of most chunks there is one.
pub(crate) type Shapes = SmallVec<[Shape; 2]>;

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

/// Reads the choice at that place of the list.
fn read_choice(list: &Raw, choice: Picked<'_, 4>, at: usize) -> Result<(ChunkChoice, Shape), BodyFault> {
    let picked = |fault: PickFault| BodyFault::Json(serde_json::Error::custom(fault));
    let [index, delta, logprobs, reason] = choice.map_err(picked)?;
    let has_delta = delta.is_some();
    let [role, content, reasoning_content, reasoning, calls] =
        delta.map_or(Ok([None; 5]), |raw| pick(raw, DELTA)).map_err(picked)?;
    let index = index.and_then(count).and_then(|n| u32::try_from(n).ok());
    let content = content
        .map(|raw| Content::read(raw).ok_or_else(|| fault("`content` is neither a string nor parts")))
        .transpose()?;
    let tool_calls = calls
        .map_or_else(|| Some(Vec::new()), ToolCallDelta::read_all)
        .ok_or_else(|| fault("`tool_calls` is not a list of calls"))?;
    let sent = reason.and_then(text_of);
    let finish_reason = sent.as_deref().filter(|word| !word.is_empty()).map(finish::mended);
    let shape = Shape {
        delta: has_delta,
        role: role.is_some(),
        index: index.is_some(),
        parts: content.as_ref().is_some_and(|content| content.in_parts),
        bare_arguments: calls.is_some_and(has_bare_arguments),
        odd_reason: sent.as_deref() != finish_reason.as_deref(),
    };
    let choice = ChunkChoice {
        // A backend that forgets the index has written its choices in order.
        index: index.unwrap_or_else(|| u32::try_from(at).unwrap_or(u32::MAX)),
        content: content.map(|content| content.text.into_owned()),
        reasoning: reasoning_content.and_then(word).or_else(|| reasoning.and_then(word)),
        tool_calls,
        logprobs: logprobs.map(|raw| list.piece(raw)),
        finish_reason,
    };
    Ok((choice, shape))
}
