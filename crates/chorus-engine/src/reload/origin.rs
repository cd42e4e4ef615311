//! Where a configuration came from, and how the file is read and written.
//!
//! **Invariant:** a reader of the file sees the old text or the new one, never a part of either.

use super::fault::Refusal;
use crate::artifact::Artifact;
use crate::publish::publish;
use chorus_spec::{Diagnostic, dsl};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What a bundle under a binding is to the engine: documents to serve side by side.
#[derive(Debug, Clone)]
pub struct Offer {
    /// The document that any name leads to.
    pub first: Offered,
    /// Documents for operating points, and for other bundles.
    pub others: Vec<Offered>,
}

impl Offer {
    /// One document.
    #[must_use]
    pub fn of(text: String) -> Self {
        let artifact = Artifact::implied_by(&text);
        Self { first: Offered { text, artifact, folder: None }, others: Vec::new() }
    }
}

/// One document of an offer.
#[derive(Debug, Clone)]
pub struct Offered {
    /// A v0.3 text.
    pub text: String,
    /// What it is of.
    pub artifact: Artifact,
    /// Where files that it names are looked for; `None` leaves that to the process.
    pub folder: Option<PathBuf>,
}

/// Where bundles, bindings and locks are read, and read again.
pub trait Shelf: Send + Sync {
    /// The files and folders that say something new when they change.
    fn files(&self) -> &[PathBuf];

    /// What is to be served.
    ///
    /// # Errors
    /// Why it is refused.
    fn offer(&self) -> Result<Offer, Refusal>;
}

/// A shelf that a configuration came from.
#[derive(Clone)]
pub struct Bundles(pub Arc<dyn Shelf>);

impl std::fmt::Debug for Bundles {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Bundles").field(&self.0.files()).finish()
    }
}

impl PartialEq for Bundles {
    fn eq(&self, other: &Self) -> bool {
        self.0.files() == other.0.files()
    }
}

impl Eq for Bundles {}

/// Where a configuration came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program itself: there is nothing to read again or to write.
    BuiltIn,
    /// A file.
    File(PathBuf),
    /// A policy in the policy language and the file that it is laid over. Its text is what it compiles to, so it can be
    /// read again and not written.
    Policy {
        /// The policy.
        file: PathBuf,
        /// What holds what a policy does not say.
        base: PathBuf,
    },
    /// Bundles under their bindings: read again, and not written.
    Bundles(Bundles),
}

impl Origin {
    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::BuiltIn | Self::Bundles(_) => None,
            Self::File(path) | Self::Policy { file: path, .. } => Some(path),
        }
    }

    /// Every file that it is read from.
    #[must_use]
    pub fn files(&self) -> Vec<&Path> {
        match self {
            Self::Policy { file, base } => vec![file, base],
            Self::Bundles(bundles) => bundles.0.files().iter().map(PathBuf::as_path).collect(),
            other => other.path().into_iter().collect(),
        }
    }

    /// Whether a text can take its place.
    pub(super) fn is_writable(&self) -> bool {
        matches!(self, Self::File(_))
    }

    /// What there is to be served.
    pub(super) fn offer(&self) -> Result<Offer, Refusal> {
        match self {
            Self::Bundles(bundles) => bundles.0.offer(),
            other => other.read().map(Offer::of),
        }
    }

    /// The v0.3 text; of a policy, what it compiles to.
    pub(super) fn read(&self) -> Result<String, Refusal> {
        match self {
            Self::BuiltIn => Err(Refusal::NotWritable),
            Self::Bundles(bundles) => bundles.0.offer().map(|offer| offer.first.text),
            Self::File(path) => text_of(path),
            Self::Policy { file, base } => {
                let reading = dsl::read(&text_of(file)?, Some(&text_of(base)?));
                if !reading.has_errors() {
                    return Ok(reading.document.to_yaml());
                }
                let (file, base) = (file.display().to_string(), base.display().to_string());
                let own = reading.diagnostics.into_iter().map(|it| in_file(it, &file));
                let below = reading.base_diagnostics.into_iter().map(|it| in_file(it, &base));
                Err(Refusal::Rejected(own.chain(below).collect()))
            }
        }
    }

    /// Puts a text in the file's place. A link stays, and what it points to is replaced; permissions stay.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let Some(path) = self.path().filter(|_| self.is_writable()) else {
            return Err(io::Error::other("there is no file that a configuration could be written to"));
        };
        let path = fs::canonicalize(path).map_err(|fault| at(path, &fault))?;
        let permissions = fs::metadata(&path).map_err(|fault| at(&path, &fault))?.permissions();
        publish(&path, text.as_bytes(), Some(permissions)).map_err(|fault| at(&path, &fault))
    }
}

fn text_of(path: &Path) -> Result<String, Refusal> {
    fs::read_to_string(path).map_err(|fault| Refusal::Unreadable(at(path, &fault)))
}

/// Says which of two files a finding is of.
fn in_file(found: Diagnostic, file: &str) -> Diagnostic {
    Diagnostic { message: format!("{file}: {}", found.message), ..found }
}

fn at(path: &Path, fault: &io::Error) -> io::Error {
    io::Error::new(fault.kind(), format!("{}: {fault}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: &str =
        "version: v0.3\nproviders:\n  models: [{ name: m, backend_refs: [{ endpoint: \"h:1\" }] }]\n";

    fn policy(text: &str) -> (tempfile::TempDir, Origin) {
        let folder = tempfile::tempdir().unwrap();
        let (file, base) = (folder.path().join("p.dsl"), folder.path().join("base.yaml"));
        fs::write(&file, text).unwrap();
        fs::write(&base, BASE).unwrap();
        (folder, Origin::Policy { file, base })
    }

    #[test]
    fn a_policy_is_read_as_what_it_compiles_to_and_not_written() {
        let (_folder, origin) = policy("ROUTE all { MODEL \"m\" }\n");
        let text = origin.read().unwrap();
        let spec = chorus_spec::read(&text).spec.unwrap();
        assert_eq!(spec.recipes[0].decisions[0].name, "all");
        assert_eq!(origin.files().len(), 2);
        assert!(!origin.is_writable() && origin.write(&text).is_err());
    }

    #[test]
    fn what_is_wrong_with_a_policy_names_its_file_and_its_line() {
        let (_folder, origin) = policy("ROUTE all {\n  MODEL \"nobody\"\n}\n");
        let refusal = origin.read().unwrap_err();
        let [found] = refusal.diagnostics() else { panic!("{refusal}") };
        assert_eq!((found.place.line, found.code), (2, "unknown-reference"));
        assert!(found.message.contains("p.dsl: "), "{}", found.message);
    }
}
