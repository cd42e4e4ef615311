//! The texts of a request: below its messages, and below every field that is no word of the API.
//!
//! It knows the form of requests and nothing of what texts say.

use chorus_wire::ChatRequest;
use serde_json::Value;

/// Fields of a request that hold words of the API and no texts; messages are looked at on their own.
const PLAIN: [&str; 8] = [
    "model",
    "messages",
    "stream_options",
    "tool_choice",
    "function_call",
    "reasoning_effort",
    "service_tier",
    "modalities",
];
/// Keys whose texts are words of the API.
pub(super) const WORDS: [&str; 7] = ["role", "type", "id", "tool_call_id", "name", "url", "data"];
/// The field in which no key is one: its names are the client's own.
const METADATA: &str = "metadata";

/// A part of a request that holds texts.
pub(super) struct Part {
    pub(super) at: At,
    pub(super) value: Value,
    /// Whether it is another than it was.
    pub(super) changed: bool,
}

/// Where a part stands.
#[derive(PartialEq)]
pub(super) enum At {
    /// In the messages.
    Message(usize),
    /// Beside them.
    Field(String),
}

/// Every part of a request that may hold a text; `None` for one that cannot be read.
pub(super) fn parts(request: &ChatRequest) -> Option<Vec<Part>> {
    let mut all = Vec::with_capacity(request.messages().len());
    for (at, message) in request.messages().iter().enumerate() {
        let value = serde_json::from_str(message.raw().get()).ok()?;
        all.push(Part { at: At::Message(at), value, changed: false });
    }
    for (field, raw) in request.body().iter().filter(|(field, _)| !PLAIN.contains(field)) {
        let value: Value = serde_json::from_str(raw.get()).ok()?;
        all.push(Part { at: At::Field(field.to_owned()), value, changed: false });
    }
    Some(all)
}

impl Part {
    fn words(&self) -> &'static [&'static str] {
        if matches!(&self.at, At::Field(field) if field == METADATA) { &[] } else { &WORDS }
    }

    pub(super) fn texts<'t>(&'t self, into: &mut Vec<&'t str>) {
        texts_below(&self.value, self.words(), into);
    }

    pub(super) fn each_text(&mut self, change: &mut dyn FnMut(&str) -> String) {
        let (words, changed) = (self.words(), &mut self.changed);
        each_text(&mut self.value, words, &mut |text| {
            let next = change(text);
            *changed |= next != text;
            next
        });
    }
}

/// The texts that [`each_text`] changes, in its order.
pub(super) fn texts_below<'t>(value: &'t Value, words: &[&str], into: &mut Vec<&'t str>) {
    match value {
        Value::String(text) => into.push(text),
        Value::Array(items) => items.iter().for_each(|item| texts_below(item, words, into)),
        Value::Object(fields) => {
            for (_, value) in fields.iter().filter(|(key, value)| !is_word(key, value, words)) {
                texts_below(value, words, into);
            }
        }
        _ => {}
    }
}

/// Every text below a value that is no word of the API.
pub(super) fn each_text(value: &mut Value, words: &[&str], change: &mut dyn FnMut(&str) -> String) {
    match value {
        Value::String(text) => *text = change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, words, change)),
        Value::Object(fields) => {
            for (_, value) in fields.iter_mut().filter(|(key, value)| !is_word(key, value, words)) {
                each_text(value, words, change);
            }
        }
        _ => {}
    }
}

/// Whether a text is a word of the API: below a key of that name there may be texts of people, such as a schema's.
fn is_word(key: &str, value: &Value, words: &[&str]) -> bool {
    value.is_string() && words.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_of_the_api_stay_and_names_of_metadata_are_none() {
        let mail = "anna.berg@example.com";
        let part = |at, value| Part { at, value, changed: false };
        let field = |name: &str| At::Field(name.to_owned());
        let content = json!({"role": "user", "name": mail, "content": [{"type": "text", "text": mail}]});
        let message = part(At::Message(0), content);
        let schema =
            part(field("tools"), json!([{"name": mail, "properties": {"name": {"description": mail}}}]));
        let metadata = part(field("metadata"), json!({"name": mail, "id": mail}));
        for (mut part, count) in [(message, 1), (schema, 1), (metadata, 2)] {
            let mut texts = Vec::new();
            part.texts(&mut texts);
            let read = texts.iter().filter(|text| **text == mail).count();
            let mut changed = 0;
            part.each_text(&mut |text| {
                changed += usize::from(text == mail);
                String::new()
            });
            assert_eq!((read, changed, part.changed), (count, count, true), "{}", part.value);
        }
    }
}
