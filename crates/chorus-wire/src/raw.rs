//! The JSON text of one value: shared, read as numbers and texts, and taken apart.
//!
//! It knows JSON and nothing of chat completions. **Invariant:** it holds JSON that has been checked.

use crate::scan;
use crate::text::Text;
use serde::de::{Deserialize, Deserializer};
use serde::ser::{Error as _, Serialize, Serializer};
use serde_json::value::RawValue;
use smallvec::SmallVec;
use std::fmt;
use std::ops::Deref;

/// JSON text of one value, shared. Cloning it copies no text.
#[derive(Clone)]
pub struct Raw(Text);

impl Raw {
    /// The JSON text.
    #[must_use]
    pub fn get(&self) -> &str {
        self.0.as_str()
    }

    /// A value within this one, which shares its text.
    pub(crate) fn piece(&self, value: &str) -> Self {
        Self(self.0.piece(value))
    }

    /// The shared text itself.
    pub(crate) fn into_text(self) -> Text {
        self.0
    }

    /// JSON text that was checked, or written by this crate.
    pub(crate) fn checked(text: impl Into<Text>) -> Self {
        Self(text.into())
    }
}

impl Deref for Raw {
    type Target = str;

    fn deref(&self) -> &str {
        self.get()
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Raw").field(&self.get()).finish()
    }
}

impl From<Box<RawValue>> for Raw {
    fn from(value: Box<RawValue>) -> Self {
        Self::checked(value.get())
    }
}

impl Serialize for Raw {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: &RawValue = serde_json::from_str(self.get()).map_err(S::Error::custom)?;
        value.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(deserializer).map(Self::from)
    }
}

/// The JSON text of a value; `null` for one that has none (a map with keys that are no strings).
pub(crate) fn raw_or_null<T: Serialize + ?Sized>(value: &T) -> Raw {
    Raw::checked(serde_json::to_string(value).unwrap_or_else(|_| NULL.to_owned()))
}

/// A string as JSON text.
pub(crate) fn quoted(text: &str) -> Raw {
    raw_or_null(text)
}

/// A list of those values.
pub(crate) fn list_of<'a>(values: impl Iterator<Item = &'a str> + Clone) -> Raw {
    let mut text = String::with_capacity(values.clone().map(|value| value.len() + 1).sum::<usize>() + 2);
    text.push('[');
    for (at, value) in values.enumerate() {
        if at > 0 {
            text.push(',');
        }
        text.push_str(value);
    }
    text.push(']');
    Raw::checked(text)
}

const NULL: &str = "null";

/// Whether it is `null`.
pub(crate) fn is_null(raw: &str) -> bool {
    raw == NULL
}

/// The elements of an array, few of them without an allocation.
pub(crate) type Elements<'a> = SmallVec<[&'a str; 4]>;

/// The elements of an array; `None` when it is not one.
pub(crate) fn elements(raw: &str) -> Option<Elements<'_>> {
    let mut all = Elements::new();
    scan::list(raw, |element| all.push(element))?;
    Some(all)
}

/// Any JSON number as a float; `None` when it is not a number or out of a float's range.
pub(crate) fn number(raw: &str) -> Option<f64> {
    serde_json::from_str(raw).ok()
}

/// A count: a whole number ≥ 0, also when written as `7.0`; larger than a `u64` is its maximum.
pub(crate) fn count(raw: &str) -> Option<u64> {
    serde_json::from_str(raw)
        .ok()
        .or_else(|| number(raw).filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64))
}
