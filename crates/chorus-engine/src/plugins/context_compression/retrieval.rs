//! The tool by which a model asks for an original, and the engine's answers to its calls.
//!
//! While the model calls the tool, the engine answers and asks again, at most as often as the route allows; then the tool
//! is no longer offered. Calls of the client's tools in the same turn are left out of that turn: the model makes them
//! again when it has read the original. **Invariant:** the client sees neither the tool nor its calls, and the usage is
//! the sum of all turns.

use super::super::answer_text::whole;
use super::super::at_work::{Answered, Asking};
use crate::fault::Fault;
use chorus_collab::{Answer, Call, CallRole, ModelCalls, Reply};
use chorus_spec::CompressionSettings;
use chorus_wire::{ChatReply, ChatRequest, Message, ToolCall};
use serde_json::{Value, json};
use std::time::Instant;

/// The tool's name. Source: contract §1.10.
pub(super) const TOOL: &str = "vsr_context_retrieve";

/// Characters of an original in one answer (`max_retrieved_characters`).
const CHARACTERS_MOST: usize = 60_000;

/// Whether a model can ask for originals: it is one model that is offered tools already, and no contract or form holds
/// the answer, which would have been looked at before the last turn.
pub(super) fn is_possible(settings: &CompressionSettings, ask: &Asking<'_>) -> bool {
    let scene = ask.scene;
    let contract = scene.decision().is_some_and(|it| it.output_contract_spec.is_some());
    let point = scene.mom.artifact.point(ask.request.model()).is_some();
    let is_free = !contract && !point && scene.calls.guard.is_none();
    settings.recovery.enabled && is_free && scene.model.is_some() && ask.request.tool_count() > 0
}

/// Offers the tool beside the client's.
pub(super) fn offer(request: &mut ChatRequest) {
    let mut tools: Vec<Value> = request.body().read("tools").ok().flatten().unwrap_or_default();
    let key = json!({"type": "string", "description": "The key that stands where passages were left out."});
    tools.push(json!({"type": "function", "function": {
        "name": TOOL,
        "description": "Gives the whole text of which passages were left out. Use it only when what is left is not enough.",
        "parameters": {"type": "object", "properties": {"key": key}, "required": ["key"]},
    }}));
    request.set("tools", &tools);
}

/// The answer in which no call of ours is left, and how many originals were asked for.
///
/// # Errors
/// A call that gives no answer.
pub(super) async fn answered(
    answer: Answer,
    settings: &CompressionSettings,
    seen: &Answered<'_>,
) -> Result<(Answer, usize), Fault> {
    let mut reply = whole(answer).await?;
    let mut ask = seen.request.clone();
    ask.set_stream(false, false);
    let (mut retrievals, mut turns) = (0, 0);
    while let Some(calls) = own_calls(&reply.reply) {
        let most = settings.recovery.max_retrievals;
        let mut texts = Vec::with_capacity(calls.len());
        for call in &calls {
            let text = retrieved(call, seen).filter(|_| retrievals < most);
            retrievals += usize::from(text.is_some());
            texts.push(text.unwrap_or_else(refused));
        }
        if turns > most {
            // A model that calls what it is not offered is not asked for ever.
            reply = without_calls(reply);
            break;
        }
        turns += 1;
        go_on(&mut ask, &calls, &texts);
        if retrievals >= most {
            withdraw(&mut ask);
        }
        let call =
            Call { model: reply.model.clone(), role: CallRole::Direct, ask: ask.clone(), timeout: None };
        reply = seen.scene.calls.complete(call).await?;
    }
    if turns > 0 {
        reply.usage = seen.scene.calls.ledger.total().0;
        reply.reply.set("usage", &reply.usage);
    }
    Ok((Answer::Finished(Box::new(reply)), retrievals))
}

/// The calls of our tool; `None` where there is none.
fn own_calls(reply: &ChatReply) -> Option<Vec<ToolCall>> {
    let own: Vec<ToolCall> = reply.tool_calls.iter().filter(|call| call.name == TOOL).cloned().collect();
    (!own.is_empty()).then_some(own)
}

