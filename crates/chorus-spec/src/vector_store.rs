//! What `global.stores.vector_store` says: files and vector stores of this process.
//!
//! It knows bounds, not files.

use crate::QdrantPlace;

/// Files and vector stores of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorStoreSettings {
    /// Whether files can be stored although no route looks anything up.
    pub enabled: bool,
    /// Largest file; default 64 MiB (`max_file_size_mb`).
    pub max_file_bytes: usize,
    /// Most passages of one vector store; default 100,000 (`memory.max_entries_per_store`).
    pub max_chunks_per_store: usize,
    /// Kinds of files that text is read from.
    pub formats: Vec<DocumentFormat>,
    /// The server that keeps passages and their vectors; `None` is the store of this process, which keeps the files in either
    /// case.
    pub server: Option<Box<QdrantPlace>>,
}

/// Kinds of files that text is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentFormat {
    /// Plain text, also source code.
    Text,
    /// Markdown.
    Markdown,
    /// JSON and lines of JSON.
    Json,
    /// Comma-separated values.
    Csv,
}

impl DocumentFormat {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Text, Self::Markdown, Self::Json, Self::Csv];
}

impl Default for VectorStoreSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            max_file_bytes: 64 << 20,
            max_chunks_per_store: 100_000,
            formats: DocumentFormat::ALL.to_vec(),
            server: None,
        }
    }
}
