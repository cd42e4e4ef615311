//! A configuration as a document: for showing it, patching it and writing it back.
//!
//! It knows no key of the contract but those that hold credentials. Scalars keep the text that their author wrote:
//! `no`, `1e3` and `0.30` leave as they came, which no round trip through numbers and truth values would give.
//! Comments and anchors are not part of a document; [`Document::rewrite`] keeps those of the text that it came from.
//!
//! **Invariant:** reading what [`Document::to_yaml`] wrote gives the same document.

mod items;
mod layout;
mod mask;
mod rewrite;
mod write;

use super::report::Report;
use super::yaml::{self, Entry, Kind, Node};
use crate::{Diagnostic, Place};
use serde_json::{Map, Number, Value};

pub use mask::MASK;

/// A configuration as a document.
#[derive(Debug, Clone)]
pub struct Document(Node);

impl Document {
    /// Reads YAML, of which JSON is a part.
    ///
    /// # Errors
    /// Why the text is not YAML, or which keys stand twice.
    pub fn parse(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let report = Report::default();
        let root = yaml::parse(text, &report);
        match root {
            Some(root) if !report.has_errors() => Ok(Self(root)),
            _ => Err(report.into_sorted()),
        }
    }

    /// Takes a tree over.
    pub(crate) fn of_node(root: Node) -> Self {
        Self(root)
    }

    /// The tree.
    pub(crate) fn root(&self) -> &Node {
        &self.0
    }

    /// Takes a JSON value over.
    #[must_use]
    pub fn of_json(value: &Value) -> Self {
        Self(node(value))
    }

    /// The document as JSON: bare scalars that JSON has (numbers, `true`, `false`, nothing) become those.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json(&self.0)
    }

    /// Where the value of a dotted path such as `components[0].name` was written; of a path that leads to nothing, where
    /// the last value on the way was.
    #[must_use]
    pub fn place_of(&self, path: &str) -> Place {
        let mut at = &self.0;
        for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
            let next = match &at.kind {
                Kind::Seq(items) => step.strip_suffix(']').and_then(|n| items.get(n.parse::<usize>().ok()?)),
                _ => at.entry(step).map(|it| &it.value),
            };
            match next {
                Some(next) => at = next,
                None => break,
            }
        }
        at.place
    }

    /// Puts another text in the place of each text for which `replace` has one.
    pub fn replace_texts(&mut self, replace: &mut dyn FnMut(&str) -> Option<String>) {
        replace_texts(&mut self.0, replace);
    }

    /// Changes what the patch names and nothing else: a mapping is merged key by key, `null` removes a key, anything
    /// else (a list too) replaces what was there. Source: RFC 7386.
    pub fn merge(&mut self, patch: &Value) {
        merge(&mut self.0, patch);
    }

    /// The document as YAML in block style, without comments.
    #[must_use]
    pub fn to_yaml(&self) -> String {
        write::yaml(&self.0)
    }

    /// The document with every literal credential replaced by [`MASK`]; `${NAME}` stays.
    #[must_use]
    pub fn masked(&self) -> Self {
        let mut root = self.0.clone();
        mask::hide(&mut root, "");
        Self(root)
    }

    /// Where the document holds [`MASK`] in place of a credential, as dotted paths: what was shown, sent back.
    #[must_use]
    pub fn masks(&self) -> Vec<String> {
        let mut found = Vec::new();
        mask::find(&self.0, "", "", &mut found);
        found
    }
}

fn scalar(text: impl Into<String>, plain: bool) -> Node {
    Node { place: Place::default(), kind: Kind::Scalar { text: text.into(), plain } }
}

fn node(value: &Value) -> Node {
    let kind = match value {
        Value::Null => return scalar("null", true),
        Value::Bool(truth) => return scalar(truth.to_string(), true),
        Value::Number(number) => return scalar(number.to_string(), true),
        Value::String(text) => return scalar(text, false),
        Value::Array(items) => Kind::Seq(items.iter().map(node).collect()),
        Value::Object(fields) => {
            Kind::Map(fields.iter().map(|(key, value)| entry(key, node(value))).collect())
        }
    };
    Node { place: Place::default(), kind }
}

fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), place: Place::default(), value }
}

