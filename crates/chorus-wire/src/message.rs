//! One message of a conversation: its JSON as sent, and what signals need of it.
//!
//! **Invariant:** reading a message changes nothing about the text that is forwarded.

use crate::content::{Content, text, word_of};
use crate::fault::RequestFault;
use crate::quarters::quarters;
use crate::raw::{Raw, raw_or_null};
use crate::scan::{Picked, pick};
use crate::tool::ToolCall;
use serde::Serialize;

/// Who speaks.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is the API's own word for the role")]
pub enum Role {
    System,
    Developer,
    User,
    Assistant,
    Tool,
    /// A role that the API may add later; forwarded as written.
    Other(String),
}

impl Role {
    /// The role of that name. Any name is one (case B01).
    #[must_use]
    pub fn from_name(name: &str) -> Self {
        match name {
            "system" => Self::System,
            "developer" => Self::Developer,
            "user" => Self::User,
            "assistant" => Self::Assistant,
            "tool" => Self::Tool,
            other => Self::Other(other.to_owned()),
        }
    }

    /// Its name on the wire.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => "system",
            Self::Developer => "developer",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
            Self::Other(name) => name,
        }
    }
}

/// One message: its JSON as sent, and what signals need of it.
#[derive(Debug, Clone)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// All text parts, joined as written; empty for `null` content.
    pub text: String,
    /// Image parts.
    pub images: usize,
    /// Audio parts.
    pub audio: usize,
    /// Calls asked for (assistant).
    pub tool_calls: Vec<ToolCall>,
    /// The call answered (tool).
    pub tool_call_id: Option<String>,
    /// Quarters of a token in `text`: asked for by whoever counts tokens, counted once.
    pub(crate) text_quarters: u64,
    raw: Raw,
}

#[derive(Serialize)]
struct PlainMessage<'a> {
    role: &'a str,
    content: &'a str,
}

/// What is read of a message.
pub(crate) const FIELDS: [&str; 4] = ["role", "content", "tool_calls", "tool_call_id"];

impl Message {
    /// A plain text message.
    #[must_use]
    pub fn new(role: Role, text: &str) -> Self {
        let raw = raw_or_null(&PlainMessage { role: role.as_str(), content: text });
        Self {
            role,
            text: text.to_owned(),
            images: 0,
            audio: 0,
            tool_calls: Vec::new(),
            tool_call_id: None,
            text_quarters: quarters(text),
            raw,
        }
    }

    /// Reads one message of a request.
    ///
    /// # Errors
    /// [`RequestFault`] with `param` = `messages[at]…`.
    #[expect(clippy::needless_pass_by_value, reason = "the message keeps the text that it is given")]
    pub fn parse(raw: Raw, at: usize) -> Result<Self, RequestFault> {
        Self::of(&raw, &raw, pick(&raw, FIELDS), at)
    }

    /// [`parse`](Self::parse) of the element of a list, whose fields have been found.
    pub(crate) fn of(
        list: &Raw,
        element: &str,
        picked: Picked<'_, 4>,
        at: usize,
    ) -> Result<Self, RequestFault> {
        let at_field = |field: &str, problem: &str| {
            let param = format!("messages[{at}].{field}");
            let message = format!("`{param}` {problem}");
            RequestFault::of(param, message)
        };
        let [role, content, tool_calls, tool_call_id] = picked.map_err(|fault| {
            let place = format!("messages[{at}]");
            RequestFault::of(&*place, format!("`{place}` is not a message: {fault}"))
        })?;
        let role = role
            .and_then(word_of)
            .ok_or_else(|| at_field("role", "must be a non-empty string, such as \"user\""))?;
        let content = content
            .map_or_else(|| Some(Content::default()), Content::read)
            .ok_or_else(|| at_field("content", "must be a string, a list of parts, or null"))?;
        let tool_calls = tool_calls
            .map_or_else(|| Some(Vec::new()), ToolCall::read_all)
            .ok_or_else(|| at_field("tool_calls", "must be a list of tool calls"))?;
        let tool_call_id = match tool_call_id {
            None => None,
            Some(id) => Some(text(id).ok_or_else(|| at_field("tool_call_id", "must be a string"))?),
        };
        let Content { text, images, audio, .. } = content;
        let (role, text, raw) = (Role::from_name(&role), text.into_owned(), list.piece(element));
        let text_quarters = quarters(&text);
        Ok(Self { role, text, images, audio, tool_calls, tool_call_id, text_quarters, raw })
    }

    /// The JSON text as sent.
    #[must_use]
    pub fn raw(&self) -> &Raw {
        &self.raw
    }
}
