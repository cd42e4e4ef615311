//! A JSON object that keeps what it does not understand.
//!
//! It knows JSON and nothing of chat completions. **Invariant:** a value that nobody replaced is written back with
//! the very text that it was read from.

use crate::raw::{Raw, is_null};
use crate::scan::{self, Key};
use crate::text::Text;
use serde::de::{DeserializeOwned, Deserializer, Error as _, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::ops::Range;

/// A JSON object: fields in the order and with the text they came with, pieces of the one text that was read.
#[derive(Clone, Default)]
pub struct RawObject {
    /// What was read.
    read: Text,
    fields: Vec<Field>,
}

#[derive(Clone)]
struct Field {
    key: Name,
    value: Raw,
}

/// The key of a field.
#[derive(Clone)]
enum Name {
    /// Where it stands in what was read, without escapes.
    Read(Range<usize>),
    /// Given by us, or read with escapes.
    Given(Box<str>),
}

impl Name {
    /// Whether it is that key; bytes of UTF-8 that are equal are equal text.
    fn is(&self, key: &str, read: &str) -> bool {
        match self {
            Self::Read(place) => read.as_bytes().get(place.clone()) == Some(key.as_bytes()),
            Self::Given(given) => **given == *key,
        }
    }

    fn within<'a>(&'a self, read: &'a str) -> &'a str {
        match self {
            Self::Read(place) => read.get(place.clone()).unwrap_or_default(),
            Self::Given(key) => key,
        }
    }
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

/// Fields that most objects do not exceed.
const USUAL_FIELDS: usize = 8;

/// Fields up to which every key is compared with every other.
const FEW_FIELDS: usize = 16;

impl RawObject {
    /// Reads one object.
    ///
    /// # Errors
    /// [`BodyFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, BodyFault> {
        let Ok(text) = std::str::from_utf8(bytes) else { return Err(why_not(bytes).into()) };
        let object = Self::scanned(text.into())?;
        match object.repeated_key() {
            Some(key) => Err(BodyFault::DuplicateKey(key.to_owned())),
            None => Ok(object),
        }
    }

    /// Reads one object of a text, which its values then are pieces of; the same key twice or not.
    fn scanned(text: Text) -> Result<Self, serde_json::Error> {
        let mut fields = Vec::with_capacity(USUAL_FIELDS);
        let scanned = scan::object(&text, |key, value| {
            fields.push(Field { key: name(&text, key)?, value: Raw::checked(text.piece(value)) });
            Some(())
        });
        match scanned {
            Some(()) => Ok(Self { read: text, fields }),
            None => Err(why_not(text.as_bytes())),
        }
    }

    /// What was read.
    pub(crate) fn read_from(&self) -> &str {
        &self.read
    }

    /// Where a piece of what was read stands in it.
    pub(crate) fn place_of(&self, piece: &str) -> Option<Range<usize>> {
        self.read.place_of(piece)
    }

    /// The object of a text that is what was read but for a piece within one value, which ended at `ended` and now ends at
    /// `ends`. `None` for an object that was changed, or whose keys hold escapes.
    pub(crate) fn again(&self, text: &str, ended: usize, ends: usize) -> Option<Self> {
        let read = Text::from(text);
        let moved = |at: usize| if at < ended { at } else { at - ended + ends };
        let moved = |place: Range<usize>| moved(place.start)..moved(place.end);
        let mut fields = Vec::with_capacity(self.fields.len());
        for Field { key, value } in &self.fields {
            let Name::Read(key) = key else { return None };
            let value = read.part(moved(self.read.place_of(value)?))?;
            fields.push(Field { key: Name::Read(moved(key.clone())), value: Raw::checked(value) });
        }
        Some(Self { read, fields })
    }

    /// The text of a field.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Raw> {
        self.place(key).and_then(|at| self.fields.get(at)).map(|field| &field.value)
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
        let place = self.place(key);
        match place.and_then(|at| self.fields.get_mut(at)) {
            Some(field) => field.value = value,
            None => self.fields.push(Field { key: Name::Given(key.into()), value }),
        }
    }

    /// [`set`](Self::set) from anything that serialises.
    ///
    /// # Errors
    /// When it does not serialise.
    pub fn write<T: Serialize>(&mut self, key: &str, value: &T) -> Result<(), serde_json::Error> {
        self.set(key, Raw::checked(serde_json::to_string(value)?));
        Ok(())
    }

    /// Takes a field out.
    pub fn remove(&mut self, key: &str) -> Option<Raw> {
        let at = self.place(key)?;
        Some(self.fields.remove(at).value)
    }

    /// Takes those fields out.
    pub fn remove_all(&mut self, keys: &[&str]) {
        let read = &self.read;
        self.fields.retain(|field| !keys.contains(&field.key.within(read)));
    }

    /// [`set`](Self::set) of several fields in one pass.
    pub(crate) fn set_all<const N: usize>(&mut self, values: [(&str, &Raw); N]) {
        let mut left = values.map(Some);
        for field in &mut self.fields {
            let key = field.key.within(&self.read);
            if let Some(slot) = left.iter_mut().find(|it| it.is_some_and(|(name, _)| name == key))
                && let Some((_, value)) = slot.take()
            {
                field.value = value.clone();
            }
        }
        for (key, value) in left.into_iter().flatten() {
            self.fields.push(Field { key: Name::Given(key.into()), value: value.clone() });
        }
    }

    /// All fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Raw)> {
        self.fields.iter().map(|field| (field.key.within(&self.read), &field.value))
    }

    /// Whether it has no field.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// The object as JSON text.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut text = Vec::with_capacity(self.written_bytes());
        self.write_to(&mut text);
        text
    }

    /// [`to_bytes`](Self::to_bytes), shared as the value of a field.
    pub(crate) fn to_raw(&self) -> Raw {
        Raw::checked(String::from_utf8(self.to_bytes()).unwrap_or_default())
    }

    /// Bytes of the JSON text; keys that need escapes add to them.
    pub(crate) fn written_bytes(&self) -> usize {
        // Quotation marks, a colon, and a comma or the last bracket for each field.
        self.iter().map(|(key, value)| key.len() + value.get().len() + 4).sum::<usize>().max(1) + 1
    }

    /// Appends the JSON text.
    pub(crate) fn write_to(&self, text: &mut Vec<u8>) {
        text.push(b'{');
        for (at, Field { key, value }) in self.fields.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            match key {
                Name::Read(place) => {
                    text.push(b'"');
                    text.extend_from_slice(self.read.get(place.clone()).unwrap_or_default().as_bytes());
                    text.push(b'"');
                }
                // A string, written to memory: there is nothing that could fail.
                Name::Given(key) => drop(serde_json::to_writer(&mut *text, key)),
            }
            text.push(b':');
            text.extend_from_slice(value.get().as_bytes());
        }
        text.push(b'}');
    }

    fn place(&self, key: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.key.is(key, &self.read))
    }

    /// Where there are many by sorting, so that a body of a million keys costs no million passes.
    fn repeated_key(&self) -> Option<&str> {
        if self.fields.len() <= FEW_FIELDS {
            let keys = || self.iter().map(|(key, _)| key);
            return keys()
                .enumerate()
                .find(|(at, key)| keys().take(*at).any(|k| k == *key))
                .map(|(_, key)| key);
        }
        let mut keys: Vec<&str> = self.iter().map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.iter().zip(keys.iter().skip(1)).find(|(a, b)| a == b).map(|(a, _)| *a)
    }
}

