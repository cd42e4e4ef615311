//! Log-probabilities of a reply's tokens: asking for them, reading them, choosing those that count, and hiding them
//! again. It knows no confidence.
//!
//! **Invariant:** every number that leaves this file is finite, and what was not computed is no evidence (case A22).

use super::evidence::NoEvidence;
use chorus_spec::TokenFilter;
use chorus_wire::{ChatReply, ChatRequest, ToolCall};
use serde::Deserialize;
use serde_json::Value;

/// Least log-probability. Backends write −9999 or null for −∞, and one such token must not outweigh a whole answer.
const LEAST: f64 = -20.0;
/// Alternatives a margin needs; they also tell a certain token from a placeholder.
const ALTERNATIVES: u64 = 2;

/// One token.
#[derive(Debug, Clone)]
pub(super) struct Token {
    text: String,
    /// In −20..=0.
    pub(super) logprob: f64,
    /// Distance of the best two alternatives, at least 0; `None` where there are not two.
    pub(super) gap: Option<f64>,
}

#[derive(Deserialize)]
struct ChoiceWire {
    logprobs: Option<LogprobsWire>,
}

#[derive(Deserialize)]
struct LogprobsWire {
    content: Option<Vec<TokenWire>>,
}

#[derive(Deserialize)]
struct TokenWire {
    #[serde(default)]
    token: String,
    logprob: Option<f64>,
    top_logprobs: Option<Vec<AlternativeWire>>,
}

#[derive(Deserialize)]
struct AlternativeWire {
    logprob: Option<f64>,
}

/// Adds log-probabilities to a request; a client that wants more alternatives gets them.
pub(crate) fn ask_for(ask: &mut ChatRequest) {
    let own = alternatives_asked(ask).unwrap_or_default();
    ask.set("logprobs", &true);
    ask.set("top_logprobs", &own.max(ALTERNATIVES));
}

/// Takes out of a reply what `ask`, the client's own request, did not ask for.
pub(crate) fn hide(ask: &ChatRequest, reply: &mut ChatReply) {
    let asked = alternatives_asked(ask);
    let Ok(Some(mut choices)) = reply.body().read::<Vec<Value>>("choices") else {
        return;
    };
    for fields in choices.iter_mut().filter_map(Value::as_object_mut) {
        match (asked, fields.get_mut("logprobs")) {
            (_, None) => {}
            (None, Some(logprobs)) => *logprobs = Value::Null,
            (Some(count), Some(logprobs)) => shorten(logprobs, count),
        }
    }
    reply.set("choices", &choices);
}

/// Alternatives a token that the client asked for; `None` when it asked for no log-probabilities.
fn alternatives_asked(ask: &ChatRequest) -> Option<u64> {
    let wants = ask.body().read::<Option<bool>>("logprobs").ok().flatten().flatten();
    let count = ask.body().read::<Option<u64>>("top_logprobs").ok().flatten().flatten();
    wants.filter(|wants| *wants).map(|_| count.unwrap_or_default())
}

fn shorten(logprobs: &mut Value, count: u64) {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let tokens = logprobs.get_mut("content").and_then(Value::as_array_mut).into_iter().flatten();
    for alternatives in tokens.filter_map(|token| token.get_mut("top_logprobs")?.as_array_mut()) {
        alternatives.truncate(count);
    }
}

/// The tokens of the first choice that count; at least one.
///
/// # Errors
/// [`NoEvidence::NoLogprobs`], [`NoEvidence::Placeholder`].
pub(super) fn read(reply: &ChatReply, filter: TokenFilter) -> Result<Vec<Token>, NoEvidence> {
    let choices = reply.body().read::<Vec<ChoiceWire>>("choices").ok().flatten();
    let first = choices.and_then(|choices| choices.into_iter().next());
    let wire = first.and_then(|choice| choice.logprobs?.content).unwrap_or_default();
    if wire.iter().all(|token| token.logprob.is_none()) {
        return Err(NoEvidence::NoLogprobs);
    }
    let tokens: Vec<Token> = wire.into_iter().map(token).collect();
    if tokens.iter().all(|t| t.logprob == 0.0 && t.gap.is_none_or(|gap| gap == 0.0)) {
        return Err(NoEvidence::Placeholder);
    }
    Ok(match filter {
        TokenFilter::All => tokens,
        TokenFilter::ToolCallArgs => of_arguments(tokens, &reply.tool_calls),
    })
}

fn token(wire: TokenWire) -> Token {
    let mut top: Vec<f64> = wire.top_logprobs.into_iter().flatten().map(|a| bounded(a.logprob)).collect();
    top.sort_by(|a, b| b.total_cmp(a));
    let gap = top.first().zip(top.get(1)).map(|(first, second)| first - second);
    Token { text: wire.token, logprob: bounded(wire.logprob), gap }
}

fn bounded(logprob: Option<f64>) -> f64 {
    logprob.filter(|l| !l.is_nan()).map_or(LEAST, |l| l.clamp(LEAST, 0.0))
}

