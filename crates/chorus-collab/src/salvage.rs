//! Reads what a model meant as JSON: objects inside prose or fences, trailing commas, raw line breaks, and arrays or
//! objects that end too early. It knows no schema.
//!
//! **Invariant:** any text is read in bounded time and depth, and never panics.

use serde_json::{Map, Value};

/// Longest text that is read, in bytes; of a longer one the end counts, because the last object wins.
const MAX_TEXT_BYTES: usize = 256 << 10;
/// Most bytes that are read in vain, over all places where an object may begin; bounds the work on hostile text.
const MAX_VAIN_BYTES: usize = 4 << 20;
/// Deepest nesting.
const MAX_DEPTH: usize = 24;

/// Divides a text into a reasoning block at its beginning and the rest (case D21).
///
/// A block without an end is all reasoning: the model was cut off inside it. A lone `</think>` ends a block whose
/// beginning was part of the prompt.
#[must_use]
pub fn split_thinking(text: &str) -> (Option<&str>, &str) {
    let trimmed = text.trim();
    for (open, close) in [("<think>", "</think>"), ("<thinking>", "</thinking>")] {
        if let Some(inside) = trimmed.strip_prefix(open) {
            let (thought, rest) = inside.split_once(close).unwrap_or((inside, ""));
            return (Some(thought.trim()), rest.trim());
        }
        if let Some((thought, rest)) = trimmed.split_once(close).filter(|(before, _)| !before.contains(open))
        {
            return (Some(thought.trim()), rest.trim());
        }
    }
    (None, trimmed)
}

/// The objects of a text, in order, that `accept` takes; an object inside a taken one is not offered.
pub fn objects<T>(text: &str, accept: impl Fn(&Map<String, Value>) -> Option<T>) -> Vec<T> {
    let from = text.len().saturating_sub(MAX_TEXT_BYTES);
    let mut rest = text.get(text.ceil_char_boundary(from)..).unwrap_or_default();
    let mut found = Vec::new();
    let mut vain = 0;
    while let Some(at) = rest.find('{').filter(|_| vain < MAX_VAIN_BYTES) {
        rest = rest.get(at..).unwrap_or_default();
        let mut reader = Reader { rest, depth: 0 };
        match reader.object().and_then(|object| accept(&object)) {
            Some(object) => {
                found.push(object);
                rest = reader.rest;
            }
            None => {
                vain += rest.len() - reader.rest.len() + 1;
                rest = rest.get(1..).unwrap_or_default();
            }
        }
    }
    found
}

/// A forgiving reader: commas are optional, and the end of the text closes whatever is open.
struct Reader<'a> {
    rest: &'a str,
    depth: usize,
}

impl Reader<'_> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
    }

    fn take(&mut self, token: char) -> bool {
        match self.rest.strip_prefix(token) {
            Some(tail) => {
                self.rest = tail;
                true
            }
            None => false,
        }
    }

    fn enter(&mut self, token: char) -> Option<()> {
        self.depth += 1;
        (self.depth <= MAX_DEPTH && self.take(token)).then_some(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    fn object(&mut self) -> Option<Map<String, Value>> {
        self.enter('{')?;
        let mut object = Map::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.take('}') {
                break;
            }
            let key = self.string()?;
            self.skip();
            if self.rest.is_empty() {
                break;
            }
            if !self.take(':') {
                return None;
            }
            self.skip();
            if self.rest.is_empty() {
                break;
            }
            object.insert(key, self.value()?);
        }
        self.leave();
        Some(object)
    }

    fn array(&mut self) -> Option<Vec<Value>> {
        self.enter('[')?;
        let mut items = Vec::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.take(']') {
                break;
            }
            items.push(self.value()?);
        }
        self.leave();
        Some(items)
    }

    fn value(&mut self) -> Option<Value> {
        match self.rest.chars().next()? {
            '{' => self.object().map(Value::Object),
            '[' => self.array().map(Value::Array),
            '"' => self.string().map(Value::String),
            _ => self.word(),
        }
    }

    /// A number, `true`, `false` or `null`; one that the end of the text cut off is `null`.
    fn word(&mut self) -> Option<Value> {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let (word, tail) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = tail;
        match serde_json::from_str(word) {
            Ok(value) => Some(value),
            Err(_) => (tail.is_empty() && !word.is_empty()).then_some(Value::Null),
        }
    }

    /// A string up to its quote or the end of the text.
    fn string(&mut self) -> Option<String> {
        let inside = self.rest.strip_prefix('"')?;
        let mut escaped = false;
        let end = inside.find(|c: char| {
            let quote = c == '"' && !escaped;
            escaped = c == '\\' && !escaped;
            quote
        });
        let (text, tail) = inside.split_at(end.unwrap_or(inside.len()));
        self.rest = tail.strip_prefix('"').unwrap_or_default();
        Some(unescape(text))
    }
}

