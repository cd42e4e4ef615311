//! The long strings of a JSON text, where they stand.
//!
//! The text itself is never written anew: numbers keep their digits and keys their order.

use chorus_wire::tokens::of_text;
use serde::de::IgnoredAny;
use std::ops::Range;

/// Strings of fewer tokens stay.
const LONG_TOKENS: u64 = 40;

/// A long string.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    /// Where it stands, quotes included.
    pub(super) range: Range<usize>,
    /// What it says.
    pub(super) text: String,
}

/// The long strings that are values, in order; `None` for a text that is no JSON object or list as a whole.
pub(super) fn long_strings(text: &str) -> Option<Vec<Leaf>> {
    if !text.trim_start().starts_with(['{', '[']) || serde_json::from_str::<IgnoredAny>(text).is_err() {
        return None;
    }
    let bytes = text.as_bytes();
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(start) = bytes.get(at..).and_then(|rest| rest.iter().position(|b| *b == b'"')) {
        let start = at + start;
        let end = string_end(bytes, start + 1);
        at = end;
        let is_key = bytes.get(end..)?.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b':');
        let raw = text.get(start..end)?;
        if !is_key && of_text(raw) >= LONG_TOKENS {
            found.push(Leaf { range: start..end, text: serde_json::from_str(raw).ok()? });
        }
    }
    Some(found)
}

/// Behind the quote that ends the string whose first character this is.
fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while let Some(byte) = bytes.get(at) {
        at += match byte {
            b'"' => return at + 1,
            b'\\' => 2,
            _ => 1,
        };
    }
    at.min(bytes.len())
}

/// A text as a JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The same without its quotes.
pub(super) fn escaped(text: &str) -> String {
    let quoted = quoted(text);
    quoted.trim_matches('"').to_owned()
}
