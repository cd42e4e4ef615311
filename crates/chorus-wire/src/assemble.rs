//! Puts a stream together to a whole reply. It mends no chunk, but takes chunks as backends send them.

use crate::body::RawObject;
use crate::chunk::{Chunk, ChunkChoice};
use crate::extra::Extras;
use crate::identity::StreamIdentity;
use crate::raw::{Raw, raw_or_null};
use crate::reply::{ChatReply, Usage, envelope};
use crate::tool::{ToolCall, ToolSlots};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Puts a stream together to a whole reply: text, reasoning, tool calls and log-probabilities are appended (A07), and so
/// is whatever [`Chunk`] does not read (case F07).
#[derive(Debug, Default)]
pub struct Assembler {
    choices: BTreeMap<u32, Growing>,
    usage: Option<Usage>,
    /// The usage as it came, with what [`Usage`] does not hold.
    usage_body: Option<Raw>,
    extras: Extras,
}

/// One choice so far.
#[derive(Debug, Default)]
struct Growing {
    content: Option<String>,
    reasoning: Option<String>,
    tools: ToolSlots,
    logprobs: Option<Logprobs>,
    finish_reason: Option<String>,
    /// Spellings of the reasoning that came.
    spellings: Spellings,
    extras: Extras,
    message_extras: Extras,
    call_extras: BTreeMap<u32, Extras>,
}

/// Which names the reasoning came under.
#[derive(Debug, Default, Clone, Copy)]
struct Spellings {
    reasoning: bool,
    reasoning_content: bool,
}

/// Token entries as sent, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Logprobs {
    #[serde(default)]
    content: Option<Vec<Raw>>,
    #[serde(default)]
    refusal: Option<Vec<Raw>>,
}

/// Fields that a reply has of its own, and padding.
const TOP: [&str; 8] = ["id", "object", "created", "model", "choices", "usage", "error", "obfuscation"];
/// Fields of a choice that are read, and the one that is written in their place.
const CHOICE: [&str; 5] = ["index", "delta", "message", "logprobs", "finish_reason"];
/// Fields of a delta that are read.
const DELTA: [&str; 5] = ["role", "content", "reasoning_content", "reasoning", "tool_calls"];
/// Fields of a part of a call that are read.
const CALL: [&str; 4] = ["index", "id", "type", "function"];

#[derive(Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Assembler {
    /// Takes one chunk.
    pub fn push(&mut self, chunk: &Chunk) {
        let bodies: Vec<RawObject> = chunk.body.read("choices").ok().flatten().unwrap_or_default();
        for (at, choice) in chunk.choices.iter().enumerate() {
            self.choices.entry(choice.index).or_default().push(choice, bodies.get(at));
        }
        if let Some(usage) = chunk.usage.filter(|usage| self.usage.is_none() || usage.total_tokens > 0) {
            self.usage = Some(usage);
            self.usage_body = chunk.body.get_set("usage").cloned();
        }
        self.extras.replace(&chunk.body, &TOP);
    }

    /// The text of choice 0 so far.
    #[must_use]
    pub fn content(&self) -> &str {
        self.choices.get(&0).and_then(|choice| choice.content.as_deref()).unwrap_or_default()
    }

    /// The whole reply. A finish reason that no chunk gave is null.
    #[must_use]
    pub fn finish(self, identity: &StreamIdentity) -> ChatReply {
        let grown: Vec<(u32, Grown)> =
            self.choices.into_iter().map(|(index, choice)| (index, choice.finish())).collect();
        let choices: Vec<RawObject> = grown.iter().map(|(index, choice)| choice.out(*index)).collect();
        let mut body = envelope(&identity.id, &identity.model, identity.created, raw_or_null(&choices));
        if let Some(usage) = &self.usage {
            body.set("usage", self.usage_body.unwrap_or_else(|| raw_or_null(usage)));
        }
        self.extras.write(&mut body);
        let first = grown.into_iter().next().map(|(_, choice)| choice).unwrap_or_default();
        ChatReply {
            normal: false,
            body,
            content: first.content.unwrap_or_default(),
            reasoning: first.reasoning,
            tool_calls: first.tool_calls,
            finish_reason: first.finish_reason,
            usage: self.usage,
        }
    }
}

