//! `conversation`: counts over the list of messages.
//!
//! *Measures:* messages by role, tools offered, tool calls made and answered, an open tool loop, image parts.
//! *Inputs:* every message and the list of tools.
//! *Cost:* 0, one walk over the messages
//! *Fails when:* never.
//! *Source:* contract §1.4 (`conversation`); cases B01, D22.
//!
//! `developer` is the newer name of `system`: a rule on `system` counts both, a rule on `developer` only its own.
//! A count is a fact: confidence is 1. **Invariant:** raw is the count, matched or not.

use crate::doc::SignalDoc;
use crate::predicate::holds;
use crate::subject::Subject;
use chorus_policy::Observation;
use chorus_spec::{ConversationSignal, ConversationSource, Family, FeatureKind};
use chorus_wire::{Message, Role};
use std::collections::BTreeSet;

/// The row of the table.
pub const DOC: SignalDoc = SignalDoc {
    family: Family::Conversation,
    measures: "messages by role, tools offered, tool calls made and answered, an open tool loop, image parts.",
    inputs: "every message and the list of tools.",
    cost: 0,
    fails_when: "never.",
    source: "contract §1.4 (`conversation`); cases B01, D22.",
};

/// What the rule says of a request.
pub(crate) fn observe(signal: &ConversationSignal, subject: &Subject<'_>) -> Observation {
    let count = count(&signal.feature.source, subject);
    let value = match signal.feature.kind {
        FeatureKind::Exists | FeatureKind::Sequence => f64::from(u8::from(count > 0)),
        FeatureKind::Count => count as f64,
        FeatureKind::Density => count as f64 / subject.messages().len().max(1) as f64,
    };
    if holds(value, signal.predicate.as_ref()) {
        Observation::Matched { confidence: 1.0, raw: Some(value) }
    } else {
        Observation::Unmatched { raw: Some(value) }
    }
}

fn count(source: &ConversationSource, subject: &Subject<'_>) -> usize {
    let messages = subject.messages();
    match source {
        ConversationSource::Message { role } => {
            messages.iter().filter(|m| role.as_deref().is_none_or(|role| speaks_as(&m.role, role))).count()
        }
        ConversationSource::ToolDefinition => subject.tool_definitions(),
        ConversationSource::AssistantToolCall => messages.iter().map(|m| m.tool_calls.len()).sum(),
        ConversationSource::AssistantToolCycle => answered_calls(messages),
        ConversationSource::ActiveToolLoop => usize::from(in_tool_loop(messages)),
        ConversationSource::ImageContent => messages.iter().map(|m| m.images).sum(),
    }
}

fn speaks_as(role: &Role, wanted: &str) -> bool {
    match (role, wanted) {
        (role, "non_user") => *role != Role::User,
        (Role::System | Role::Developer, "system")
        | (Role::Developer, "developer")
        | (Role::User, "user")
        | (Role::Assistant, "assistant")
        | (Role::Tool, "tool") => true,
        (Role::Other(name), wanted) => name == wanted,
        _ => false,
    }
}

fn answered_calls(messages: &[Message]) -> usize {
    let answered: BTreeSet<&str> = messages.iter().filter_map(|m| m.tool_call_id.as_deref()).collect();
    messages.iter().flat_map(|m| &m.tool_calls).filter(|call| answered.contains(call.id.as_str())).count()
}

fn in_tool_loop(messages: &[Message]) -> bool {
    messages.last().is_some_and(|last| last.role == Role::Tool || !last.tool_calls.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::ConversationFeature;
    use chorus_wire::ChatRequest;

    const AGENT: &str = r#"{"model":"m","tools":[{"type":"function","function":{"name":"w"}}],"messages":[
        {"role":"developer","content":"Be brief"},
        {"role":"user","content":[{"type":"text","text":"weather?"},
            {"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]},
        {"role":"assistant","content":null,"tool_calls":[
            {"id":"c1","type":"function","function":{"name":"w","arguments":"{}"}},
            {"id":"c2","type":"function","function":{"name":"w","arguments":"{}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"8C"}]}"#;

    fn value(body: &str, source: ConversationSource) -> f64 {
        let request = ChatRequest::parse(body.as_bytes(), &Default::default()).unwrap();
        let feature = ConversationFeature { kind: FeatureKind::Count, source };
        match observe(&ConversationSignal { feature, predicate: None }, &Subject::of(&request)) {
            Observation::Matched { confidence, raw: Some(raw) } => {
                assert_eq!(confidence, 1.0);
                raw
            }
            Observation::Unmatched { raw: Some(raw) } => raw,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn counts_of_an_agents_turn() {
        let role = |role: &str| ConversationSource::Message { role: Some(role.to_owned()) };
        for (source, want) in [
            (ConversationSource::Message { role: None }, 4.0),
            (role("user"), 1.0),
            (role("non_user"), 3.0),
            (role("system"), 1.0),
            (role("developer"), 1.0),
            (role("tool"), 1.0),
            (ConversationSource::ToolDefinition, 1.0),
            (ConversationSource::AssistantToolCall, 2.0),
            (ConversationSource::AssistantToolCycle, 1.0),
            (ConversationSource::ActiveToolLoop, 1.0),
            (ConversationSource::ImageContent, 1.0),
        ] {
            assert_eq!(value(AGENT, source.clone()), want, "{source:?}");
        }
    }

    #[test]
    fn d22_no_image_and_no_loop_in_plain_text() {
        let plain = r#"{"model":"m","messages":[{"role":"user","content":"an image of a cat, please"}]}"#;
        assert_eq!(value(plain, ConversationSource::ImageContent), 0.0);
        assert_eq!(value(plain, ConversationSource::ActiveToolLoop), 0.0);
    }
}
