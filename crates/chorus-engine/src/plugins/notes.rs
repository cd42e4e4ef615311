//! What plugins say of their work: for the record, for the client's headers, and what was given up.
//!
//! It knows no plugin. **Invariant:** the words here are ours: no text of a conversation stands among them, except in
//! [`Content`], which only a plugin that the operator asked to capture fills.

use chorus_store::Content;
use serde::Serialize;
use serde_json::{Map, Value};

/// What the plugins of one request did.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    did: Map<String, Value>,
    headers: Vec<(&'static str, String)>,
    warnings: Vec<String>,
    content: Option<Content>,
}

impl Notes {
    /// Adds fields to what a plugin did; it stands in the record's trace `plugins` under the plugin's type. Anything but
    /// an object replaces what was noted before.
    pub(crate) fn did(&mut self, plugin: &'static str, what: &impl Serialize) {
        let Ok(what) = serde_json::to_value(what) else { return };
        match (self.did.get_mut(plugin), what) {
            (Some(Value::Object(have)), Value::Object(more)) => have.extend(more),
            (_, what) => {
                self.did.insert(plugin.to_owned(), what);
            }
        }
    }

    /// A header of the answer, in lower case. It is sent with an answer that has not begun to leave.
    pub(crate) fn header(&mut self, name: &'static str, value: impl Into<String>) {
        self.headers.retain(|(have, _)| *have != name);
        self.headers.push((name, value.into()));
    }

    /// A word of `x-vsr-response-warnings`; it also marks the record as degraded.
    pub(crate) fn warn(&mut self, word: impl Into<String>) {
        let word = word.into();
        if !self.warnings.contains(&word) {
            self.warnings.push(word);
        }
    }

    /// Prompt and answer for the record, where the operator asked for them.
    pub(crate) fn capture(&mut self, content: Content) {
        self.content = Some(content);
    }

    /// The headers so far.
    pub(crate) fn headers(&self) -> &[(&'static str, String)] {
        &self.headers
    }

    /// The warnings so far.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The trace for the record, the warnings, and what was captured.
    pub(crate) fn into_record(self) -> (Option<Value>, Vec<String>, Option<Content>) {
        let trace = (!self.did.is_empty()).then_some(Value::Object(self.did));
        (trace, self.warnings, self.content)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_plugin_did_grows_field_by_field() {
        let mut notes = Notes::default();
        notes.did("a", &json!({"hit": false}));
        notes.did("a", &json!({"stored": true}));
        notes.did("b", &json!({}));
        notes.header("x-a", "1");
        notes.header("x-a", "2");
        notes.warn("once");
        notes.warn("once");
        assert_eq!(notes.headers(), [("x-a", "2".to_owned())]);
        let (trace, warnings, content) = notes.into_record();
        assert_eq!(trace, Some(json!({"a": {"hit": false, "stored": true}, "b": {}})));
        assert_eq!((warnings, content), (vec!["once".to_owned()], None));
    }
}
