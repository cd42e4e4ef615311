//! What can go wrong in the lab.
//!
//! It knows no dataset. Invariant: a fault of a file names the file, and the line where there is one.

use std::path::{Path, PathBuf};

use chorus_infer::{EncodeFault, HeadFault};

/// Why a training run stopped.
#[derive(Debug, thiserror::Error)]
pub enum LabFault {
    /// A file cannot be read or written.
    #[error("{}: {cause}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file's content is not what the task needs.
    #[error("{}:{line}: {message}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// Line, counted from 1.
        line: usize,
        /// What is wrong with it.
        message: String,
    },
    /// The encoder refused a text.
    #[error(transparent)]
    Encode(#[from] EncodeFault),
    /// The trained weights make no head.
    #[error(transparent)]
    Head(#[from] HeadFault),
    /// The trained tables make no selector.
    #[error(transparent)]
    Selector(#[from] chorus_select::ArtifactFault),
    /// A class has no example.
    #[error("no training example of class {0}")]
    EmptyClass(String),
}

impl LabFault {
    pub(crate) fn file(path: &Path, cause: std::io::Error) -> Self {
        Self::File { path: path.to_owned(), cause }
    }

    pub(crate) fn content(path: &Path, line: usize, message: &dyn std::fmt::Display) -> Self {
        Self::Content { path: path.to_owned(), line, message: message.to_string() }
    }
}
