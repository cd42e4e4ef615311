//! The scripted backend behind the suites of the official clients (`acceptance/`): what a request says decides what it
//! gets. A word in brackets in the user's last message asks for trouble.

use chorus_testkit::{ChatAnswer, Received, Script, Step};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Models of this name are scripted here.
pub(crate) const PREFIX: &str = "clients/";

/// How long `[limited]` refuses, from the first time on that its text is seen.
const LIMITED_FOR: Duration = Duration::from_millis(1500);

/// How long `[slow]` says nothing.
const SLOW: Duration = Duration::from_secs(4);

/// Since when each limited text is refused.
static LIMITED: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());

/// What the backend does with a request.
pub(crate) fn script(request: &Received) -> Script {
    let text = request.last_user_text();
    let asks = |word: &str| text.contains(word);
    if asks("[limited]") && is_limited(&text) {
        return Script::error(429, "slow down").header("retry-after", "1");
    }
    if let Some(status) = text.split("[status ").nth(1).and_then(|rest| rest.get(..3)?.parse().ok()) {
        return Script::error(status, "as asked");
    }
    if asks("[break]") {
        let piece = chorus_testkit::openai::chunk("x", &json!({"content": "half of an ans"}));
        return Script::sse([Step::event(&piece.to_string())]);
    }
    let script = Script::chat(answer(&request.json(), &text));
    match () {
        () if asks("[slow]") => script.first(Step::Wait(SLOW)),
        () if asks("[endless]") => script.gap(Duration::from_millis(100)),
        () => script,
    }
}

fn is_limited(text: &str) -> bool {
    let mut limited = LIMITED.lock().unwrap_or_else(PoisonError::into_inner);
    limited.entry(text.to_owned()).or_insert_with(Instant::now).elapsed() < LIMITED_FOR
}

fn answer(body: &Value, text: &str) -> ChatAnswer {
    let messages = body.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let of_role = |role: &str| messages.iter().filter(|m| m.get("role") == Some(&json!(role))).count();
    let tool = body.pointer("/tools/0/function/name").and_then(Value::as_str);
    if let (Some(tool), 0) = (tool, of_role("tool")) {
        return ChatAnswer::text("")
            .tool_call("call_brest", tool, r#"{"city":"Brest"}"#)
            .tool_call("call_hull", tool, r#"{"city":"Hull"}"#)
            .usage(40, 20);
    }
    let answer = if of_role("tool") > 0 {
        ChatAnswer::text(&format!("{} results are in.", of_role("tool")))
    } else if body.get("response_format").is_some() {
        ChatAnswer::pieces([r#"{"city":"Brest","#, r#""degrees":8}"#])
    } else if images(messages) > 0 {
        ChatAnswer::text(&format!("I see {} image.", images(messages)))
    } else if text.contains("[endless]") {
        ChatAnswer::pieces((0..200).map(|n| format!("{n} ")))
    } else {
        ChatAnswer::pieces(["You said: ", text, "."])
    };
    let answer = if text.contains("[think]") { answer.reasoning("Let me think.") } else { answer };
    let answer = if text.contains("[long]") { answer.finish_reason("length") } else { answer };
    answer.usage(12, 6)
}

fn images(messages: &[Value]) -> usize {
    let parts =
        messages.iter().filter_map(|message| message.get("content").and_then(Value::as_array)).flatten();
    parts.filter(|part| part.get("type") == Some(&json!("image_url"))).count()
}