/// A value as JSON; its variables are as written.
pub(super) fn json(node: &Node) -> Value {
    match &node.kind {
        Kind::Map(entries) => {
            Value::Object(entries.iter().map(|e| (e.key.clone(), json(&e.value))).collect::<Map<_, _>>())
        }
        Kind::Seq(items) => items.iter().map(json).collect(),
        Kind::Scalar { .. } if node.is_null() => Value::Null,
        Kind::Scalar { text, plain: false } => Value::String(text.clone()),
        Kind::Scalar { text, plain: true } => bare(text),
    }
}

/// What JSON makes of bare text: a number only where it has the very same text.
fn bare(text: &str) -> Value {
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        _ => match text.parse::<Number>() {
            Ok(number) if number.to_string() == text => Value::Number(number),
            _ => Value::String(text.to_owned()),
        },
    }
}

fn merge(target: &mut Node, patch: &Value) {
    let Value::Object(fields) = patch else {
        *target = node(patch);
        return;
    };
    if !matches!(target.kind, Kind::Map(_)) {
        target.kind = Kind::Map(Vec::new());
    }
    let Kind::Map(entries) = &mut target.kind else { return };
    for (key, value) in fields {
        if value.is_null() {
            entries.retain(|e| e.key != *key);
            continue;
        }
        match entries.iter_mut().find(|e| e.key == *key) {
            Some(entry) => merge(&mut entry.value, value),
            None => {
                let mut fresh = scalar("null", true);
                merge(&mut fresh, value);
                entries.push(entry(key, fresh));
            }
        }
    }
}

fn replace_texts(node: &mut Node, replace: &mut dyn FnMut(&str) -> Option<String>) {
    match &mut node.kind {
        Kind::Map(entries) => entries.iter_mut().for_each(|it| replace_texts(&mut it.value, replace)),
        Kind::Seq(items) => items.iter_mut().for_each(|it| replace_texts(it, replace)),
        Kind::Scalar { text, plain } => {
            if let Some(other) = replace(text) {
                (*text, *plain) = (other, false);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> Document {
        Document::parse(text).unwrap_or_else(|faults| panic!("{faults:?}"))
    }

    /// The examples of RFC 7386, appendix A, that are mappings or become one.
    #[test]
    fn patches_merge_as_the_rfc_says() {
        for (original, patch, want) in [
            (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
            (json!({"a": "b"}), json!({"a": null}), json!({})),
            (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
            (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
            (json!({"a": "c"}), json!({"a": ["b"]}), json!({"a": ["b"]})),
            (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
            (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
            (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
            (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
            (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
            (json!({"a": "foo"}), json!("bar"), json!("bar")),
        ] {
            let mut document = Document::of_json(&original);
            document.merge(&patch);
            assert_eq!(document.to_json(), want, "{original} with {patch}");
        }
    }

    #[test]
    fn a_path_leads_to_its_place_and_texts_can_be_replaced() {
        let mut document = read("a:\n  - b: x\n    c: 1\n  - d\n");
        let place = |path: &str| (document.place_of(path).line, document.place_of(path).column);
        assert_eq!((place("a[0].c"), place("a[1]"), place("a[0].nothing")), ((3, 8), (4, 5), (2, 5)));
        document.replace_texts(&mut |text| (text == "x").then(|| "y".to_owned()));
        assert_eq!(document.to_json(), json!({"a": [{"b": "y", "c": 1}, "d"]}));
    }

    #[test]
    fn h04_scalars_leave_as_they_came() {
        let text = "keywords: [no, yes, 1e3, 0.30, 08, 1_000, 911, '12', true, 'true', ~, 2024-01-01]\n";
        let mut document = read(text);
        document.merge(&json!({"description": "no"}));
        let want = "keywords:\n  - no\n  - yes\n  - 1e3\n  - 0.30\n  - 08\n  - 1_000\n  - 911\n  - \"12\"\n  - true\n  \
                    - \"true\"\n  - null\n  - 2024-01-01\ndescription: \"no\"\n";
        assert_eq!(document.to_yaml(), want);
        assert_eq!(
            document.to_json()["keywords"][3],
            json!("0.30"),
            "a number whose text would change stays text"
        );
    }
}
