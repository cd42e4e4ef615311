//! A JSON object that keeps what it does not understand.
//!
//! It knows JSON and nothing of chat completions. **Invariant:** a value that nobody replaced is written back with
//! the very text that it was read from.

use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// JSON text of one value, shared.
pub type Raw = Arc<RawValue>;

/// A JSON object: fields in the order and with the text they came with.
#[derive(Debug, Clone, Default)]
pub struct RawObject {
    fields: Vec<(String, Raw)>,
}

/// Why bytes are not an object.
#[derive(Debug, thiserror::Error)]
pub enum BodyFault {
    /// Not JSON, or not an object.
    #[error("the body is not a JSON object: {0}")]
    Json(#[from] serde_json::Error),
    /// The same key twice: two readers could disagree about it.
    #[error("the key `{0}` stands twice in the body")]
    DuplicateKey(String),
}

impl RawObject {
    /// Reads one object.
    ///
    /// # Errors
    /// [`BodyFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyFault> {
        let object: Self = serde_json::from_slice(bytes)?;
        match object.repeated_key() {
            Some(key) => Err(BodyFault::DuplicateKey(key.to_owned())),
            None => Ok(object),
        }
    }

    /// The text of a field.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.fields.iter().find(|(k, _)| k == key).map(|(_, v)| v)
    }

    /// The text of a field that is there and is not `null`.
    #[must_use]
    pub fn get_set(&self, key: &str) -> Option<&Raw> {
        self.get(key).filter(|raw| !is_null(raw))
    }

    /// The field read as `T`; `None` when absent.
    ///
    /// # Errors
    /// When the field is there and is not a `T`.
    pub fn read<T: DeserializeOwned>(&self, key: &str) -> Result<Option<T>, serde_json::Error> {
        self.get(key).map(|raw| serde_json::from_str(raw.get())).transpose()
    }

    /// Replaces the field where it stands, or appends it.
    pub fn set(&mut self, key: &str, value: Raw) {
        match self.fields.iter_mut().find(|(k, _)| k == key) {
            Some((_, slot)) => *slot = value,
            None => self.fields.push((key.to_owned(), value)),
        }
    }

    /// [`set`](Self::set) from anything that serialises.
    ///
    /// # Errors
    /// When it does not serialise.
    pub fn write<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), serde_json::Error> {
        self.set(key, serde_json::value::to_raw_value(value)?.into());
        Ok(())
    }

    /// Takes a field out.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self.fields.iter().position(|(k, _)| k == key)?;
        Some(self.fields.remove(at).1)
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.fields.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// Whether it has no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The object as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        // With quotation marks, a colon and a comma for each field; a key that needs escapes makes it grow once more.
        let bytes: usize = self.fields.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum();
        let mut text = Vec::with_capacity(bytes + 2);
        // Strings and checked JSON text, written to memory: there is nothing that could fail.
        let _ = serde_json::to_writer(&mut text, self);
        text
    }

    /// By sorting, so that a body of a million keys costs no million passes.
    fn repeated_key(&self) -> Option<&str> {
        let mut keys: Vec<&str> = self.fields.iter().map(|(k, _)| k.as_str()).collect();
        keys.sort_unstable();
        keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a == b).map(|(a, _)| *a)
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = RawObject;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawObject, A::Error> {
                let mut fields = Vec::new();
                while let Some((key, value)) = map.next_entry::<String, Raw>()? {
                    fields.push((key, value));
                }
                Ok(RawObject { fields })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (key, value) in &self.fields {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// The JSON text of a value; `null` for one that has none (a map with keys that are no strings).
pub(crate) fn raw_or_null<T: Serialize + ?Sized>(value: &T) -> Raw {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned()).into()
}

/// A struct from an object. Plain serde would also fill it from an array, by position.
pub(crate) fn read_object<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, serde_json::Error> {
    if raw.get().starts_with('{') {
        serde_json::from_str(raw.get())
    } else {
        Err(serde_json::Error::custom("expected an object"))
    }
}

/// The elements of an array; `None` when it is not one.
pub(crate) fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    serde_json::from_str(raw.get()).ok()
}

/// Any JSON number as a float; `None` when it is not a number or out of a float's range.
pub(crate) fn number(raw: &RawValue) -> Option<f64> {
    serde_json::from_str(raw.get()).ok()
}

/// A count: a whole number ≥ 0, also when written as `7.0`; larger than a `u64` is its maximum.
pub(crate) fn count(raw: &RawValue) -> Option<u64> {
    serde_json::from_str(raw.get())
        .ok()
        .or_else(|| number(raw).filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64))
}

/// Whether it is `null`.
pub(crate) fn is_null(raw: &RawValue) -> bool {
    raw.get() == "null"
}

/// Its own shared copy.
pub(crate) fn share(raw: &RawValue) -> Raw {
    raw.to_owned().into()
}

/// An object of those fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Raw); N]) -> RawObject {
    RawObject { fields: fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect() }
}

/// A string as JSON text.
pub(crate) fn quoted(text: &str) -> Raw {
    raw_or_null(text)
}
