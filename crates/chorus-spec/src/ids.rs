//! Small checked values: names, digests, money, places in a file, and text that waits for the environment.

use smol_str::SmolStr;
use std::fmt;

/// The public name of a logical model, as written in `providers.models[].name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct ModelId(SmolStr);

impl ModelId {
    /// Takes the name as it is; the reader has checked that it is not empty.
    pub fn new(name: impl Into<SmolStr>) -> Self {
        Self(name.into())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ModelId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// `sha256:` and 64 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Digest(SmolStr);

impl Digest {
    /// The digest of `bytes`.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        use sha2::Digest as _;
        Self(format!("sha256:{}", hex::encode(sha2::Sha256::digest(bytes))).into())
    }

    /// Reads the text form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
        let hex = text.strip_prefix("sha256:")?;
        (hex.len() == 64 && hex.bytes().all(is_hex)).then(|| Self(text.into()))
    }

    /// The text form.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text form, shared.
    #[must_use]
    pub fn word(&self) -> SmolStr {
        self.0.clone()
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Millionths of a US dollar.
#[derive(
    Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct MicroUsd(pub u64);

/// Where something was written: line and column count from 1.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
pub struct Place {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1, in characters.
    pub column: usize,
}

/// Text that may hold `${NAME}` or `${NAME:-default}`; resolved when it is used, never when it is read.
///
/// `$$` stands for one `$`. What a variable holds is not expanded again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Keeps the text as written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as written, unexpanded.
    #[must_use]
    pub fn as_written(&self) -> &str {
        &self.0
    }

    /// Every variable that it names, in order: the name, and whether a default stands in.
    #[must_use]
    pub fn variables(&self) -> Vec<(&str, bool)> {
        let (mut names, mut rest) = (Vec::new(), self.0.as_str());
        while let Some((_, after)) = rest.split_once('$') {
            rest = after.strip_prefix('$').unwrap_or(after);
            if let Some((name, tail)) = after.strip_prefix('{').and_then(|tail| tail.split_once('}')) {
                let (name, default) = name.split_once(":-").map_or((name, None), |(n, d)| (n, Some(d)));
                names.push((name, default.is_some()));
                rest = tail;
            }
        }
        names
    }

    /// Replaces every `${NAME}` by what `lookup` gives.
    ///
    /// # Errors
    /// The first variable that is unset and has no default.
    pub fn resolve(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, MissingVariable> {
        let mut out = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some(at) = rest.find('$') {
            let (before, after) = rest.split_at(at);
            out.push_str(before);
            if let Some(tail) = after.strip_prefix("$$") {
                out.push('$');
                rest = tail;
            } else if let Some((name, tail)) = after.strip_prefix("${").and_then(|t| t.split_once('}')) {
                let (name, default) = name.split_once(":-").map_or((name, None), |(n, d)| (n, Some(d)));
                match (lookup(name).filter(|v| !v.is_empty()), default) {
                    (Some(value), _) => out.push_str(&value),
                    (None, Some(value)) => out.push_str(value),
                    (None, None) => return Err(MissingVariable(name.to_owned())),
                }
                rest = tail;
            } else {
                out.push('$');
                rest = after.get(1..).unwrap_or_default();
            }
        }
        out.push_str(rest);
        Ok(out)
    }
}

/// A variable that a [`Template`] needs and the environment does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("environment variable `{0}` is not set (or is empty)")]
pub struct MissingVariable(pub String);

/// A [`Template`] whose value must never be shown: `Debug` and `Display` print `***`.
///
/// **Invariant:** no secret in a log, trace, record or error (DESIGN.md §5.9).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(Template);

impl Secret {
    /// Keeps the text as written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Template::new(text))
    }

    /// Every variable that it names, as [`Template::variables`].
    #[must_use]
    pub fn variables(&self) -> Vec<(&str, bool)> {
        self.0.variables()
    }

    /// The value for the one call that needs it.
    ///
    /// # Errors
    /// The variable that is unset.
    pub fn reveal(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, MissingVariable> {
        self.0.resolve(lookup)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
