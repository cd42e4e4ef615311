//! Responses in one SQLite file, beside the run records and apart from them: they are content, records are not.

use super::{KeptResponse, ResponseFault, ResponseLimits, ResponseStore, now};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS responses (
        id TEXT NOT NULL PRIMARY KEY,
        owner TEXT,
        created_at INTEGER NOT NULL,
        settled INTEGER NOT NULL,
        input TEXT NOT NULL,
        object TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS responses_by_age ON responses (created_at);";

/// Responses in one file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct SqliteResponses {
    limits: ResponseLimits,
    connection: Arc<Mutex<Connection>>,
}

impl SqliteResponses {
    /// Opens the file; creates it (and its folder) when it is not there, for its owner only.
    ///
    /// # Errors
    /// [`ResponseFault::Io`].
    pub fn open(path: &Path, limits: ResponseLimits) -> Result<Self, ResponseFault> {
        let at = |why: &dyn std::fmt::Display| ResponseFault::Io(format!("{}: {why}", path.display()));
        crate::sqlite::create(path).map_err(|e| at(&e))?;
        let connection = Connection::open(path).map_err(|e| at(&e))?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| at(&e))?;
        Self::over(connection, limits)
    }

    /// A store that is gone with its last clone.
    ///
    /// # Errors
    /// [`ResponseFault::Io`].
    pub fn in_memory(limits: ResponseLimits) -> Result<Self, ResponseFault> {
        Self::over(Connection::open_in_memory().map_err(|e| fault(&e))?, limits)
    }

    fn over(connection: Connection, limits: ResponseLimits) -> Result<Self, ResponseFault> {
        connection.busy_timeout(BUSY).map_err(|e| fault(&e))?;
        connection.execute_batch(SCHEMA).map_err(|e| fault(&e))?;
        Ok(Self { limits, connection: Arc::new(Mutex::new(connection)) })
    }

    /// On a thread that may wait for a disk.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, ResponseFault>> {
        let connection = Arc::clone(&self.connection);
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                question(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            });
            let answer = asked.await.map_err(|why| ResponseFault::Io(why.to_string()))?;
            answer.map_err(|e| fault(&e))
        })
    }

    /// The oldest that is still kept, in seconds since 1970.
    fn horizon(&self) -> i64 {
        integer(now().saturating_sub(self.limits.ttl.as_secs()))
    }
}

impl ResponseStore for SqliteResponses {
    fn put(&self, response: KeptResponse) -> BoxFuture<'_, Result<(), ResponseFault>> {
        if let Err(fault) = response.check(&self.limits) {
            return Box::pin(async { Err(fault) });
        }
        let (horizon, most) = (self.horizon(), integer(self.limits.max_responses as u64));
        self.ask(move |connection| {
            let it = &response;
            connection.execute(
                "INSERT OR REPLACE INTO responses (id, owner, created_at, settled, input, object)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![it.id, it.owner, integer(it.created_at), it.settled, it.input, it.object],
            )?;
            connection.execute("DELETE FROM responses WHERE created_at <= ?1", [horizon])?;
            connection.execute(
                "DELETE FROM responses WHERE id IN
                 (SELECT id FROM responses ORDER BY created_at DESC, id DESC LIMIT -1 OFFSET ?1)",
                [most],
            )?;
            Ok(())
        })
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<KeptResponse>, ResponseFault>> {
        let (id, horizon) = (id.to_owned(), self.horizon());
        self.ask(move |connection| {
            let sql = "SELECT id, owner, created_at, settled, input, object FROM responses
                       WHERE id = ?1 AND created_at > ?2";
            connection.query_row(sql, params![id, horizon], read).optional()
        })
    }

    fn settle<'a>(&'a self, id: &'a str, object: String) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let (bytes, limit) = (object.len(), self.limits.max_response_bytes);
        if bytes > limit {
            return Box::pin(async move { Err(ResponseFault::TooLarge { bytes, limit }) });
        }
        let id = id.to_owned();
        self.ask(move |connection| {
            let sql = "UPDATE responses SET object = ?2, settled = 1 WHERE id = ?1 AND settled = 0";
            Ok(connection.execute(sql, params![id, object])? > 0)
        })
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let id = id.to_owned();
        self.ask(move |connection| Ok(connection.execute("DELETE FROM responses WHERE id = ?1", [id])? > 0))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptResponse> {
    Ok(KeptResponse {
        id: row.get(0)?,
        owner: row.get(1)?,
        created_at: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        settled: row.get(3)?,
        input: row.get(4)?,
        object: row.get(5)?,
    })
}

/// SQLite knows signed integers only.
fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn fault(error: &rusqlite::Error) -> ResponseFault {
    ResponseFault::Io(error.to_string())
}
