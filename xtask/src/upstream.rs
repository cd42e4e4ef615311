//! `cargo xtask upstream`: a scripted backend for `examples/deep-research.yaml`. It says what it is; it thinks nothing.
//!
//! As a panel member it gives an opinion under its model's name; as a judge it gives an analysis; offered tools, it
//! calls `web_search` once and answers when the result is there.

use crate::{clients, say};
use anyhow::Context;
use chorus_testkit::{ChatAnswer, Received, Script, ScriptedUpstream};
use serde_json::{Value, json};
use std::time::Duration;

/// Between two pieces of a streamed answer.
const GAP: Duration = Duration::from_millis(20);

/// Serves until it is stopped.
pub(crate) fn run(words: &[&str]) -> anyhow::Result<()> {
    let port: u16 = match words {
        [] => 9101,
        ["--port", port] => port.parse().context("--port takes a number")?,
        _ => anyhow::bail!("usage: cargo xtask upstream [--port N]"),
    };
    tokio::runtime::Runtime::new()?.block_on(async {
        let upstream = ScriptedUpstream::start_on(([127, 0, 0, 1], port).into()).await?;
        upstream.otherwise(script);
        say(&format!("a scripted backend listens on {}; stop it with Ctrl-C", upstream.base_url()));
        tokio::signal::ctrl_c().await?;
        Ok(())
    })
}

fn script(request: &Received) -> Script {
    if request.model.starts_with(clients::PREFIX) {
        return clients::script(request);
    }
    Script::chat(answer(request)).gap(GAP)
}

fn answer(request: &Received) -> ChatAnswer {
    let body = request.json();
    let model = body.get("model").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    // The judge is asked in one message of its own; the writer gets the conversation and the analysis behind it.
    if messages(&body).count() == 1 && request.last_user_text().contains("blind_spots") {
        return ChatAnswer::text(&analysis().to_string()).usage(400, 80);
    }
    let offered = body.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let answered = last_role(&body) == Some("tool") || history_has_result(&body);
    if offered && !answered {
        return ChatAnswer::text("")
            .tool_call("call_1", "web_search", r#"{"query":"the question"}"#)
            .usage(120, 20);
    }
    let pieces =
        ["This is a scripted answer of ", model.as_str(), ". It stands for what the model would say."];
    ChatAnswer::pieces(pieces).usage(100, 24)
}

fn analysis() -> Value {
    json!({
        "consensus": ["All answers are scripted."],
        "contradictions": [],
        "partial_coverage": [{"models": ["google/gemini-3-flash-preview"], "point": "It names itself first."}],
        "unique_insights": [{"model": "deepseek/deepseek-v4-pro", "insight": "It names itself last."}],
        "blind_spots": ["None of them has read the question."],
    })
}

fn messages(body: &Value) -> impl DoubleEndedIterator<Item = &Value> {
    body.get("messages").and_then(Value::as_array).into_iter().flatten()
}

fn last_role(body: &Value) -> Option<&str> {
    messages(body).next_back()?.get("role")?.as_str()
}

/// The synthesis prompt stands behind the tool's result.
fn history_has_result(body: &Value) -> bool {
    messages(body).any(|message| message.get("role").and_then(Value::as_str) == Some("tool"))
}
