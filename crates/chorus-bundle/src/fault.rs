//! Why a bundle is refused.
//!
//! It knows no file system. **Invariant:** every fault has a code of [`FAULT_CODES`], and docs/mom-spec.md explains each.

use crate::canonical::CanonicalFault;

/// One reason for which a bundle is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BundleFault {
    /// A file that the layout or a descriptor names is not there, or cannot be read.
    #[error("`{0}` is missing or cannot be read")]
    Missing(String),
    /// The bytes are not the ones that the digest names.
    #[error("`{name}` has the digest {found}, not {wanted}")]
    Digest {
        /// Of which file.
        name: String,
        /// As the descriptor says.
        wanted: String,
        /// As the bytes are.
        found: String,
    },
    /// More or fewer bytes than the descriptor says.
    #[error("`{name}` has {found} bytes, not {wanted}")]
    Size {
        /// Of which file.
        name: String,
        /// As the descriptor says.
        wanted: u64,
        /// As it is.
        found: u64,
    },
    /// More than a reader takes.
    #[error("`{name}` is beyond the bound of {most} {unit}")]
    TooLarge {
        /// Of which file.
        name: String,
        /// The bound.
        most: u64,
        /// Bytes, or files.
        unit: &'static str,
    },
    /// A name that would leave its folder, or that no system should write.
    #[error("the name `{name}` {why}")]
    Path {
        /// The name.
        name: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Made by a newer version of the format.
    #[error("`{what}` is of format {found}; this version reads up to {known}")]
    NewerFormat {
        /// Which document.
        what: String,
        /// Its format.
        found: u64,
        /// The newest one known.
        known: u64,
    },
    /// JSON that is not in canonical form.
    #[error("`{name}` is not canonical JSON: {why}")]
    NotCanonical {
        /// Of which file.
        name: String,
        /// Where and why.
        why: String,
    },
    /// Another kind of artifact.
    #[error("{what} is `{found}`, not `{wanted}`")]
    Kind {
        /// Which field.
        what: &'static str,
        /// As the format wants.
        wanted: &'static str,
        /// As it is.
        found: String,
    },
    /// A document without what the format demands of it.
    #[error("`{name}`: {why}")]
    Shape {
        /// Which document.
        name: String,
        /// What is wrong.
        why: String,
    },
    /// The interface or the graph says something that would not have been built.
    #[error("the policy does not hold together: {0}")]
    Policy(String),
    /// A tar file that cannot be read as one.
    #[error("not a bundle archive: {0}")]
    Archive(String),
}

/// Every code, with what it means.
pub const FAULT_CODES: [(&str, &str); 11] = [
    ("bundle-missing", "a file that the layout or a descriptor names is not there"),
    ("bundle-digest", "the bytes are not the ones that the digest names"),
    ("bundle-size", "more or fewer bytes than the descriptor says"),
    ("bundle-too-large", "more than a reader takes"),
    ("bundle-path", "a name that would leave its folder"),
    ("bundle-newer-format", "made by a newer version of the format"),
    ("bundle-not-canonical", "JSON that is not in canonical form"),
    ("bundle-kind", "another kind of artifact"),
    ("bundle-shape", "a document without what the format demands of it"),
    ("bundle-policy", "an interface and a graph that do not hold together"),
    ("bundle-archive", "a file that is no bundle archive"),
];

impl BundleFault {
    /// Its stable word.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Missing(_) => "bundle-missing",
            Self::Digest { .. } => "bundle-digest",
            Self::Size { .. } => "bundle-size",
            Self::TooLarge { .. } => "bundle-too-large",
            Self::Path { .. } => "bundle-path",
            Self::NewerFormat { .. } => "bundle-newer-format",
            Self::NotCanonical { .. } => "bundle-not-canonical",
            Self::Kind { .. } => "bundle-kind",
            Self::Shape { .. } => "bundle-shape",
            Self::Policy(_) => "bundle-policy",
            Self::Archive(_) => "bundle-archive",
        }
    }

    pub(crate) fn canonical(name: &str, fault: &CanonicalFault) -> Self {
        Self::NotCanonical { name: name.to_owned(), why: fault.to_string() }
    }

    pub(crate) fn shape(name: &str, why: impl Into<String>) -> Self {
        Self::Shape { name: name.to_owned(), why: why.into() }
    }
}
