//! The parts of a request that may be shortened, in the order in which they are, and how they are written back.
//!
//! **Invariant:** only the text of a part changes: ids, calls, images, marks for caches and everything else of a message
//! stay as they were written.

use super::super::at_work::Put;
use chorus_spec::{CompressionMode, CompressionTarget, CompressionTargets};
use chorus_wire::tokens::of_text;
use chorus_wire::{ChatRequest, Message, RawObject, Role};
use serde_json::Value;

/// What a part is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    ToolOutput,
    Rag,
    Memory,
    History,
}

impl Kind {
    /// The contract's word for it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::ToolOutput => "tool_outputs",
            Self::Rag => "rag",
            Self::Memory => "memory",
            Self::History => "history",
        }
    }
}

/// A part that may be shortened.
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) kind: Kind,
    pub(super) target: CompressionTarget,
    /// The message.
    at: usize,
    /// The part of its content, where that is a list.
    item: Option<usize>,
    pub(super) text: String,
    /// What it is to be relevant to.
    pub(super) question: String,
}

/// The parts that are long enough to be shortened, in the order in which they are.
pub(super) fn of(request: &ChatRequest, put: &[Put], targets: &CompressionTargets) -> Vec<Part> {
    let messages = request.messages();
    let question = request.last_user_text();
    let last_user = messages.iter().rposition(|it| it.role == Role::User).unwrap_or(0);
    let latest_answer = messages.iter().rposition(|it| it.role == Role::Assistant);
    let mut found = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let own = put.iter().find(|it| message.text.contains(&it.text));
        let is_past = at < last_user && Some(at) != latest_answer && message.tool_calls.is_empty();
        let (kind, target) = match (&message.role, own.map(|it| it.by)) {
            (Role::Tool, Some("rag")) => (Kind::Rag, targets.rag),
            (Role::Tool, _) => (Kind::ToolOutput, targets.tool_outputs),
            (Role::User | Role::Assistant, _) if is_past => (Kind::History, targets.history),
            _ => continue,
        };
        let asked = match kind {
            Kind::ToolOutput => format!("{question}\n{}", origin(messages, message)),
            _ => question.to_owned(),
        };
        found.extend(texts(message).into_iter().map(|(item, text)| Part {
            kind,
            target,
            at,
            item,
            text,
            question: asked.clone(),
        }));
    }
    found.extend(put.iter().filter_map(|it| in_system(it, messages, question, targets)));
    found.retain(|it| {
        it.target.mode != CompressionMode::Preserve && of_text(&it.text) >= it.target.min_tokens
    });
    found.sort_by_key(|it| match it.kind {
        Kind::ToolOutput => (0, it.at),
        Kind::Rag => (1, it.at),
        Kind::Memory => (2, it.at),
        Kind::History => (3, it.at),
    });
    found
}

/// A block that a plugin put into the system message: of that message only the block may change.
fn in_system(put: &Put, messages: &[Message], question: &str, targets: &CompressionTargets) -> Option<Part> {
    let (kind, target) = match put.by {
        "memory" => (Kind::Memory, targets.memory),
        "rag" => (Kind::Rag, targets.rag),
        _ => return None,
    };
    let at = messages.iter().position(|it| it.role == Role::System && it.text.contains(&put.text))?;
    let (text, question) = (put.text.clone(), question.to_owned());
    Some(Part { kind, target, at, item: None, text, question })
}

/// The call that a result answers, as words.
fn origin(messages: &[Message], result: &Message) -> String {
    let mut calls = messages.iter().flat_map(|it| &it.tool_calls);
    let call = calls.rfind(|call| Some(&call.id) == result.tool_call_id.as_ref());
    call.map(|call| format!("{} {}", call.name, call.arguments)).unwrap_or_default()
}

/// The texts of a message's content, each with its place where the content is a list.
fn texts(message: &Message) -> Vec<(Option<usize>, String)> {
    let content = body(message).and_then(|body| body.read::<Value>("content").ok().flatten());
    match content {
        Some(Value::String(text)) => vec![(None, text)],
        Some(Value::Array(parts)) => {
            let text = |part: &Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
            parts.iter().enumerate().filter_map(|(at, part)| Some((Some(at), text(part)?))).collect()
        }
        _ => Vec::new(),
    }
}

