//! Keys: digests over everything that an answer depends on.
//!
//! It knows the fields of a request by what they do to an answer. **Invariant:** a field that it does not know is part of
//! the key, and two requests of one key differ in nothing but what [`IGNORED`] names (cases F01, F04).

use chorus_wire::{ChatRequest, Message, Role};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Fields that change how an answer travels or is billed, not what it says.
const IGNORED: [&str; 6] =
    ["stream", "stream_options", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention"];

/// Fields by which a client says whom it asks for. Nobody vouches for them, so they only ever keep answers apart.
const CLAIMED: [&str; 3] = ["user", "safety_identifier", "metadata"];

/// Whose answers a request may be given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose<'a> {
    /// Those of the same owner, by a name that somebody vouches for, or of nobody known.
    Of(Option<&'a str>),
    /// Everybody's.
    Everybody,
}

/// The keys of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keys {
    /// Of the very same request.
    pub exact: String,
    /// Of requests that differ in the wording of the last message alone; `None` where that is no user's text.
    pub alike: Option<Alike>,
}

/// What requests of the same meaning share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alike {
    /// The key of everything else.
    pub partition: String,
    /// The last user message.
    pub text: String,
}

/// The keys of a request among those of the same context: recipe, decision, models, revisions, by name.
#[must_use]
pub fn keys(request: &ChatRequest, whose: Whose<'_>, context: &[(&str, &str)]) -> Keys {
    let mut hash = Hash::new();
    for (name, value) in context {
        hash.text(name);
        hash.text(value);
    }
    match whose {
        Whose::Everybody => hash.text("everybody"),
        Whose::Of(None) => hash.text("nobody known"),
        Whose::Of(Some(owner)) => {
            hash.text("owner");
            hash.text(owner);
        }
    }
    fields(request, whose, &mut hash);
    let (earlier, last) = match request.messages().split_last() {
        Some((last, earlier)) => (earlier, Some(last)),
        None => (&[][..], None),
    };
    earlier.iter().for_each(|message| hash.value(&value_of(message)));
    let alike = last.and_then(|message| {
        let rest = without_text(message)?;
        let mut hash = hash.clone();
        hash.value(&rest);
        Some(Alike { partition: hash.finish("alike"), text: message.text.clone() })
    });
    if let Some(last) = last {
        hash.value(&value_of(last));
    }
    Keys { exact: hash.finish("exact"), alike }
}

fn fields(request: &ChatRequest, whose: Whose<'_>, hash: &mut Hash) {
    let is_left_out = |key: &str| {
        key == "messages" || IGNORED.contains(&key) || (whose == Whose::Everybody && CLAIMED.contains(&key))
    };
    let mut fields: Vec<(&str, Value)> = request
        .body()
        .iter()
        .filter(|(key, _)| !is_left_out(key))
        .map(|(key, raw)| (key, serde_json::from_str(raw.get()).unwrap_or_default()))
        // A parameter that is null counts as absent.
        .filter(|(_, value): &(&str, Value)| !value.is_null())
        .collect();
    fields.sort_by_key(|(key, _)| *key);
    for (key, value) in fields {
        hash.text(key);
        hash.value(&value);
    }
}

fn value_of(message: &Message) -> Value {
    serde_json::from_str(message.raw().get()).unwrap_or_default()
}

/// A user's message without its text, which must be there.
fn without_text(message: &Message) -> Option<Value> {
    if message.role != Role::User || message.text.trim().is_empty() {
        return None;
    }
    let mut value = value_of(message);
    match value.get_mut("content")? {
        Value::String(text) => text.clear(),
        Value::Array(parts) => {
            for text in parts.iter_mut().filter_map(|part| part.get_mut("text")) {
                *text = Value::String(String::new());
            }
        }
        _ => return None,
    }
    Some(value)
}

/// A digest over texts and values, each with its length or its kind before it, so that no two sequences run together.
#[derive(Clone)]
struct Hash(Sha256);

impl Hash {
    fn new() -> Self {
        Self(Sha256::new())
    }

    fn text(&mut self, text: &str) {
        self.0.update((text.len() as u64).to_le_bytes());
        self.0.update(text.as_bytes());
    }

    /// Objects in the order of their keys; numbers by value, so that `1` is `1.0`.
    fn value(&mut self, value: &Value) {
        match value {
            Value::Null => self.0.update(b"z"),
            Value::Bool(is) => self.0.update(if *is { b"t" } else { b"f" }),
            Value::Number(number) => {
                self.0.update(b"n");
                match number.as_f64() {
                    Some(float) if float.abs() < 9e15 => self.0.update((float + 0.0).to_le_bytes()),
                    _ => self.text(&number.to_string()),
                }
            }
            Value::String(text) => {
                self.0.update(b"s");
                self.text(text);
            }
            Value::Array(items) => {
                self.0.update(b"a");
                self.0.update((items.len() as u64).to_le_bytes());
                items.iter().for_each(|item| self.value(item));
            }
            Value::Object(fields) => {
                self.0.update(b"o");
                self.0.update((fields.len() as u64).to_le_bytes());
                let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
                fields.sort_by_key(|(key, _)| *key);
                for (key, value) in fields {
                    self.text(key);
                    self.value(value);
                }
            }
        }
    }

