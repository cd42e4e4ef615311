//! Responses in one SQLite file, beside the run records and apart from them: they are content, records are not.

use super::{KeptResponse, ResponseFault, ResponseLimits, ResponseStore, now};
use crate::database::{Database, count, integer};
use futures_util::future::BoxFuture;
use rusqlite::{OptionalExtension, Row, params};
use std::path::Path;

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
    database: Database,
}

impl SqliteResponses {
    /// Opens the file; creates it (and its folder) when it is not there, for its owner only.
    ///
    /// # Errors
    /// [`ResponseFault::Io`].
    pub fn open(path: &Path, limits: ResponseLimits) -> Result<Self, ResponseFault> {
        Ok(Self { limits, database: Database::open(path, SCHEMA)? })
    }

    /// A store that is gone with its last clone.
    ///
    /// # Errors
    /// [`ResponseFault::Io`].
    pub fn in_memory(limits: ResponseLimits) -> Result<Self, ResponseFault> {
        Ok(Self { limits, database: Database::in_memory(SCHEMA)? })
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
        self.database.ask(move |connection| {
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
        self.database.ask(move |connection| {
            let sql = "SELECT id, owner, created_at, settled, input, object FROM responses
                       WHERE id = ?1 AND created_at > ?2";
            Ok(connection.query_row(sql, params![id, horizon], read).optional()?)
        })
    }

    fn settle<'a>(&'a self, id: &'a str, object: String) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let (bytes, limit) = (object.len(), self.limits.max_response_bytes);
        if bytes > limit {
            return Box::pin(async move { Err(ResponseFault::TooLarge { bytes, limit }) });
        }
        let id = id.to_owned();
        self.database.ask(move |connection| {
            let sql = "UPDATE responses SET object = ?2, settled = 1 WHERE id = ?1 AND settled = 0";
            Ok(connection.execute(sql, params![id, object])? > 0)
        })
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let id = id.to_owned();
        self.database
            .ask(move |connection| Ok(connection.execute("DELETE FROM responses WHERE id = ?1", [id])? > 0))
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<KeptResponse> {
    Ok(KeptResponse {
        id: row.get(0)?,
        owner: row.get(1)?,
        created_at: count(row.get(2)?),
        settled: row.get(3)?,
        input: row.get(4)?,
        object: row.get(5)?,
    })
}
