//! Which answers are worth storing.
//!
//! **Invariant:** only a whole, good answer is: every choice ended of itself, and says something (cases F05, F08).

use chorus_wire::ChatReply;
use serde_json::Value;

/// Reasons by which an answer ends of itself.
const WHOLE: [&str; 3] = ["stop", "tool_calls", "function_call"];

/// Why an answer is not worth storing; `None` where it is.
pub(super) fn unfit(reply: &ChatReply) -> Option<&'static str> {
    let Ok(Some(choices)) = reply.body().read::<Vec<Value>>("choices") else { return Some("no choices") };
    if choices.is_empty() || !reply.is_usable() {
        return Some("empty");
    }
    let ends = |choice: &Value| {
        let reason = choice.get("finish_reason").and_then(Value::as_str).unwrap_or_default();
        WHOLE.contains(&reason) && choice.get("finish_reason_inferred").is_none()
    };
    (!choices.iter().all(ends)).then_some("not whole")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(choices: &str) -> Option<&'static str> {
        unfit(&ChatReply::parse(format!(r#"{{"choices":[{choices}]}}"#).as_bytes()).unwrap())
    }

    #[test]
    fn f05_only_a_whole_and_good_answer_is_stored() {
        let text = r#""message":{"role":"assistant","content":"x"}"#;
        let call = r#""message":{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]}"#;
        for (choice, fits) in [
            (format!(r#"{{{text},"finish_reason":"stop"}}"#), true),
            (format!(r#"{{{call},"finish_reason":"tool_calls"}}"#), true),
            (format!(r#"{{{text},"finish_reason":"length"}}"#), false),
            (format!(r#"{{{text},"finish_reason":"content_filter"}}"#), false),
            (format!(r#"{{{text},"finish_reason":null}}"#), false),
            (format!(r#"{{{text},"finish_reason":"stop"}},{{{text},"finish_reason":"length"}}"#), false),
            (r#"{"message":{"role":"assistant","content":" "},"finish_reason":"stop"}"#.to_owned(), false),
        ] {
            assert_eq!(of(&choice).is_none(), fits, "{choice}");
        }
    }
}
