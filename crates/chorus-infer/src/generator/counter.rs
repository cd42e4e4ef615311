//! Counting tokens by the vocabulary of a model file, without its weights.
//!
//! It reads a file's metadata and no tensor. Invariant: a text has the same count here as in a loaded [`Generator`] of
//! the same file.
//!
//! [`Generator`]: super::Generator

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use candle_core::quantized::gguf_file::Content;

use super::fault::GenerateFault;
use super::gguf::Metadata;
use super::tokens::Vocabulary;

/// The vocabulary of a model file.
#[derive(Debug)]
pub struct TokenCounter {
    vocabulary: Vocabulary,
}

impl TokenCounter {
    /// Reads the vocabulary of a GGUF file.
    ///
    /// # Errors
    /// [`GenerateFault::File`] or [`GenerateFault::Unsupported`].
    pub fn open(path: &Path) -> Result<Self, GenerateFault> {
        let fault =
            |cause: &dyn std::fmt::Display| GenerateFault::File(format!("{}: {cause}", path.display()));
        let mut reader = BufReader::new(File::open(path).map_err(|cause| fault(&cause))?);
        let content = Content::read(&mut reader).map_err(|cause| fault(&cause))?;
        Ok(Self { vocabulary: Vocabulary::read(Metadata(&content))? })
    }

    /// Tokens of a text; special tokens spelled in it count as text.
    #[must_use]
    pub fn count(&self, text: &str) -> usize {
        self.vocabulary.count(text)
    }
}
