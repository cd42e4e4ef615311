//! Fields of a stream that this crate does not read, put together as clients put them together.
//!
//! It knows no field by what it means. **Invariant:** what came in one piece is kept as that piece; news of a delta is
//! appended to what came before, news beside it replaces what came before.
//!
//! Source: the accumulation of deltas in OpenAI's own client libraries: texts are joined, objects merged, lists joined,
//! elements of a list that have an `index` merged with the one of that index.

use crate::body::RawObject;
use crate::raw::{Raw, raw_or_null};
use serde_json::{Map, Value};

/// Fields of one object, as they grow.
#[derive(Debug, Default, Clone)]
pub(crate) struct Extras(Map<String, Value>);

/// Words that are told once, or again with every piece.
const TOLD_AGAIN: [&str; 5] = ["id", "type", "role", "index", "format"];

impl Extras {
    /// Takes what stands beside a delta: the latest counts.
    pub(crate) fn replace(&mut self, object: &RawObject, known: &[&str]) {
        for (key, raw) in object.iter().filter(|(key, _)| !known.contains(key)) {
            if let Ok(value) = serde_json::from_str::<Value>(raw.get()) {
                let is_news = !value.is_null() || !self.0.contains_key(key);
                if is_news {
                    self.0.insert(key.to_owned(), value);
                }
            }
        }
    }

    /// Takes the news of a delta: appended.
    pub(crate) fn append(&mut self, object: &RawObject, known: &[&str]) {
        for (key, raw) in object.iter().filter(|(key, _)| !known.contains(key)) {
            if let Ok(value) = serde_json::from_str::<Value>(raw.get()) {
                grow(&mut self.0, key, value);
            }
        }
    }

    /// Writes them behind the fields of an object.
    pub(crate) fn write(&self, object: &mut RawObject) {
        for (key, value) in &self.0 {
            let raw: Raw = raw_or_null(value);
            object.set(key, raw);
        }
    }
}

fn grow(fields: &mut Map<String, Value>, key: &str, news: Value) {
    match (fields.get_mut(key), news) {
        (None, news) => {
            fields.insert(key.to_owned(), news);
        }
        (Some(_), Value::Null) => {}
        (Some(Value::String(text)), Value::String(more)) if !TOLD_AGAIN.contains(&key) => {
            text.push_str(&more);
        }
        (Some(Value::Object(have)), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| grow(have, &key, value));
        }
        (Some(Value::Array(have)), Value::Array(more)) => more.into_iter().for_each(|it| join(have, it)),
        (Some(have), news) => *have = news,
    }
}

/// An element that has the index of another is more of it.
fn join(list: &mut Vec<Value>, news: Value) {
    let index = news.get("index").cloned();
    let known = index.and_then(|index| list.iter_mut().find(|it| it.get("index") == Some(&index)));
    match (known, news) {
        (Some(Value::Object(have)), Value::Object(more)) => {
            more.into_iter().for_each(|(key, value)| grow(have, &key, value));
        }
        (_, news) => list.push(news),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grown(pieces: &[Value]) -> Value {
        let mut extras = Extras::default();
        for piece in pieces {
            extras.append(&RawObject::parse(piece.to_string().as_bytes()).unwrap(), &["known"]);
        }
        let mut object = RawObject::default();
        extras.write(&mut object);
        serde_json::from_slice(&object.to_bytes()).unwrap()
    }

    #[test]
    fn a07_deltas_grow_as_clients_let_them_grow() {
        let pieces = [
            json!({"known": 1, "refusal": "I ", "annotations": [{"type": "url_citation", "n": 1}], "x": null}),
            json!({"refusal": "won't", "annotations": [{"type": "url_citation", "n": 2}], "audio": {"id": "a", "data": "AA"}}),
            json!({"audio": {"id": "a", "data": "BB"}, "details": [{"index": 0, "type": "text", "text": "on"}], "x": 5}),
            json!({"details": [{"index": 0, "type": "text", "text": "ce"}, {"index": 1, "text": "two"}], "refusal": null}),
        ];
        let want = json!({
            "refusal": "I won't",
            "annotations": [{"type": "url_citation", "n": 1}, {"type": "url_citation", "n": 2}],
            "x": 5,
            "audio": {"id": "a", "data": "AABB"},
            "details": [{"index": 0, "type": "text", "text": "once"}, {"index": 1, "text": "two"}],
        });
        assert_eq!(grown(&pieces), want);
    }
}
