//! Puts a stream together to a whole reply. It mends no chunk, but takes chunks as backends send them.

use crate::body::{Raw, raw_or_null};
use crate::chunk::{Chunk, ChunkChoice};
use crate::identity::StreamIdentity;
use crate::reply::{ChatReply, Usage, envelope};
use crate::tool::{ToolCall, ToolSlots};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Puts a stream together to a whole reply: text, reasoning, tool calls and log-probabilities are appended (A07).
///
/// Fields of chunks that [`Chunk`] does not read are not part of the reply.
#[derive(Debug, Default)]
pub struct Assembler {
    choices: BTreeMap<u32, Growing>,
    usage: Option<Usage>,
}

/// One choice so far.
#[derive(Debug, Default)]
struct Growing {
    content: Option<String>,
    reasoning: Option<String>,
    tools: ToolSlots,
    logprobs: Option<Logprobs>,
    finish_reason: Option<String>,
}

/// Token entries as sent, in order.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Logprobs {
    #[serde(default)]
    content: Option<Vec<Raw>>,
    #[serde(default)]
    refusal: Option<Vec<Raw>>,
}

#[derive(Serialize)]
struct ChoiceOut<'a> {
    index: u32,
    message: MessageOut<'a>,
    logprobs: &'a Option<Logprobs>,
    finish_reason: &'a Option<String>,
}

#[derive(Serialize)]
struct MessageOut<'a> {
    role: &'static str,
    content: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_content: &'a Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<CallOut<'a>>,
}

#[derive(Serialize)]
struct CallOut<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    function: FunctionOut<'a>,
}

#[derive(Serialize)]
struct FunctionOut<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl Assembler {
    /// Takes one chunk.
    pub fn push(&mut self, chunk: &Chunk) {
        for choice in &chunk.choices {
            self.choices.entry(choice.index).or_default().push(choice);
        }
        if let Some(usage) = chunk.usage.filter(|usage| self.usage.is_none() || usage.total_tokens > 0) {
            self.usage = Some(usage);
        }
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
        let choices: Vec<ChoiceOut<'_>> = grown.iter().map(|(index, choice)| choice.out(*index)).collect();
        let mut body = envelope(&identity.id, &identity.model, identity.created, raw_or_null(&choices));
        if let Some(usage) = &self.usage {
            body.set("usage", raw_or_null(usage));
        }
        let first = grown.into_iter().next().map(|(_, choice)| choice).unwrap_or_default();
        ChatReply {
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
}

impl Growing {
    fn push(&mut self, choice: &ChunkChoice) {
        append(&mut self.content, choice.content.as_deref());
        append(&mut self.reasoning, choice.reasoning.as_deref());
        for part in &choice.tool_calls {
            self.tools.place(part);
        }
        if let Some(logprobs) = choice.logprobs.as_deref() {
            self.push_logprobs(logprobs);
        }
        // The first reason is the one that a client was told.
        if self.finish_reason.is_none() {
            self.finish_reason.clone_from(&choice.finish_reason);
        }
    }

    fn push_logprobs(&mut self, raw: &RawValue) {
        // Another shape than the API's carries no evidence that could be appended.
        let Ok(new) = serde_json::from_str::<Logprobs>(raw.get()) else {
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
        let Self { content, reasoning, tools, logprobs, finish_reason } = self;
        Grown { content, reasoning, tool_calls: tools.into_calls(), logprobs, finish_reason }
    }
}

impl Grown {
    fn out(&self, index: u32) -> ChoiceOut<'_> {
        let calls = self.tool_calls.iter().map(|call| CallOut {
            id: &call.id,
            kind: "function",
            function: FunctionOut { name: &call.name, arguments: &call.arguments },
        });
        ChoiceOut {
            index,
            message: MessageOut {
                role: "assistant",
                content: &self.content,
                reasoning_content: &self.reasoning,
                tool_calls: calls.collect(),
            },
            logprobs: &self.logprobs,
            finish_reason: &self.finish_reason,
        }
    }
}

fn append(text: &mut Option<String>, more: Option<&str>) {
    if let Some(more) = more {
        text.get_or_insert_default().push_str(more);
    }
}
