//! Message content as the API writes it: a string, or a list of parts. It knows no roles and no messages.
//!
//! **Invariant:** reading never fails on a kind of part that it does not know; such a part counts as nothing.

use crate::body::{elements, read_object};
use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// What signals need of one content.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Content {
    /// All text, joined as written.
    pub(crate) text: String,
    /// Image parts.
    pub(crate) images: usize,
    /// Audio parts.
    pub(crate) audio: usize,
    /// Whether it came as parts instead of one string.
    pub(crate) in_parts: bool,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl Content {
    /// Reads a string, a list of parts, or `null`; `None` for anything else.
    pub(crate) fn read(raw: &RawValue) -> Option<Self> {
        match raw.get().as_bytes().first()? {
            b'"' => Some(Self { text: text(raw)?, ..Self::default() }),
            b'[' => Self::of_parts(elements(raw)?),
            b'n' => Some(Self::default()),
            _ => None,
        }
    }

    fn of_parts(parts: Vec<&RawValue>) -> Option<Self> {
        let mut content = Self { in_parts: true, ..Self::default() };
        for raw in parts {
            if raw.get().starts_with('"') {
                content.text.push_str(&text(raw)?);
                continue;
            }
            let part: Part<'_> = read_object(raw).ok()?;
            match part.kind.as_deref() {
                // `input_*` and `output_text` are the Responses API's words for the same parts.
                None | Some("text" | "input_text" | "output_text") => {
                    content.text.push_str(&part.text.and_then(text).unwrap_or_default());
                }
                Some("image_url" | "input_image" | "image") => content.images += 1,
                Some("input_audio") => content.audio += 1,
                Some(_) => {}
            }
        }
        Some(content)
    }
}

/// The text of a JSON string; `None` when it is not one.
///
/// Half a surrogate pair becomes U+FFFD: clients that cut strings by UTF-16 units send it, and so do backends that
/// stream half an emoji. The JSON text itself is forwarded as it is.
pub(crate) fn text(raw: &RawValue) -> Option<String> {
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

    serde_json::Deserializer::from_str(raw.get()).deserialize_bytes(Lossy).ok()
}

/// [`text`], where the empty string says nothing.
pub(crate) fn word(raw: &RawValue) -> Option<String> {
    text(raw).filter(|word| !word.is_empty())
}