/// One choice when its stream has ended.
#[derive(Debug, Default)]
struct Grown {
    content: Option<String>,
    reasoning: Option<String>,
    tool_calls: Vec<ToolCall>,
    logprobs: Option<Logprobs>,
    finish_reason: Option<String>,
    spellings: Spellings,
    extras: Extras,
    message_extras: Extras,
    call_extras: BTreeMap<u32, Extras>,
}

impl Growing {
    fn push(&mut self, choice: &ChunkChoice, body: Option<&RawObject>) {
        append(&mut self.content, choice.content.as_deref());
        append(&mut self.reasoning, choice.reasoning.as_deref());
        let delta: Option<RawObject> = body.and_then(|body| body.read("delta").ok().flatten());
        let parts: Vec<RawObject> =
            delta.as_ref().and_then(|delta| delta.read("tool_calls").ok().flatten()).unwrap_or_default();
        for (at, part) in choice.tool_calls.iter().enumerate() {
            let placed = self.tools.place(part);
            if let Some(part) = parts.get(at) {
                self.call_extras.entry(placed.index).or_default().append(part, &CALL);
            }
        }
        if let Some(body) = body {
            self.extras.replace(body, &CHOICE);
        }
        if let Some(delta) = delta {
            self.spellings.reasoning |= delta.get_set("reasoning").is_some();
            self.spellings.reasoning_content |= delta.get_set("reasoning_content").is_some();
            self.message_extras.append(&delta, &DELTA);
        }
        if let Some(logprobs) = choice.logprobs.as_deref() {
            self.push_logprobs(logprobs);
        }
        // The first reason is the one that a client was told.
        if self.finish_reason.is_none() {
            self.finish_reason.clone_from(&choice.finish_reason);
        }
    }

    fn push_logprobs(&mut self, raw: &str) {
        // Another shape than the API's carries no evidence that could be appended.
        let Ok(new) = serde_json::from_str::<Logprobs>(raw) else {
            return;
        };
        let all = self.logprobs.get_or_insert_default();
        for (list, more) in [(&mut all.content, new.content), (&mut all.refusal, new.refusal)] {
            if let Some(more) = more {
                list.get_or_insert_default().extend(more);
            }
        }
    }

    fn finish(self) -> Grown {
        let Self { content, reasoning, tools, logprobs, finish_reason, spellings, .. } = self;
        let (extras, message_extras, call_extras) = (self.extras, self.message_extras, self.call_extras);
        let tool_calls = tools.into_calls();
        Grown {
            content,
            reasoning,
            tool_calls,
            logprobs,
            finish_reason,
            spellings,
            extras,
            message_extras,
            call_extras,
        }
    }
}

impl Grown {
    fn out(&self, index: u32) -> RawObject {
        let mut choice = RawObject::default();
        choice.set("index", raw_or_null(&index));
        choice.set("message", raw_or_null(&self.message()));
        choice.set("logprobs", raw_or_null(&self.logprobs));
        choice.set("finish_reason", raw_or_null(&self.finish_reason));
        self.extras.write(&mut choice);
        choice
    }

    fn message(&self) -> RawObject {
        let mut message = RawObject::default();
        message.set("role", raw_or_null("assistant"));
        message.set("content", raw_or_null(&self.content));
        if let Some(reasoning) = &self.reasoning {
            let Spellings { reasoning: short, reasoning_content: long } = self.spellings;
            if long || !short {
                message.set("reasoning_content", raw_or_null(reasoning));
            }
            if short {
                message.set("reasoning", raw_or_null(reasoning));
            }
        }
        if !self.tool_calls.is_empty() {
            let calls: Vec<RawObject> =
                (0..).zip(&self.tool_calls).map(|(at, call)| self.call(at, call)).collect();
            message.set("tool_calls", raw_or_null(&calls));
        }
        self.message_extras.write(&mut message);
        message
    }

    fn call(&self, at: u32, call: &ToolCall) -> RawObject {
        let mut out = RawObject::default();
        out.set("id", raw_or_null(&call.id));
        out.set("type", raw_or_null("function"));
        out.set("function", raw_or_null(&FunctionOut { name: &call.name, arguments: &call.arguments }));
        if let Some(extras) = self.call_extras.get(&at) {
            extras.write(&mut out);
        }
        out
    }
}

fn append(text: &mut Option<String>, more: Option<&str>) {
    if let Some(more) = more {
        text.get_or_insert_default().push_str(more);
    }
}