/// Resolves escapes; raw line breaks are allowed, and a text with a broken escape stays as written.
fn unescape(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if c < ' ' => {}
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    serde_json::from_str(&quoted).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(text: &str) -> Vec<Value> {
        objects(text, |object| Some(Value::Object(object.clone())))
    }

    #[test]
    fn d21_reasoning_at_the_beginning_is_divided_off() {
        for (text, thought, rest) in [
            ("<think>{maybe \"b\"}</think>\n{\"label\":\"a\"}", Some("{maybe \"b\"}"), "{\"label\":\"a\"}"),
            ("hm, {x}</think> done", Some("hm, {x}"), "done"),
            ("<thinking>a</thinking>b", Some("a"), "b"),
            ("<think>cut off", Some("cut off"), ""),
            ("Use <think> and </think> as tags.", None, "Use <think> and </think> as tags."),
            ("plain", None, "plain"),
        ] {
            assert_eq!(split_thinking(text), (thought, rest), "{text}");
        }
    }

    #[test]
    fn what_was_meant_is_read() {
        for (text, expect) in [
            ("```json\n{\"best\":2}\n```", r#"[{"best":2}]"#),
            ("Sure: {\"a\":[1,2,],} and {\"b\":true}.", r#"[{"a":[1,2]},{"b":true}]"#),
            ("{\"a\":[\"x\",\"y", r#"[{"a":["x","y"]}]"#),
            ("{\"a\":[{\"b\":\"c\"", r#"[{"a":[{"b":"c"}]}]"#),
            ("{\"a\":1,\"b", r#"[{"a":1}]"#),
            ("{\"a\":tru", r#"[{"a":null}]"#),
            ("{\"a\":\"line\nbreak \\\"q\\\" \\u00e9\"}", r#"[{"a":"line\nbreak \"q\" é"}]"#),
            ("{\"a\":\"{\\\"b\\\":1}\"}", r#"[{"a":"{\"b\":1}"}]"#),
            ("{not json} {\"a\":null}", r#"[{"a":null}]"#),
            ("no object", "[]"),
        ] {
            assert_eq!(serde_json::to_string(&all(text)).unwrap(), expect, "{text}");
        }
    }

    #[test]
    fn hostile_nesting_ends_at_the_bounds() {
        assert!(all(&"{\"a\":".repeat(100_000)).is_empty());
        assert!(all(&"{[".repeat(100_000)).is_empty());
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(?s).{0,200}|[\\[\\]{}\":,\\\\a-c0-9 \n]{0,200}") {
            let _ = all(&text);
            let (thought, rest) = split_thinking(&text);
            prop_assert!(thought.map_or(0, str::len) + rest.len() <= text.len());
        }

        #[test]
        fn json_is_read_as_json(keys in prop::collection::btree_map("[a-z]{1,6}", "(?s).{0,20}", 0..5)) {
            let text = serde_json::to_string(&keys).unwrap();
            prop_assert_eq!(all(&text), vec![serde_json::to_value(&keys).unwrap()]);
        }
    }

    #[test]
    fn a_cut_object_keeps_what_was_whole() {
        let text = r#"{"consensus":["one","two"],"blind_spots":["three","four"]}"#;
        for cut in 1..text.len() {
            let objects = all(text.get(..cut).unwrap());
            assert_eq!(objects.len(), 1, "{cut}");
            let consensus = objects[0].get("consensus").map(ToString::to_string);
            assert!(cut < 26 || consensus.as_deref() == Some(r#"["one","two"]"#), "{cut}");
        }
    }
}
