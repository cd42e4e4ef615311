//! Trees of a document, made from the words of a policy: every value keeps the place of the words it came from.
//!
//! It knows no key. **Invariant:** what stood in quotes stays text, and a bare word is a number, a truth value or
//! nothing only where it reads as one.

use super::ast::{Field, Fields, Value, Word};
use crate::Place;
use crate::code;
use crate::read::report::Report;
use crate::read::yaml::{Entry, Kind, Node};

/// Bare words that are not text.
const LITERALS: [&str; 8] = ["true", "false", "null", "~", "yes", "no", "on", "off"];

/// Whether a bare word is a number, a truth value or nothing.
pub(super) fn is_literal(text: &str) -> bool {
    LITERALS.contains(&text.to_ascii_lowercase().as_str()) || text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// Text, whatever it looks like.
pub(super) fn text(text: impl Into<String>, place: Place) -> Node {
    Node { place, kind: Kind::Scalar { text: text.into(), plain: false } }
}

/// What stands bare: a number, a truth value, nothing, or a word.
pub(super) fn literal(text: impl Into<String>, place: Place) -> Node {
    Node { place, kind: Kind::Scalar { text: text.into(), plain: true } }
}

/// A name: text, also where it looks like a number.
pub(super) fn name(word: &Word) -> Node {
    text(word.text.as_str(), word.place)
}

/// A value as written: bare or in quotes.
pub(super) fn word(word: &Word) -> Node {
    let is_bare = !word.quoted && (is_literal(&word.text) || is_plain(&word.text));
    if is_bare { literal(word.text.as_str(), word.place) } else { name(word) }
}

/// Whether YAML takes the text bare, whatever stands around it.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/'))
}

pub(super) fn list(place: Place, items: Vec<Node>) -> Node {
    Node { place, kind: Kind::Seq(items) }
}

pub(super) fn map(place: Place, entries: Vec<Entry>) -> Node {
    Node { place, kind: Kind::Map(entries) }
}

/// A key that nobody wrote, for a value that somebody did.
pub(super) fn entry(key: &str, value: Node) -> Entry {
    Entry { key: key.to_owned(), place: value.place, value }
}

/// A list under its key, unless it is empty.
pub(super) fn listed(key: &str, items: Vec<Node>) -> Option<Entry> {
    let place = items.first()?.place;
    Some(entry(key, list(place, items)))
}

/// Adds an entry; a key that is there already is told and left as it was.
pub(super) fn add(entries: &mut Vec<Entry>, entry: Entry, report: &Report) {
    let Some(first) = entries.iter().find(|e| e.key == entry.key) else {
        return entries.push(entry);
    };
    let (key, lines) = (&first.key, (first.place.line, entry.place.line));
    let message = format!("`{key}` stands twice here: on line {} and on line {}", lines.0, lines.1);
    report.error(code::DUPLICATE_KEY, entry.place, "", message, Some("keep one of them".to_owned()));
}

/// A value and all below it.
pub(super) fn value(it: &Value, report: &Report) -> Node {
    match it {
        Value::One(it) => word(it),
        Value::List(place, items) => list(*place, items.iter().map(|item| value(item, report)).collect()),
        Value::Map(place, body) => map(*place, fields(body, report)),
    }
}

/// Fields as entries, each key once.
pub(super) fn fields(body: &Fields, report: &Report) -> Vec<Entry> {
    let mut entries = Vec::new();
    body.iter().for_each(|it| add(&mut entries, field(it, report), report));
    entries
}

/// One field as an entry.
pub(super) fn field(it: &Field, report: &Report) -> Entry {
    Entry { key: it.key.text.clone(), place: it.key.place, value: value(&it.value, report) }
}
