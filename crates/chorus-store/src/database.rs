//! One SQLite file (or none, in memory) behind a thread that may wait for a disk.
//!
//! It knows no table. **Invariant:** a file of its own making can be read by its owner only.

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(5);

/// Why the file cannot be used. It becomes a fault of the store that asked.
#[derive(Debug)]
pub(crate) struct Unusable(pub(crate) String);

/// One file. Cloning shares it.
#[derive(Debug, Clone)]
pub(crate) struct Database(Arc<Mutex<Connection>>);

impl Database {
    /// Opens the file; creates it (and its folder) when it is not there.
    pub(crate) fn open(path: &Path, schema: &str) -> Result<Self, Unusable> {
        let at = |why: &dyn std::fmt::Display| Unusable(format!("{}: {why}", path.display()));
        crate::sqlite::create(path).map_err(|e| at(&e))?;
        let connection = Connection::open(path).map_err(|e| at(&e))?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| at(&e))?;
        Self::over(connection, schema)
    }

    /// One that is gone with its last clone.
    pub(crate) fn in_memory(schema: &str) -> Result<Self, Unusable> {
        Self::over(Connection::open_in_memory()?, schema)
    }

    fn over(connection: Connection, schema: &str) -> Result<Self, Unusable> {
        connection.busy_timeout(BUSY)?;
        connection.execute_batch(schema)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// On a thread that may wait for a disk.
    pub(crate) fn ask<T: Send + 'static, E: From<Unusable> + Send + 'static>(
        &self,
        question: impl FnOnce(&mut Connection) -> Result<T, E> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, E>> {
        let connection = Arc::clone(&self.0);
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                question(&mut connection.lock().unwrap_or_else(PoisonError::into_inner))
            });
            asked.await.map_err(|why| Unusable(why.to_string()))?
        })
    }
}

impl From<rusqlite::Error> for Unusable {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

/// SQLite knows signed integers only.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A count that was written as [`integer`].
pub(crate) fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// A new name.
pub(crate) fn new_id(prefix: &str) -> String {
    format!("{prefix}{}", uuid::Uuid::now_v7().simple())
}