    fn finish(mut self, kind: &str) -> String {
        self.text(kind);
        hex::encode(self.0.finalize())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: &str = r#"{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"Hello there"}]"#;

    fn of(text: &str) -> Keys {
        let request = ChatRequest::parse(text.as_bytes(), &chorus_wire::RequestLimits::default()).unwrap();
        keys(&request, Whose::Of(None), &[("decision", "d")])
    }

    fn with(fields: &str) -> Keys {
        of(&format!("{PLAIN},{fields}}}"))
    }

    #[test]
    fn f04_every_field_that_changes_an_answer_changes_the_key() {
        let plain = of(&format!("{PLAIN}}}"));
        for fields in [
            r#""max_tokens":5"#,
            r#""max_completion_tokens":5"#,
            r#""temperature":0"#,
            r#""top_p":0.5"#,
            r#""seed":1"#,
            r#""n":2"#,
            r#""stop":["."]"#,
            r#""tool_choice":"none""#,
            r#""tools":[{"type":"function","function":{"name":"f"}}]"#,
            r#""response_format":{"type":"json_object"}"#,
            r#""logit_bias":{"1":1}"#,
            r#""logprobs":true"#,
            r#""reasoning_effort":"low""#,
            r#""chat_template_kwargs":{"enable_thinking":false}"#,
            r#""something_new":1"#,
            r#""user":"ada""#,
            r#""metadata":{"tenant":"t1"}"#,
        ] {
            let other = with(fields);
            assert_ne!(plain.exact, other.exact, "{fields}");
            assert_ne!(plain.alike, other.alike, "{fields}");
        }
        assert_ne!(with(r#""max_tokens":5"#).exact, with(r#""max_tokens":500"#).exact);
    }

    #[test]
    fn how_an_answer_travels_is_no_part_of_the_key() {
        let plain = of(&format!("{PLAIN}}}"));
        for fields in
            [r#""stream":true,"stream_options":{"include_usage":true}"#, r#""store":true"#, r#""stop":null"#]
        {
            assert_eq!(plain, with(fields), "{fields}");
        }
        assert_eq!(with(r#""temperature":0"#), with(r#""temperature":0.0"#));
        let a = r#""response_format":{"type":"json_object","x":1},"seed":2"#;
        let b = r#""seed":2,"response_format":{"x":1.0,"type":"json_object"}"#;
        assert_eq!(with(a), with(b));
    }

    #[test]
    fn only_the_wording_of_the_last_user_message_is_left_open() {
        let of_turns = |turns: &str| of(&format!(r#"{{"model":"m","messages":[{turns}]}}"#));
        let a = of_turns(
            r#"{"role":"user","content":"one"},{"role":"assistant","content":"x"},{"role":"user","content":"two"}"#,
        );
        let b = of_turns(
            r#"{"role":"user","content":"one"},{"role":"assistant","content":"x"},{"role":"user","content":"three"}"#,
        );
        let c = of_turns(
            r#"{"role":"user","content":"ONE"},{"role":"assistant","content":"x"},{"role":"user","content":"two"}"#,
        );
        let partition = |keys: &Keys| keys.alike.as_ref().map(|it| it.partition.clone());
        assert_eq!(partition(&a), partition(&b));
        assert_ne!(partition(&a), partition(&c));
        assert_ne!(a.exact, b.exact);
        let image = |url: &str| {
            of_turns(&format!(
                r#"{{"role":"user","content":[{{"type":"text","text":"what is it?"}},{{"type":"image_url","image_url":{{"url":"{url}"}}}}]}}"#
            ))
        };
        assert_ne!(partition(&image("data:a")), partition(&image("data:b")));
        let tool = r#"{"role":"user","content":"q"},{"role":"tool","tool_call_id":"c","content":"8"}"#;
        assert_eq!(of_turns(tool).alike, None);
    }

    #[test]
    fn f01_an_owner_and_a_context_keep_answers_apart() {
        let request = ChatRequest::parse(format!("{PLAIN}}}").as_bytes(), &Default::default()).unwrap();
        let all = [
            keys(&request, Whose::Of(None), &[("d", "a")]),
            keys(&request, Whose::Of(Some("t1")), &[("d", "a")]),
            keys(&request, Whose::Of(Some("t2")), &[("d", "a")]),
            keys(&request, Whose::Everybody, &[("d", "a")]),
            keys(&request, Whose::Of(None), &[("d", "b")]),
            keys(&request, Whose::Of(None), &[("da", "")]),
        ];
        for (at, one) in all.iter().enumerate() {
            for other in all.iter().skip(at + 1) {
                assert_ne!(one.exact, other.exact);
                assert_ne!(one.alike, other.alike);
            }
        }
    }

    proptest! {
        #[test]
        fn two_texts_of_one_exact_key_are_one_text(a in ".{0,24}", b in ".{0,24}") {
            let ask = |text: &str| ChatRequest::new("m", vec![Message::new(Role::User, text)]);
            let of = |text: &str| keys(&ask(text), Whose::Of(None), &[]).exact;
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }
    }
}