fn body(message: &Message) -> Option<RawObject> {
    RawObject::parse(message.raw().get().as_bytes()).ok()
}

/// Writes a part's new text; whether that could be done.
pub(super) fn write(part: &Part, text: &str, request: &mut ChatRequest) -> bool {
    let mut messages = request.messages().to_vec();
    let Some(message) = messages.get_mut(part.at) else { return false };
    let Some(changed) = rewritten(message, part, text) else { return false };
    *message = changed;
    request.set_messages(messages);
    true
}

fn rewritten(message: &Message, part: &Part, text: &str) -> Option<Message> {
    let mut body = body(message)?;
    let mut content = body.read::<Value>("content").ok().flatten()?;
    let slot = match part.item {
        Some(item) => content.get_mut(item)?.get_mut("text")?,
        None => &mut content,
    };
    // Of the system message, a block of ours; of any other, all of the text.
    *slot = Value::String(slot.as_str()?.replacen(&part.text, text, 1));
    body.write("content", &content).ok()?;
    let raw = serde_json::value::RawValue::from_string(String::from_utf8(body.to_bytes()).ok()?).ok()?;
    Message::parse(raw.into(), part.at).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;

    fn request(messages: &str) -> ChatRequest {
        let body = format!(r#"{{"model":"m","messages":[{messages}]}}"#);
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    fn targets() -> CompressionTargets {
        let target = CompressionTarget { mode: CompressionMode::Extractive, min_tokens: 1, target_tokens: 1 };
        CompressionTargets { tool_outputs: target, history: target, rag: target, memory: target }
    }

    const AGENT: &str = r#"{"role":"system","content":"sys"},{"role":"user","content":"old"},
        {"role":"assistant","content":"answer one"},{"role":"user","content":"now"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}}]},
        {"role":"tool","tool_call_id":"c1","x_own":1.10,"content":[{"type":"text","text":"result"},{"type":"image_url","image_url":{"url":"data:,"}}]}"#;

    #[test]
    fn what_may_change_and_in_which_order() {
        let found = of(&request(AGENT), &[], &targets());
        let rows: Vec<(&str, &str)> = found.iter().map(|it| (it.kind.as_str(), it.text.as_str())).collect();
        assert_eq!(rows, [("tool_outputs", "result"), ("history", "old"), ("history", "answer one")]);
        assert_eq!(found[0].question, "now\nlook {\"at\":1}");
        let preserved = CompressionTargets::default();
        assert!(of(&request(AGENT), &[], &preserved).is_empty());
    }

    #[test]
    fn only_the_text_changes() {
        let mut it = request(AGENT);
        let part = of(&it, &[], &targets()).remove(0);
        assert!(write(&part, "short", &mut it));
        let raw = it.messages()[5].raw().get();
        assert!(
            raw.contains(r#""x_own":1.10"#) && raw.contains("data:,") && raw.contains(r#""text":"short""#),
            "{raw}"
        );
        assert_eq!(it.messages()[5].tool_call_id.as_deref(), Some("c1"));
        assert_eq!(it.messages()[4].raw().get(), request(AGENT).messages()[4].raw().get());
    }

    #[test]
    fn of_a_system_message_only_our_block_changes() {
        let mut it =
            request(r#"{"role":"system","content":"rules\n\nBLOCK one two"},{"role":"user","content":"q"}"#);
        let put = [Put { by: "memory", text: "BLOCK one two".to_owned() }];
        let part = of(&it, &put, &targets()).remove(0);
        assert_eq!(part.kind, Kind::Memory);
        assert!(write(&part, "BLOCK", &mut it));
        assert_eq!(it.messages()[0].text, "rules\n\nBLOCK");
        assert!(of(&it, &[], &targets()).is_empty(), "a system message is nobody's to shorten");
    }
}
