//! A workflow that waits for a tool while Chorus is killed.

use crate::line::{End, Line, Told};
use anyhow::{Context, ensure};
use chorus_testkit::{ChatAnswer, Received, Script};
use serde_json::{Value, json};

/// A request whose tool call waits for its result.
pub(super) struct Paused(Value);

/// The worker calls the tool once; whoever sees a result answers.
pub(super) fn script(request: &Received) -> Script {
    let body = request.json();
    let offered = body.get("tools").is_some();
    let seen = body.to_string().contains("noon");
    if offered && !seen {
        return Script::chat(ChatAnswer::text("").tool_call("call_tide", "tide", "{}").usage(20, 5));
    }
    Script::reply("High tide is at noon.")
}

/// Begins one; the tool call has been handed over then, and its state is kept.
pub(super) async fn begin(port: u16) -> anyhow::Result<Paused> {
    let tool = json!({"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}});
    let question = json!({"role": "user", "content": "Say step by step: when is high tide?"});
    let mut request = json!({"model": "vllm-sr/auto", "messages": [question], "tools": [tool]});
    let message = message(&ask(port, &request).await?)?;
    let call = message.pointer("/tool_calls/0/id").and_then(Value::as_str);
    let call = call.with_context(|| format!("the workflow did not call its tool: {message}"))?.to_owned();
    let messages = request.get_mut("messages").and_then(Value::as_array_mut).context("no messages")?;
    messages.push(message);
    messages.push(json!({"role": "tool", "tool_call_id": call, "content": "noon"}));
    Ok(Paused(request))
}

/// Goes on with it.
pub(super) async fn resume(port: u16, paused: Paused) -> anyhow::Result<()> {
    let message = message(&ask(port, &paused.0).await?)?;
    let text = message.get("content").and_then(Value::as_str).unwrap_or_default();
    ensure!(text.contains("noon"), "the workflow did not go on: {message}");
    Ok(())
}

async fn ask(port: u16, request: &Value) -> anyhow::Result<Told> {
    Line::to(port).ask(request.to_string(), false).await
}

fn message(told: &Told) -> anyhow::Result<Value> {
    ensure!(told.end == End::Whole, "the workflow failed: {}", String::from_utf8_lossy(&told.body));
    let body: Value = serde_json::from_slice(&told.body)?;
    Ok(body.pointer("/choices/0/message").cloned().unwrap_or_default())
}
