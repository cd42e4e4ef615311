//! What of a client's request a judge is told, and what Fusion cannot honour of it.
//!
//! **Invariant:** the question is the last user message, never an earlier one, and never empty.

use chorus_wire::{ChatRequest, Message, Role};

/// The request field that Fusion cannot honour, for a 400 with `param` (case B12).
///
/// One answer is written, as text: `n` above 1 and audio output are refused. Log-probabilities, `stop`, token caps and
/// the response format belong to the visible answer and reach the writer alone (cases B10, B11, G27).
#[must_use]
pub fn unsupported_param(ask: &ChatRequest) -> Option<&'static str> {
    let body = ask.body();
    if body.read::<Option<u64>>("n").ok().flatten().flatten().is_some_and(|n| n > 1) {
        return Some("n");
    }
    let modalities = body.read::<Option<Vec<String>>>("modalities").ok().flatten().flatten();
    if modalities.is_some_and(|list| list.iter().any(|m| m != "text")) {
        return Some("modalities");
    }
    body.get("audio").is_some_and(|raw| raw.get() != "null").then_some("audio")
}

/// The text of the question; images and audio are counted, not shown.
pub(crate) fn original(ask: &ChatRequest) -> String {
    asked(ask).map_or_else(|| "(no text)".to_owned(), |(_, message)| text_of(message))
}

/// The rest of the conversation as text, with the place of the question marked; empty when there is nothing else.
pub(crate) fn context(ask: &ChatRequest) -> String {
    let Some((at, _)) = asked(ask) else {
        return String::new();
    };
    if ask.messages().len() == 1 {
        return String::new();
    }
    let line = |(n, message): (usize, &Message)| {
        if n == at {
            "user: (the question)".to_owned()
        } else {
            format!("{}: {}", word(&message.role), text_of(message))
        }
    };
    ask.messages().iter().enumerate().map(line).collect::<Vec<_>>().join("\n\n")
}

/// The message with its images left out and counted.
pub(crate) fn without_images(message: &Message) -> Message {
    if message.images == 0 { message.clone() } else { Message::new(message.role.clone(), &text_of(message)) }
}

/// The last user message, else the last message at all.
fn asked(ask: &ChatRequest) -> Option<(usize, &Message)> {
    let messages = ask.messages();
    let at = messages.iter().rposition(|m| m.role == Role::User).or(messages.len().checked_sub(1))?;
    messages.get(at).map(|message| (at, message))
}

/// Text, with a note of what is not text; never empty.
fn text_of(message: &Message) -> String {
    let mut parts = Vec::new();
    if !message.text.trim().is_empty() {
        parts.push(message.text.clone());
    }
    for call in &message.tool_calls {
        parts.push(format!("(called the tool {} with {})", call.name, call.arguments));
    }
    for (count, what) in [(message.images, "image"), (message.audio, "audio recording")] {
        match count {
            0 => {}
            1 => parts.push(format!("(with 1 {what}, not shown here)")),
            n => parts.push(format!("(with {n} {what}s, not shown here)")),
        }
    }
    if parts.is_empty() { "(no text)".to_owned() } else { parts.join("\n") }
}

/// A role as a judge reads it.
fn word(role: &Role) -> &str {
    match role {
        Role::System => "system",
        Role::Developer => "developer",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
        Role::Other(word) => word,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;

    fn ask(fields: &str) -> ChatRequest {
        let body = format!("{{\"model\":\"m\",{fields}}}");
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    #[test]
    fn b12_what_fusion_cannot_honour() {
        for (field, expect) in [
            (r#""n":3"#, Some("n")),
            (r#""n":1"#, None),
            (r#""n":null"#, None),
            (r#""modalities":["text","audio"]"#, Some("modalities")),
            (r#""modalities":["text"]"#, None),
            (r#""audio":{"voice":"x","format":"wav"}"#, Some("audio")),
            (r#""logprobs":true"#, None),
        ] {
            let ask = ask(&format!(r#""messages":[{{"role":"user","content":"q"}}],{field}"#));
            assert_eq!(unsupported_param(&ask), expect, "{field}");
        }
    }

    #[test]
    fn the_question_is_the_last_user_message_and_never_empty() {
        let image = r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}"#;
        for (messages, expect) in [
            (r#"{"role":"user","content":"old"},{"role":"assistant","content":"a"},{"role":"user","content":"new"}"#.to_owned(), "new"),
            (
                format!(r#"{{"role":"user","content":"old"}},{{"role":"user","content":[{{"type":"text","text":"what colour?"}},{image}]}}"#),
                "what colour?\n(with 1 image, not shown here)",
            ),
            (format!(r#"{{"role":"user","content":"old"}},{{"role":"user","content":[{image},{image}]}}"#), "(with 2 images, not shown here)"),
            (r#"{"role":"user","content":""}"#.to_owned(), "(no text)"),
            (r#"{"role":"system","content":"only me"}"#.to_owned(), "only me"),
        ] {
            assert_eq!(original(&ask(&format!("\"messages\":[{messages}]"))), expect, "{messages}");
        }
    }

    #[test]
    fn the_context_marks_where_the_question_stands() {
        let ask = ask(r#""messages":[{"role":"system","content":"s"},{"role":"user","content":"q"},
            {"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{}"}}]},
            {"role":"tool","tool_call_id":"1","content":"r"}]"#);
        let expect = "system: s\n\nuser: (the question)\n\nassistant: (called the tool f with {})\n\ntool: r";
        assert_eq!(context(&ask), expect);
    }
}
