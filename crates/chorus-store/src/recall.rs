//! What can be found again, in one SQLite file beside the run records: memories of users, and files with their passages.
//!
//! Both are content, and stand apart from the records, which are not.

use crate::database::Database;
use crate::documents::{self, Documents};
use crate::memories::{self, MemoryStore, SqliteMemories};
use crate::recall_fault::RecallFault;
use std::path::Path;
use std::sync::Arc;

/// Memories and documents of one process. Cloning shares them.
#[derive(Debug, Clone)]
pub struct Recall {
    /// What users have stated.
    pub memories: Arc<dyn MemoryStore>,
    /// Files, vector stores and their passages.
    pub documents: Documents,
}

impl Recall {
    /// Opens the file; creates it (and its folder) when it is not there, for its owner only.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub fn open(path: &Path) -> Result<Self, RecallFault> {
        let database = Database::open(path, &schema())?;
        Ok(Self::over(&database))
    }

    /// One that is gone with its last clone.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub fn in_memory() -> Result<Self, RecallFault> {
        Ok(Self::over(&Database::in_memory(&schema())?))
    }

    fn over(database: &Database) -> Self {
        Self {
            memories: Arc::new(SqliteMemories::over(database.clone())),
            documents: Documents::over(database.clone()),
        }
    }
}

fn schema() -> String {
    [memories::SCHEMA, documents::SCHEMA].concat()
}