/// The tokens that spell arguments of tool calls and say something: a letter or a digit, not only punctuation. All
/// tokens where none are found. White space is not compared, because backends write JSON anew.
fn of_arguments(tokens: Vec<Token>, calls: &[ToolCall]) -> Vec<Token> {
    let mut spelled = String::new();
    let mut owner = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        for c in token.text.chars().filter(|c| !c.is_whitespace()) {
            spelled.push(c);
            owner.extend(std::iter::repeat_n(at, c.len_utf8()));
        }
    }
    let mut counts = vec![false; tokens.len()];
    let mut from = 0;
    for call in calls {
        let arguments: String = call.arguments.chars().filter(|c| !c.is_whitespace()).collect();
        let Some(at) = spelled.get(from..).and_then(|rest| rest.find(&arguments)) else {
            continue;
        };
        let (start, end) = (from + at, from + at + arguments.len());
        for owner in owner.get(start..end).into_iter().flatten() {
            if let Some(counted) = counts.get_mut(*owner) {
                *counted = true;
            }
        }
        from = end;
    }
    let says = |token: &Token| token.text.chars().any(char::is_alphanumeric);
    let kept: Vec<Token> = tokens
        .iter()
        .zip(&counts)
        .filter(|(t, counted)| **counted && says(t))
        .map(|(t, _)| t.clone())
        .collect();
    if kept.is_empty() { tokens } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_wire::RequestLimits;
    use serde_json::json;

    fn reply(message: &Value, tokens: &Value) -> ChatReply {
        let choice = json!({ "index": 0, "message": message, "logprobs": { "content": tokens } });
        ChatReply::parse(json!({ "choices": [choice] }).to_string().as_bytes()).unwrap()
    }

    fn text(tokens: &Value) -> Result<Vec<Token>, NoEvidence> {
        read(&reply(&json!({ "role": "assistant", "content": "x" }), tokens), TokenFilter::All)
    }

    fn ask(fields: &str) -> ChatRequest {
        let body = format!(r#"{{"model":"m","messages":[{{"role":"user","content":"q"}}]{fields}}}"#);
        ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
    }

    #[test]
    fn a22_odd_numbers_are_bounded() {
        let tokens = text(&json!([
            { "token": "a", "logprob": -0.1 },
            { "token": "b", "logprob": null },
            { "token": "c", "logprob": -9999.0 },
            { "token": "d", "logprob": 0.5 },
        ]));
        let values: Vec<f64> = tokens.unwrap().iter().map(|t| t.logprob).collect();
        assert_eq!(values, [-0.1, LEAST, LEAST, 0.0]);
    }

    #[test]
    fn what_was_not_computed_is_no_evidence() {
        for (tokens, want) in [
            (json!([]), NoEvidence::NoLogprobs),
            (json!(null), NoEvidence::NoLogprobs),
            (json!([{ "token": "a", "logprob": null }]), NoEvidence::NoLogprobs),
            (json!([{ "token": "a", "logprob": "high" }]), NoEvidence::NoLogprobs),
            (
                json!([{ "token": "a", "logprob": 0.0 }, { "token": "b", "logprob": 0 }]),
                NoEvidence::Placeholder,
            ),
        ] {
            assert_eq!(text(&tokens).err(), Some(want), "{tokens}");
        }
        let certain = json!([{ "token": "a", "logprob": 0.0, "top_logprobs": [{ "logprob": 0.0 }, { "logprob": -19.5 }] }]);
        assert_eq!(text(&certain).unwrap()[0].gap, Some(19.5));
    }

    #[test]
    fn arguments_of_tool_calls_are_found_by_their_text() {
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [
            { "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"city\": \"Oslo\"}" } },
        ] });
        let spelled = ["<tool_call>", "f", "{\"", "city", "\":", " \"", "Os", "lo", "\"}", "</tool_call>"];
        let tokens: Vec<Value> = spelled.iter().map(|t| json!({ "token": t, "logprob": -1.0 })).collect();
        let kept = read(&reply(&message, &json!(tokens)), TokenFilter::ToolCallArgs).unwrap();
        assert_eq!(kept.iter().map(|t| t.text.as_str()).collect::<Vec<_>>(), ["city", "Os", "lo"]);
        let all =
            read(&reply(&json!({ "content": "x" }), &json!(tokens)), TokenFilter::ToolCallArgs).unwrap();
        assert_eq!(all.len(), spelled.len());
    }

    #[test]
    fn the_client_sees_what_it_asked_for() {
        let token = json!({ "token": "a", "logprob": -1.0, "top_logprobs": [{ "logprob": -1.0 }, { "logprob": -2.0 }] });
        for (fields, asked, shown) in [
            ("", 2, json!(null)),
            (r#","logprobs":false,"top_logprobs":null"#, 2, json!(null)),
            (
                r#","logprobs":true"#,
                2,
                json!({ "content": [{ "token": "a", "logprob": -1.0, "top_logprobs": [] }] }),
            ),
            (r#","logprobs":true,"top_logprobs":5"#, 5, json!({ "content": [token] })),
        ] {
            let client = ask(fields);
            let mut member = client.clone();
            ask_for(&mut member);
            assert_eq!(member.body().read::<u64>("top_logprobs").unwrap(), Some(asked), "{fields}");
            let mut reply = reply(&json!({ "content": "a" }), &json!([token]));
            hide(&client, &mut reply);
            let choices = reply.body().read::<Value>("choices").unwrap().unwrap();
            assert_eq!(choices[0]["logprobs"], shown, "{fields}");
        }
    }
}
