//! Where a configuration came from, and how the file is read and written.
//!
//! **Invariant:** a reader of the file sees the old text or the new one, never a part of either.

use super::fault::Refusal;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Where a configuration came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The program itself: there is nothing to read again or to write.
    BuiltIn,
    /// A file.
    File(PathBuf),
}

impl Origin {
    /// The file, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Self::BuiltIn => None,
            Self::File(path) => Some(path),
        }
    }

    pub(super) fn read(&self) -> Result<String, Refusal> {
        let path = self.path().ok_or(Refusal::NotWritable)?;
        fs::read_to_string(path).map_err(|fault| Refusal::Unreadable(at(path, &fault)))
    }

    /// Puts a text in the file's place. A link stays, and what it points to is replaced; permissions stay.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let Some(path) = self.path() else {
            return Err(io::Error::other("there is no file"));
        };
        let path = fs::canonicalize(path).map_err(|fault| at(path, &fault))?;
        let permissions = fs::metadata(&path).map_err(|fault| at(&path, &fault))?.permissions();
        publish(&path, text, Some(permissions)).map_err(|fault| at(&path, &fault))
    }
}

/// Writes a file whole: beside its place, flushed, then renamed into it.
pub(super) fn publish(path: &Path, text: &str, permissions: Option<fs::Permissions>) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut fresh = NamedTempFile::new_in(folder)?;
    fresh.write_all(text.as_bytes())?;
    if let Some(permissions) = permissions {
        fresh.as_file().set_permissions(permissions)?;
    }
    fresh.as_file().sync_all()?;
    fresh.persist(path).map_err(|fault| fault.error)?;
    // The rename itself is on disk only once its folder is.
    File::open(folder)?.sync_all()
}

fn at(path: &Path, fault: &io::Error) -> io::Error {
    io::Error::new(fault.kind(), format!("{}: {fault}", path.display()))
}
