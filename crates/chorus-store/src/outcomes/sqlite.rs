//! Outcomes in one SQLite file, beside the run records.

use super::{Outcome, OutcomeFault, OutcomeStore, Told};
use crate::RunId;
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::Serialize;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(5);

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS outcomes (
        key TEXT NOT NULL PRIMARY KEY,
        run TEXT NOT NULL,
        judged TEXT NOT NULL,
        outcome TEXT NOT NULL,
        UNIQUE (run, judged)
    ) STRICT;";

/// Outcomes in one file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct SqliteOutcomes {
    connection: Arc<Mutex<Connection>>,
}

impl SqliteOutcomes {
    /// Opens the file; creates it (and its folder) when it is not there, for its owner only.
    ///
    /// # Errors
    /// [`OutcomeFault::Io`].
    pub fn open(path: &Path) -> Result<Self, OutcomeFault> {
        let at = |why: &dyn std::fmt::Display| OutcomeFault::Io(format!("{}: {why}", path.display()));
        crate::sqlite::create(path).map_err(|e| at(&e))?;
        let connection = Connection::open(path).map_err(|e| at(&e))?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| at(&e))?;
        Self::over(connection)
    }

    /// A store that is gone with its last clone.
    ///
    /// # Errors
    /// [`OutcomeFault::Io`].
    pub fn in_memory() -> Result<Self, OutcomeFault> {
        Self::over(Connection::open_in_memory().map_err(|e| fault(&e))?)
    }

    fn over(connection: Connection) -> Result<Self, OutcomeFault> {
        connection.busy_timeout(BUSY).map_err(|e| fault(&e))?;
        connection.execute_batch(SCHEMA).map_err(|e| fault(&e))?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)) })
    }

    /// On a thread that may wait for a disk.
    fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> BoxFuture<'static, Result<T, OutcomeFault>> {
        let connection = Arc::clone(&self.connection);
        Box::pin(async move {
            let asked = tokio::task::spawn_blocking(move || {
                question(&connection.lock().unwrap_or_else(PoisonError::into_inner))
            });
            let answer = asked.await.map_err(|why| OutcomeFault::Io(why.to_string()))?;
            answer.map_err(|e| fault(&e))
        })
    }
}

impl OutcomeStore for SqliteOutcomes {
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
        self.ask(move |connection| {
            let text = json(&outcome)?;
            let sql = "INSERT INTO outcomes (key, run, judged, outcome) VALUES (?1, ?2, ?3, ?4)
                       ON CONFLICT DO NOTHING";
            let judged = json(&(outcome.target, &outcome.target_ref))?;
            if connection.execute(sql, params![key, outcome.run.to_string(), judged, text])? > 0 {
                return Ok(Told::New);
            }
            let sql = "SELECT outcome FROM outcomes WHERE key = ?1";
            let kept = connection.query_row(sql, [key], read).optional()?;
            let same = kept.is_some_and(|kept| outcome.says(&kept));
            Ok(if same { Told::Again } else { Told::Other })
        })
    }

    fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        let run = run.to_string();
        self.ask(move |connection| {
            all(connection, "SELECT outcome FROM outcomes WHERE run = ?1 ORDER BY rowid", &run)
        })
    }

    fn latest(&self, most: usize) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>> {
        let most = i64::try_from(most).unwrap_or(i64::MAX);
        self.ask(move |connection| {
            all(connection, "SELECT outcome FROM outcomes ORDER BY rowid DESC LIMIT ?1", &most)
        })
    }
}

fn all(connection: &Connection, sql: &str, by: &dyn ToSql) -> rusqlite::Result<Vec<Outcome>> {
    connection.prepare_cached(sql)?.query_map([by], read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<Outcome> {
    let text: String = row.get(0)?;
    serde_json::from_str(&text).map_err(|why| {
        rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, Box::new(why))
    })
}

fn json(value: &impl Serialize) -> rusqlite::Result<String> {
    serde_json::to_string(value).map_err(|why| rusqlite::Error::ToSqlConversionFailure(Box::new(why)))
}

fn fault(error: &rusqlite::Error) -> OutcomeFault {
    OutcomeFault::Io(error.to_string())
}
