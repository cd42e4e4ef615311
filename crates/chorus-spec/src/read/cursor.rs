//! A value of the tree together with its path and the report: typed reading that never stops at the first problem.
//!
//! It knows no key of the contract. **Invariant:** a getter that returns `None` for a value that is there has
//! reported why; wrong shapes of whole mappings and lists are reported by the contract check, once.

use super::nearest::suggest;
use super::quantity;
use super::report::Report;
use super::yaml::{Kind, Node};
use crate::diagnostic::{code, is_secret_path};
use crate::{Diagnostic, NumericPredicate, Place, Severity};
use std::time::Duration;

/// Where a reader stands.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    node: &'a Node,
    path: String,
    report: &'a Report,
}

impl<'a> Cursor<'a> {
    /// The whole document.
    pub(super) fn root(node: &'a Node, report: &'a Report) -> Self {
        Self { node, path: String::new(), report }
    }

    /// Where the value begins.
    pub(super) fn place(&self) -> Place {
        self.node.place
    }

    /// The value itself.
    pub(super) fn node(&self) -> &'a Node {
        self.node
    }

    /// Whether it is a mapping without keys.
    pub(super) fn is_empty_map(&self) -> bool {
        matches!(&self.node.kind, Kind::Map(entries) if entries.is_empty())
    }

    /// Whether it is a list without items.
    pub(super) fn is_empty_list(&self) -> bool {
        matches!(&self.node.kind, Kind::Seq(items) if items.is_empty())
    }

    /// What stands under the key; `key: null` counts as absent.
    pub(super) fn get(&self, key: &str) -> Option<Self> {
        let entry = self.node.entry(key)?;
        (!entry.value.is_null()).then(|| self.child(key, &entry.value))
    }

    /// The value under a chain of keys.
    pub(super) fn dig(&self, keys: &[&str]) -> Option<Self> {
        keys.iter().try_fold(self.clone(), |at, key| at.get(key))
    }

    /// The items of the list under the key.
    pub(super) fn items(&self, key: &str) -> Vec<Self> {
        self.get(key).map(|at| at.elements()).unwrap_or_default()
    }

    /// The items of this list.
    pub(super) fn elements(&self) -> Vec<Self> {
        let Kind::Seq(items) = &self.node.kind else {
            return Vec::new();
        };
        let item =
            |(index, node)| Self { node, path: format!("{}[{index}]", self.path), report: self.report };
        items.iter().enumerate().map(item).collect()
    }

    /// Keys and values of this mapping, in the order written; nulls included.
    pub(super) fn entries(&self) -> Vec<(&'a str, Place, Self)> {
        let Kind::Map(entries) = &self.node.kind else {
            return Vec::new();
        };
        entries.iter().map(|e| (e.key.as_str(), e.place, self.child(&e.key, &e.value))).collect()
    }

    fn child(&self, key: &str, node: &'a Node) -> Self {
        let path = if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) };
        Self { node, path, report: self.report }
    }

    // Reporting

    /// Reports an error at this value.
    pub(super) fn error(&self, code: &'static str, message: impl Into<String>) {
        self.say(Severity::Error, code, self.place(), message.into(), None);
    }

    /// Reports an error with advice.
    pub(super) fn error_help(
        &self,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.say(Severity::Error, code, self.place(), message.into(), help.into());
    }

    /// Reports a warning at this value.
    pub(super) fn warn(&self, code: &'static str, message: impl Into<String>) {
        self.say(Severity::Warning, code, self.place(), message.into(), None);
    }

    /// Reports a warning with advice.
    pub(super) fn warn_help(
        &self,
        code: &'static str,
        message: impl Into<String>,
        help: impl Into<Option<String>>,
    ) {
        self.say(Severity::Warning, code, self.place(), message.into(), help.into());
    }

    /// The place of a character of this text, where it stands as it was written: bare and on one line.
    pub(super) fn place_in(&self, character: usize) -> Place {
        let Place { line, column } = self.place();
        match &self.node.kind {
            Kind::Scalar { text, plain: true } if !text.contains('\n') => {
                Place { line, column: column + character }
            }
            _ => Place { line, column },
        }
    }

    /// Reports at another place than the value's own, such as its key's.
    pub(super) fn say(
        &self,
        severity: Severity,
        code: &'static str,
        place: Place,
        message: String,
        help: Option<String>,
    ) {
        self.report.push(Diagnostic { severity, code, message, help, place, path: self.path.clone() });
    }

    fn wrong_type(&self, wanted: &str) {
        self.error_help(
            code::WRONG_TYPE,
            format!("expected {wanted}, found {}", self.found()),
            self.type_help(wanted),
        );
    }

    /// What stands there: a short word by itself, unless its key is a credential's; anything else by its shape.
    fn found(&self) -> String {
        /// Longer texts are nobody's misspelt number, and may be a secret.
        const SHORT: usize = 24;
        let text = self.node.text().filter(|text| text.len() <= SHORT && !is_secret_path(&self.path));
        text.map_or_else(|| self.node.shape().to_owned(), |text| format!("`{}`", text.escape_debug()))
    }

    /// What makes a number or a truth value of a text that was meant as one.
    fn type_help(&self, wanted: &str) -> Option<String> {
        let text = self.node.text().filter(|_| wanted != "text")?;
        if text.contains("${") {
            return Some("variables stand in text only; numbers and truth values are written out".to_owned());
        }
        if self.is_quoted() {
            return Some(format!("`{text}` is text because of its quotes; take them away"));
        }
        let count = quantity::tokens(text.trim())?;
        Some(format!("write `{count}`; sizes such as `32K` stand in `min_tokens` and `max_tokens` only"))
    }

    fn is_quoted(&self) -> bool {
        matches!(self.node.kind, Kind::Scalar { plain: false, .. })
    }

    // Single values

    /// Text as written, whatever it looks like.
    pub(super) fn text(&self) -> Option<String> {
        let text = self.node.text();
        if text.is_none() {
            self.wrong_type("text");
        }
        text.map(str::to_owned)
    }

    /// What a text in quotes or without them comes to.
    fn scalar<T>(&self, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let value = self.node.text().and_then(|text| parse(text.trim()));
        if value.is_none() {
            self.wrong_type(wanted);
        }
        value
    }

    /// What a bare text comes to; one in quotes was meant as text.
    fn bare<T>(&self, wanted: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
        let is_quoted = self.is_quoted();
        self.scalar(wanted, |text| parse(text).filter(|_| !is_quoted))
    }

    fn number(&self) -> Option<f64> {
        self.bare("a number", |text| text.parse::<f64>().ok().filter(|n| n.is_finite()))
    }

    fn integer(&self) -> Option<i64> {
        /// Beyond this, `f64` no longer holds every whole number.
        const WHOLE: f64 = 9_007_199_254_740_992.0;
        self.bare("a whole number", |text| {
            let float =
                || text.parse::<f64>().ok().filter(|n| n.fract() == 0.0 && n.abs() < WHOLE).map(|n| n as i64);
            text.parse::<i64>().ok().or_else(float)
        })
    }

    // Values under a key

    /// Optional text.
    pub(super) fn string(&self, key: &str) -> Option<String> {
        self.get(key)?.text()
    }

    /// Text that must be there and not be blank.
    pub(super) fn required(&self, key: &str) -> Option<String> {
        let Some(at) = self.get(key) else {
            self.missing(key);
            return None;
        };
        let text = at.text()?;
        if text.trim().is_empty() {
            at.error(code::MISSING_KEY, format!("`{key}` is blank"));
            return None;
        }
        Some(text)
    }

    /// The value under a key that must be there.
    pub(super) fn needed(&self, key: &str) -> Option<Self> {
        let value = self.get(key);
        if value.is_none() {
            self.missing(key);
        }
        value
    }

    /// Reports a key that must be there; what is no mapping at all has been reported as such.
    pub(super) fn missing(&self, key: &str) {
        if !matches!(self.node.kind, Kind::Map(_)) {
            return;
        }
        self.error(code::MISSING_KEY, format!("`{key}` is missing"));
    }

    /// A list of texts; absent is empty.
    pub(super) fn strings(&self, key: &str) -> Vec<String> {
        let Some(at) = self.get(key) else {
            return Vec::new();
        };
        at.texts()
    }

    /// This list of texts.
    pub(super) fn texts(&self) -> Vec<String> {
        if !matches!(self.node.kind, Kind::Seq(_)) {
            self.wrong_type("a list of texts");
        }
        self.elements().iter().filter_map(Self::text).collect()
    }

    /// This list of whole numbers, each at least `least`; `None` when one of them is not.
    pub(super) fn whole_numbers(&self, least: u64) -> Option<Vec<u64>> {
        if !matches!(self.node.kind, Kind::Seq(_)) {
            self.wrong_type("a list of whole numbers");
            return None;
        }
        let number = |at: &Self| {
            let value = u64::try_from(at.integer()?).ok().filter(|n| *n >= least);
            if value.is_none() {
                at.error(code::BAD_RANGE, format!("each number must be at least {least}"));
            }
            value
        };
        let numbers: Vec<Option<u64>> = self.elements().iter().map(number).collect();
        numbers.into_iter().collect()
    }

    /// A list of texts that must have at least one.
    pub(super) fn some_strings(&self, key: &str) -> Vec<String> {
        match self.get(key) {
            None => self.missing(key),
            Some(at) if at.is_empty_list() => {
                at.error(code::MISSING_KEY, format!("`{key}` is empty"));
            }
            Some(at) => return at.texts(),
        }
        Vec::new()
    }

    /// An optional truth value. `yes/no/on/off` count here, and only here.
    pub(super) fn boolean(&self, key: &str) -> Option<bool> {
        self.get(key)?.bare("`true` or `false`", |text| match text.to_ascii_lowercase().as_str() {
            "true" | "yes" | "on" => Some(true),
            "false" | "no" | "off" => Some(false),
            _ => None,
        })
    }

    /// An optional number.
    pub(super) fn float(&self, key: &str) -> Option<f64> {
        self.get(key)?.number()
    }

    /// This number within bounds, both inclusive.
    pub(super) fn number_in(&self, least: f64, most: f64) -> Option<f64> {
        let value = self.number()?;
        if (least..=most).contains(&value) {
            return Some(value);
        }
        self.error(code::BAD_RANGE, format!("{value} is out of range; it must be in {least}..={most}"));
        None
    }

    /// An optional number within bounds, both inclusive.
    pub(super) fn float_in(&self, key: &str, least: f64, most: f64) -> Option<f64> {
        let at = self.get(key)?;
        let value = at.number()?;
        if (least..=most).contains(&value) {
            return Some(value);
        }
        let bounds =
            if most == f64::MAX { format!("at least {least}") } else { format!("in {least}..={most}") };
        at.error(code::BAD_RANGE, format!("`{key}` is {value}; it must be {bounds}"));
        None
    }

    /// An optional number above zero.
    pub(super) fn positive(&self, key: &str) -> Option<f64> {
        let value = self.float(key)?;
        if value > 0.0 {
            return Some(value);
        }
        self.get(key)?.error(code::BAD_RANGE, format!("`{key}` is {value}; it must be above 0"));
        None
    }

    /// An optional whole number within bounds, both inclusive.
    pub(super) fn integer_in(&self, key: &str, least: i64, most: i64) -> Option<i64> {
        let at = self.get(key)?;
        let value = at.integer()?;
        if (least..=most).contains(&value) {
            return Some(value);
        }
        let bounds =
            if most == i64::MAX { format!("at least {least}") } else { format!("in {least}..={most}") };
        at.error(code::BAD_RANGE, format!("`{key}` is {value}; it must be {bounds}"));
        None
    }

    /// An optional count, where 0 means "not set".
    ///
    /// Source: the contract leaves zero values out when it writes a file, so a written 0 is the unset default.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        self.integer_in(key, 0, i64::MAX).and_then(|n| u64::try_from(n).ok()).filter(|n| *n > 0)
    }

    /// An optional duration, where zero means "no limit".
    pub(super) fn duration(&self, key: &str) -> Option<Duration> {
        let at = self.get(key)?;
        at.scalar("a duration such as `30s` or `5m`", quantity::duration).filter(|d| !d.is_zero())
    }

    /// An optional token count.
    pub(super) fn tokens(&self, key: &str) -> Option<u64> {
        self.get(key)?.scalar("a token count such as `8000` or `32K`", quantity::tokens)
    }

    /// One of a few words, whatever their case.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Option<T> {
        self.get(key)?.chosen(&format!("`{key}` cannot be"), words)
    }

    /// This value as one of a few words, whatever their case.
    pub(super) fn one_of<T: Copy>(&self, words: &[(&str, T)]) -> Option<T> {
        self.chosen("nothing here is called", words)
    }

    fn chosen<T: Copy>(&self, refusal: &str, words: &[(&str, T)]) -> Option<T> {
        let text = self.text()?;
        let found = words.iter().find(|(word, _)| word.eq_ignore_ascii_case(text.trim()));
        if found.is_none() {
            let known: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            self.error_help(code::BAD_VALUE, format!("{refusal} `{text}`"), suggest(&text, &known, ""));
        }
        found.map(|(_, value)| *value)
    }

    /// The bounds under `predicate`; one without any bound is none.
    pub(super) fn predicate(&self) -> Option<NumericPredicate> {
        let bounds = self.get("predicate")?.bounds();
        (bounds != NumericPredicate::default()).then_some(bounds)
    }

    /// The bounds written directly in this mapping; reports bounds that no number keeps.
    pub(super) fn bounds(&self) -> NumericPredicate {
        let it = NumericPredicate {
            gt: self.float("gt"),
            gte: self.float("gte"),
            lt: self.float("lt"),
            lte: self.float("lte"),
        };
        let above = |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(low, high)| low > high);
        let reaches =
            |low: Option<f64>, high: Option<f64>| low.zip(high).is_some_and(|(low, high)| low >= high);
        if reaches(it.gt, it.lt) || reaches(it.gt, it.lte) || reaches(it.gte, it.lt) || above(it.gte, it.lte)
        {
            self.error(code::BAD_RANGE, "no number keeps all of these bounds");
        }
        it
    }
}
