//! A YAML file under strict reading: every problem at once, each at its place.
//!
//! It knows no key of any file. **Invariant:** a getter that returns nothing for a value that is there has reported why.

use crate::mom::Decimal;
use chorus_spec::{Diagnostic, Document, Severity, code};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeSet;

/// One file with what was found in it.
pub(crate) struct Page {
    document: Document,
    value: Value,
    found: RefCell<Vec<Diagnostic>>,
}

impl Page {
    /// Opens a file.
    ///
    /// # Errors
    /// Why it is not YAML.
    pub(crate) fn open(text: &str) -> Result<Self, Vec<Diagnostic>> {
        let document = Document::parse(text)?;
        let value = document.to_json();
        Ok(Self { document, value, found: RefCell::default() })
    }

    /// The whole of it.
    pub(crate) fn root(&self) -> At<'_> {
        At { value: &self.value, path: String::new(), page: self }
    }

    /// What was found, by place.
    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        let mut found = self.found.into_inner();
        found.sort_by(|a, b| (a.place, a.code, &a.message).cmp(&(b.place, b.code, &b.message)));
        found
    }
}

/// A value of the page.
#[derive(Clone)]
pub(crate) struct At<'p> {
    value: &'p Value,
    path: String,
    page: &'p Page,
}

impl<'p> At<'p> {
    pub(crate) fn error(&self, code: &'static str, message: impl Into<String>, help: Option<&str>) {
        self.page.found.borrow_mut().push(Diagnostic {
            severity: Severity::Error,
            code,
            message: message.into(),
            help: help.map(str::to_owned),
            place: self.page.document.place_of(&self.path),
            path: self.path.clone(),
        });
    }

    fn child(&self, key: &str, value: &'p Value) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { value, path, page: self.page }
    }

    /// Reports keys other than these.
    pub(crate) fn only(&self, keys: &[&str]) {
        self.only_or(keys, &|_| None);
    }

    /// Reports keys other than these; of some it is known why they cannot stand here.
    pub(crate) fn only_or(&self, keys: &[&str], why: &dyn Fn(&str) -> Option<String>) {
        let Value::Object(fields) = self.value else {
            self.error(code::WRONG_TYPE, "expected a mapping", None);
            return;
        };
        for (key, value) in fields.iter().filter(|(key, _)| !keys.contains(&key.as_str())) {
            let message = why(key).unwrap_or_else(|| format!("`{key}` is not known here"));
            let help = format!("known here: {}", keys.join(", "));
            self.child(key, value).error(code::UNKNOWN_KEY, message, Some(&help));
        }
    }

    /// What stands under the key; nothing counts as absent.
    pub(crate) fn get(&self, key: &str) -> Option<Self> {
        self.value.get(key).filter(|it| !it.is_null()).map(|it| self.child(key, it))
    }

    /// The value under a key that must be there.
    pub(crate) fn needed(&self, key: &str) -> Option<Self> {
        let found = self.get(key);
        if found.is_none() && self.value.is_object() {
            self.error(code::MISSING_KEY, format!("`{key}` is missing"), None);
        }
        found
    }

    /// Keys and values of the mapping under the key.
    pub(crate) fn entries(&self, key: &str) -> Vec<(&'p str, Self)> {
        let Some(at) = self.get(key) else { return Vec::new() };
        match at.value {
            Value::Object(fields) => {
                fields.iter().map(|(key, it)| (key.as_str(), at.child(key, it))).collect()
            }
            _ => {
                at.error(code::WRONG_TYPE, "expected a mapping", None);
                Vec::new()
            }
        }
    }

    /// Items of the list under the key.
    pub(crate) fn items(&self, key: &str) -> Vec<Self> {
        let Some(at) = self.get(key) else { return Vec::new() };
        let Value::Array(items) = at.value else {
            at.error(code::WRONG_TYPE, "expected a list", None);
            return Vec::new();
        };
        let item = |(index, value)| Self { value, path: format!("{}[{index}]", at.path), page: at.page };
        items.iter().enumerate().map(item).collect()
    }

    /// Items that have a `name` each, no name twice.
    pub(crate) fn named(&self, key: &str, what: &str) -> Vec<(String, Self)> {
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for at in self.items(key) {
            let Some(name) = at.required("name") else { continue };
            if seen.insert(name.clone()) {
                all.push((name, at));
            } else {
                at.error(code::DUPLICATE_NAME, format!("there are two {what}s named `{name}`"), None);
            }
        }
        all
    }

    /// The value itself.
    pub(crate) fn value(&self) -> &'p Value {
        self.value
    }

    /// This value as text; a number counts as the text that it was written as.
    pub(crate) fn as_text(&self) -> Option<String> {
        let text = match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        };
        if text.is_none() {
            self.error(code::WRONG_TYPE, "expected text", None);
        }
        text
    }

    /// Optional text.
    pub(crate) fn text(&self, key: &str) -> Option<String> {
        self.get(key)?.as_text()
    }

    /// Text that must be there and not be blank.
    pub(crate) fn required(&self, key: &str) -> Option<String> {
        let text = self.needed(key)?.as_text()?;
        if text.trim().is_empty() {
            self.error(code::MISSING_KEY, format!("`{key}` is blank"), None);
            return None;
        }
        Some(text)
    }

    /// A list of texts; absent is empty.
    pub(crate) fn texts(&self, key: &str) -> Vec<String> {
        self.items(key).iter().filter_map(Self::as_text).collect()
    }

    /// Reports a word that is none of these.
    fn among(&self, text: String, words: &[&str]) -> Option<String> {
        if words.contains(&text.as_str()) {
            return Some(text);
        }
        let help = format!("one of {}", words.join(", "));
        self.error(code::BAD_VALUE, format!("`{text}` is not known here"), Some(&help));
        None
    }

    /// One of a few words.
    pub(crate) fn word(&self, key: &str, words: &[&str]) -> Option<String> {
        let at = self.get(key)?;
        at.among(at.as_text()?, words)
    }

    /// A list of such words.
    pub(crate) fn words(&self, key: &str, words: &[&str]) -> Vec<String> {
        self.items(key).iter().filter_map(|at| at.among(at.as_text()?, words)).collect()
    }

    /// An optional truth value.
    pub(crate) fn flag(&self, key: &str) -> Option<bool> {
        let at = self.get(key)?;
        if at.value.as_bool().is_none() {
            at.error(code::WRONG_TYPE, "expected `true` or `false`", None);
        }
        at.value.as_bool()
    }

    /// An optional whole number, at least `least`.
    pub(crate) fn whole(&self, key: &str, least: u64) -> Option<u64> {
        /// Greatest number that canonical JSON has exactly.
        const MOST: u64 = (1 << 53) - 1;
        let at = self.get(key)?;
        let number = at.value.as_u64().filter(|number| (least..=MOST).contains(number));
        if number.is_none() {
            at.error(code::BAD_RANGE, format!("expected a whole number, at least {least}"), None);
        }
        number
    }

    /// An optional decimal number, without sign or exponent.
    pub(crate) fn decimal(&self, key: &str) -> Option<Decimal> {
        let at = self.get(key)?;
        let number = Decimal::read(&at.as_text()?);
        if number.is_none() {
            at.error(code::WRONG_TYPE, "expected a decimal number such as `0.72`", None);
        }
        number
    }
}