/// `None` for a key that is no text.
fn name(whole: &str, key: Key<'_>) -> Option<Name> {
    Some(match key.place(whole) {
        Some(place) => Name::Read(place),
        None => Name::Given(key.read()?.into()),
    })
}

/// The words for bytes that are no object.
fn why_not(bytes: &[u8]) -> serde_json::Error {
    struct Fields;

    impl<'de> Visitor<'de> for Fields {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
            while map.next_entry::<String, &RawValue>()?.is_some() {}
            Ok(())
        }
    }

    let mut reader = serde_json::Deserializer::from_slice(bytes);
    match reader.deserialize_map(Fields).and_then(|()| reader.end()) {
        Err(fault) => fault,
        Ok(()) => serde_json::Error::custom("it cannot be read"),
    }
}

impl fmt::Debug for RawObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter().map(|(key, value)| (key, value.get()))).finish()
    }
}

impl<'de> Deserialize<'de> for RawObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::scanned(Raw::deserialize(deserializer)?.into_text()).map_err(D::Error::custom)
    }
}

impl Serialize for RawObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.fields.len()))?;
        for (key, value) in self.iter() {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

/// An object of those fields.
pub(crate) fn object<const N: usize>(fields: [(&str, Raw); N]) -> RawObject {
    let given = fields.into_iter().map(|(key, value)| Field { key: Name::Given(key.into()), value });
    RawObject { read: Text::default(), fields: given.collect() }
}