/// The original that a call asks for.
fn retrieved(call: &ToolCall, seen: &Answered<'_>) -> Option<String> {
    let arguments: Value = serde_json::from_str(&call.arguments).ok()?;
    let key = arguments.get("key").and_then(Value::as_str)?;
    let scene = seen.scene;
    let text = scene.mom.shelf.originals.get(&scene.run, key, Instant::now())?;
    Some(text.chars().take(CHARACTERS_MOST).collect())
}

fn refused() -> String {
    "There is no text of that key any more; go on with what is there.".to_owned()
}

/// The conversation with the model's calls and their results.
fn go_on(ask: &mut ChatRequest, calls: &[ToolCall], texts: &[String]) {
    let call = |call: &ToolCall| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}});
    let said = json!({"role": "assistant", "content": null, "tool_calls": calls.iter().map(call).collect::<Vec<_>>()});
    let results = calls
        .iter()
        .zip(texts)
        .map(|(call, text)| json!({"role": "tool", "tool_call_id": call.id, "content": text}));
    let mut messages = ask.messages().to_vec();
    for value in std::iter::once(said).chain(results) {
        let message = serde_json::value::to_raw_value(&value).ok();
        messages.extend(message.and_then(|raw| Message::parse(raw.into(), 0).ok()));
    }
    ask.set_messages(messages);
}

/// Takes the tool back.
fn withdraw(ask: &mut ChatRequest) {
    let mut tools: Vec<Value> = ask.body().read("tools").ok().flatten().unwrap_or_default();
    tools.retain(|tool| tool.pointer("/function/name").and_then(Value::as_str) != Some(TOOL));
    ask.set("tools", &tools);
}

/// The answer without calls of our tool.
fn without_calls(mut reply: Reply) -> Reply {
    let mut choices: Vec<Value> = reply.reply.body().read("choices").ok().flatten().unwrap_or_default();
    for choice in &mut choices {
        let calls = choice.pointer_mut("/message/tool_calls").and_then(Value::as_array_mut);
        let Some(calls) = calls else { continue };
        calls.retain(|call| call.pointer("/function/name").and_then(Value::as_str) != Some(TOOL));
        if !calls.is_empty() {
            continue;
        }
        if let Some(message) = choice.get_mut("message").and_then(Value::as_object_mut) {
            message.remove("tool_calls");
        }
        if let Some(choice) = choice.as_object_mut() {
            choice.insert("finish_reason".to_owned(), "stop".into());
        }
    }
    reply.reply.set("choices", &choices);
    if let Ok(read) = ChatReply::parse(&reply.reply.to_bytes()) {
        reply.reply = read;
    }
    reply
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;

    #[test]
    fn the_tool_comes_and_goes_beside_the_client_s() {
        let body = br#"{"model":"m","messages":[{"role":"user","content":"q"}],"tools":[{"type":"function","function":{"name":"a"}}]}"#;
        let mut it = ChatRequest::parse(body, &RequestLimits::default()).unwrap();
        offer(&mut it);
        assert_eq!(it.tool_count(), 2);
        withdraw(&mut it);
        assert_eq!(it.body().get("tools").unwrap().get(), r#"[{"type":"function","function":{"name":"a"}}]"#);
    }

    #[test]
    fn no_call_of_ours_is_left() {
        let body = format!(
            r#"{{"choices":[{{"index":0,"message":{{"role":"assistant","content":"x","tool_calls":[
            {{"id":"1","type":"function","function":{{"name":"{TOOL}","arguments":"{{}}"}}}}]}},"finish_reason":"tool_calls"}}]}}"#
        );
        let reply = ChatReply::parse(body.as_bytes()).unwrap();
        let reply = without_calls(Reply { model: "m".into(), usage: Default::default(), reply }).reply;
        assert!(reply.tool_calls.is_empty() && !String::from_utf8(reply.to_bytes()).unwrap().contains(TOOL));
        assert_eq!(reply.finish_reason.as_deref(), Some("stop"));
    }
}
