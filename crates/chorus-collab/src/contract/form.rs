//! The form that a request's final answer must have: what its route promises, else what the client asks for.
//!
//! It makes no call. **Invariant:** a route's contract comes before `response_format`: its form is the last word.

use super::schema::{FormatFault, JsonForm};
use super::{Applied, Written, apply};
use crate::fence::Fence;
use crate::question::original;
use crate::template::fill;
use chorus_spec::{OutputContract, OutputKind, OutputRender};
use chorus_wire::{ChatRequest, Message, Role};

const REPAIR: &str = include_str!("../../prompts/contract-v1/repair.md");

/// Fields of a request that have no place where an answer is only written again.
const NOT_FOR_REPAIR: [&str; 12] = [
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "functions",
    "function_call",
    "web_search_options",
    "n",
    "logprobs",
    "top_logprobs",
    "prediction",
    "plugins",
    "stop",
];

/// The form of a final answer.
#[derive(Debug, Clone)]
pub enum Form {
    /// The route's promise (`output_contract_spec`).
    Contract(Box<OutputContract>),
    /// The client's wish (`response_format`).
    Json(JsonForm),
}

impl Form {
    /// The form that a request's `response_format` asks for; `None` for text.
    ///
    /// # Errors
    /// [`FormatFault`].
    pub fn wished(ask: &ChatRequest) -> Result<Option<Self>, FormatFault> {
        Ok(JsonForm::of(ask)?.map(Self::Json))
    }

    /// The word of its kind, as in the trace.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Contract(contract) => match contract.kind {
                OutputKind::Choice(_) => "choice",
                OutputKind::StructuredJson { .. } => "structured_json",
                OutputKind::ReferenceSelection { .. } => "reference_selection",
            },
            Self::Json(_) => "response_format",
        }
    }

    /// Whether a broken answer is sent back once to be mended.
    #[must_use]
    pub fn repairs(&self) -> bool {
        match self {
            Self::Contract(contract) => contract.repair,
            Self::Json(_) => true,
        }
    }

    /// Whether an answer that stays broken is an error rather than marked.
    #[must_use]
    pub fn is_strict(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    /// What the form makes of an answer; `candidates` are the members' answers behind it, in seat order.
    #[must_use]
    pub fn apply(&self, answer: Written<'_>, candidates: &[Written<'_>]) -> Applied {
        match self {
            Self::Contract(contract) => apply(contract, answer, candidates),
            Self::Json(form) => form.apply(answer),
        }
    }

    /// The request that sends a broken answer back: question, answer, form, and what is wrong. It offers no tools.
    #[must_use]
    pub fn repair(&self, ask: &ChatRequest, answer: &str, problem: &str) -> ChatRequest {
        let question = original(ask);
        let form = self.described();
        let fence = Fence::around([&*question, answer, &*form]);
        let slots = [
            ("problem", problem),
            ("form", &*form),
            ("question", &*fence.wrap("question", "", &question)),
            ("answer", &*fence.wrap("answer", "", answer)),
        ];
        let mut again = ask.clone();
        NOT_FOR_REPAIR.iter().for_each(|field| again.remove(field));
        again.set_messages(vec![Message::new(Role::User, &fill(REPAIR.trim(), &slots))]);
        again.set_stream(false, false);
        again
    }

    fn described(&self) -> String {
        let contract = match self {
            Self::Json(form) => return form.described(),
            Self::Contract(contract) => contract,
        };
        match (&contract.kind, &contract.render) {
            (OutputKind::Choice(options), Some(OutputRender::Template(template))) => {
                format!("`{template}`, with one of these in place of the braces: {}", options.join(", "))
            }
            (OutputKind::Choice(options), _) => format!("one of these alone: {}", options.join(", ")),
            (OutputKind::StructuredJson { .. }, _) => super::structured::DESCRIPTION.to_owned(),
            (OutputKind::ReferenceSelection { .. }, _) => "a candidate's number alone".to_owned(),
        }
    }
}
