//! Message content as the API writes it: a string, or a list of parts. It knows no roles and no messages.
//!
//! **Invariant:** reading never fails on a kind of part that it does not know; such a part counts as nothing.

use crate::raw::elements;
use crate::scan::pick;
use memchr::memchr;
use serde::de::{Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What signals need of one content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    /// All text, joined as written.
    pub(crate) text: Cow<'a, str>,
    /// Image parts.
    pub(crate) images: usize,
    /// Audio parts.
    pub(crate) audio: usize,
    /// Whether it came as parts instead of one string.
    pub(crate) in_parts: bool,
}

impl<'a> Content<'a> {
    /// Reads a string, a list of parts, or `null`; `None` for anything else.
    pub(crate) fn read(raw: &'a str) -> Option<Self> {
        match raw.as_bytes().first()? {
            b'"' => Some(Self { text: text_of(raw)?, ..Self::default() }),
            b'[' => Self::of_parts(&elements(raw)?),
            b'n' => Some(Self::default()),
            _ => None,
        }
    }

    fn of_parts(parts: &[&'a str]) -> Option<Self> {
        let mut content = Self { in_parts: true, ..Self::default() };
        for raw in parts {
            if raw.starts_with('"') {
                content.add(text_of(raw)?);
                continue;
            }
            let [kind, text] = pick(raw, ["type", "text"]).ok()?;
            let kind = kind.map_or(Some("".into()), text_of)?;
            match &*kind {
                // `input_*` and `output_text` are the Responses API's words for the same parts.
                "" | "text" | "input_text" | "output_text" => {
                    content.add(text.and_then(text_of).unwrap_or_default());
                }
                "image_url" | "input_image" | "image" => content.images += 1,
                "input_audio" => content.audio += 1,
                _ => {}
            }
        }
        Some(content)
    }

    /// Joins more text; the first is taken as it is.
    fn add(&mut self, more: Cow<'a, str>) {
        if self.text.is_empty() {
            self.text = more;
        } else {
            self.text.to_mut().push_str(&more);
        }
    }
}

/// [`text_of`], as a text of its own.
pub(crate) fn text(raw: &str) -> Option<String> {
    text_of(raw).map(Cow::into_owned)
}

/// The text of a JSON string; `None` when it is not one. Without escapes it is part of the JSON text.
///
/// Half a surrogate pair becomes U+FFFD: clients that cut strings by UTF-16 units send it, and so do backends that
/// stream half an emoji. The JSON text itself is forwarded as it is.
pub(crate) fn text_of(raw: &str) -> Option<Cow<'_, str>> {
    let written = raw.strip_prefix('"')?.strip_suffix('"')?;
    match memchr(b'\\', written.as_bytes()) {
        None => Some(Cow::Borrowed(written)),
        Some(_) => unescaped(written).or_else(|| lossy(raw)).map(Cow::Owned),
    }
}

/// What stands for the escapes of a string; `None` for one that is half a surrogate pair.
fn unescaped(written: &str) -> Option<String> {
    let mut text = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = memchr(b'\\', rest.as_bytes()) {
        text.push_str(rest.get(..at)?);
        let escape = rest.get(at + 1..)?;
        let (letter, after) = match escape.as_bytes().first()? {
            b'n' => ('\n', 1),
            b't' => ('\t', 1),
            b'r' => ('\r', 1),
            b'b' => ('\u{8}', 1),
            b'f' => ('\u{c}', 1),
            b'u' => by_number(escape)?,
            // A quotation mark, a backslash or a slash stands for itself.
            other => (char::from(*other), 1),
        };
        text.push(letter);
        rest = escape.get(after..)?;
    }
    text.push_str(rest);
    Some(text)
}

/// The letter that `uXXXX`, or a pair of them, stands for, and the length of what was read.
fn by_number(escape: &str) -> Option<(char, usize)> {
    let unit = |digits: &str| u16::from_str_radix(digits, 16).ok();
    let first = unit(escape.get(1..5)?)?;
    match char::from_u32(u32::from(first)) {
        Some(letter) => Some((letter, 5)),
        None => {
            let second = unit(escape.get(5..)?.strip_prefix("\\u")?.get(..4)?)?;
            Some((char::decode_utf16([first, second]).next()?.ok()?, 11))
        }
    }
}

/// The text of a JSON string in which half a surrogate pair stands.
fn lossy(raw: &str) -> Option<String> {
    struct Lossy;

    impl Visitor<'_> for Lossy {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }

    serde_json::Deserializer::from_str(raw).deserialize_bytes(Lossy).ok()
}

/// [`text_of`], where the empty string says nothing.
pub(crate) fn word_of(raw: &str) -> Option<Cow<'_, str>> {
    text_of(raw).filter(|word| !word.is_empty())
}

/// [`word_of`], as a text of its own.
pub(crate) fn word(raw: &str) -> Option<String> {
    word_of(raw).map(Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn escapes_are_read_and_half_a_pair_is_told() {
        for (raw, want) in [
            (r#""plain é""#, "plain é"),
            (r#""a\"b\\\/\b\f\n\r\t""#, "a\"b\\/\u{8}\u{c}\n\r\t"),
            (r#""\u00e9\ud83e\udd80x""#, "é🦀x"),
            (r#""\ud83d""#, "\u{fffd}\u{fffd}\u{fffd}"),
        ] {
            assert_eq!(text(raw).as_deref(), Some(want), "{raw}");
        }
        assert!(matches!(text_of(r#""plain""#), Some(Cow::Borrowed("plain"))));
        assert!(["7", "null", "[]", "{}"].iter().all(|raw| text_of(raw).is_none()));
    }

    proptest! {
        #[test]
        fn a_string_reads_back(written in any::<String>()) {
            let raw = serde_json::to_string(&written).unwrap();
            prop_assert_eq!(text(&raw), Some(written.clone()));
            let ascii: String = written.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            prop_assert_eq!(text(&format!("\"{ascii}\"")), Some(written));
        }
    }
}
