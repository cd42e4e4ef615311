//! Files of users and operators, vector stores, and the passages by which files are found.
//!
//! It knows bytes, texts and vectors, not what is in them; who may see what is an argument. Names and shapes follow the
//! API of OpenAI. **Invariant:** a question on behalf of somebody reaches what is theirs, and nothing else.

mod elsewhere;
mod files;
mod search;
mod stores;

pub use files::{NewFile, StoredFile};
pub use search::{Hit, Question};
pub use stores::{Attached, AttachedFile, NewPassage, Progress, VectorStore};

use crate::database::Database;
use crate::qdrant::QdrantLink;
use crate::recall_fault::RecallFault;
use chorus_vectors::Exact;
use elsewhere::Elsewhere;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS files (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT,
        name TEXT NOT NULL,
        purpose TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        content BLOB NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS files_by_owner ON files (owner, id);
    CREATE TABLE IF NOT EXISTS vector_stores (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT,
        name TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        metadata TEXT NOT NULL,
        revision INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS vector_stores_by_owner ON vector_stores (owner, id);
    CREATE TABLE IF NOT EXISTS attached (
        store TEXT NOT NULL REFERENCES vector_stores (id) ON DELETE CASCADE,
        file TEXT NOT NULL REFERENCES files (id) ON DELETE CASCADE,
        status TEXT NOT NULL,
        error TEXT,
        created_at INTEGER NOT NULL,
        attributes TEXT NOT NULL,
        max_tokens INTEGER NOT NULL,
        overlap_tokens INTEGER NOT NULL,
        bytes INTEGER NOT NULL,
        PRIMARY KEY (store, file)
    ) STRICT;
    CREATE TABLE IF NOT EXISTS passages (
        key INTEGER PRIMARY KEY,
        store TEXT NOT NULL,
        file TEXT NOT NULL,
        place INTEGER NOT NULL,
        text TEXT NOT NULL,
        encoder TEXT NOT NULL,
        vector BLOB NOT NULL,
        FOREIGN KEY (store, file) REFERENCES attached (store, file) ON DELETE CASCADE
    ) STRICT;
    CREATE INDEX IF NOT EXISTS passages_by_store ON passages (store, file);
    PRAGMA foreign_keys = ON;
    UPDATE attached SET status = 'failed', error = 'the server stopped while the file was read'
        WHERE status = 'in_progress';";

/// On whose behalf a question is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Whose {
    /// An operator's: everything.
    All,
    /// A caller's: what is that caller's; `None` is nobody's.
    Of(Option<String>),
    /// A route's, for a caller: what is the caller's, and what is nobody's.
    SharedOr(Option<String>),
}

impl Whose {
    /// Whether that owner's things are within reach.
    fn reaches(&self, owner: Option<&str>) -> bool {
        match self {
            Self::All => true,
            Self::Of(user) => owner == user.as_deref(),
            Self::SharedOr(user) => owner.is_none() || owner == user.as_deref(),
        }
    }
}

/// Bounds, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct DocumentLimits {
    /// Largest file (`max_file_size_mb`, default 64 MiB).
    pub max_file_bytes: usize,
    /// Most files of one owner (`max_files`, default 1,000).
    pub max_files: u64,
    /// Most bytes of one owner's files together (`max_owner_bytes`, default 1 GiB).
    pub max_owner_bytes: u64,
    /// Most vector stores of one owner (`max_vector_stores`, default 100).
    pub max_vector_stores: u64,
    /// Most passages of one vector store (`max_entries_per_store`, default 100,000).
    pub max_passages: u64,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self {
            max_file_bytes: 64 << 20,
            max_files: 1000,
            max_owner_bytes: 1 << 30,
            max_vector_stores: 100,
            max_passages: 100_000,
        }
    }
}

/// Vectors of one store as they were at one revision.
#[derive(Debug, Clone)]
struct Loaded {
    revision: i64,
    encoder: String,
    vectors: Arc<Exact>,
    /// Counts uses, to know the one that was not used for longest.
    used: u64,
}

/// Files and vector stores in one SQLite file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Documents {
    database: Database,
    loaded: Arc<Mutex<BTreeMap<String, Loaded>>>,
    /// Where passages are, if not in the file.
    elsewhere: Option<Arc<Elsewhere>>,
}

impl Documents {
    pub(crate) fn over(database: Database) -> Self {
        Self { database, loaded: Arc::default(), elsewhere: None }
    }
}

impl Documents {
    /// These documents, with their passages in collections of that server, whose names begin with the prefix.
    #[must_use]
    pub fn with_passages_in(&self, link: Arc<dyn QdrantLink>, prefix: &str) -> Self {
        Self { elsewhere: Some(Arc::new(Elsewhere::new(link, prefix))), ..self.clone() }
    }
}

/// A bound that would be passed, if it would.
fn bounded(value: u64, limit: u64, what: &'static str, bound: &'static str) -> Result<(), RecallFault> {
    if value > limit { Err(RecallFault::Bound { what, bound, limit }) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
