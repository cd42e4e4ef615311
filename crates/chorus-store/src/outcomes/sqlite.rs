//! Outcomes in one SQLite file, beside the run records.

use super::{Outcome, OutcomeFault, OutcomeMark, OutcomeStore, Told};
use crate::RunId;
use crate::database::{Database, integer};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};
use serde::Serialize;
use std::path::Path;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS outcomes (
        key TEXT NOT NULL PRIMARY KEY,
        run TEXT NOT NULL,
        judged TEXT NOT NULL,
        outcome TEXT NOT NULL,
        UNIQUE (run, judged)
    ) STRICT;";

/// Outcomes in one file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct SqliteOutcomes(Database);

impl SqliteOutcomes {
    /// Opens the file; creates it (and its folder) when it is not there, for its owner only.
    ///
    /// # Errors
    /// [`OutcomeFault::Io`].
    pub fn open(path: &Path) -> Result<Self, OutcomeFault> {
        Ok(Self(Database::open(path, SCHEMA)?))
    }

    /// A store that is gone with its last clone.
    ///
    /// # Errors
    /// [`OutcomeFault::Io`].
    pub fn in_memory() -> Result<Self, OutcomeFault> {
        Ok(Self(Database::in_memory(SCHEMA)?))
    }
}

impl OutcomeStore for SqliteOutcomes {
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>> {
        self.0.ask(move |connection| {
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
        self.0.ask(move |connection| {
            let sql = "SELECT outcome, rowid FROM outcomes WHERE run = ?1 ORDER BY rowid";
            Ok(all(connection, sql, params![run])?.into_iter().map(|(outcome, _)| outcome).collect())
        })
    }

    fn latest(&self, most: usize) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        let most = integer(most as u64);
        self.0.ask(move |connection| {
            let sql = "SELECT outcome, rowid FROM outcomes ORDER BY rowid DESC LIMIT ?1";
            Ok(OutcomeMark::default().on(all(connection, sql, params![most])?))
        })
    }

    fn after(
        &self,
        mark: OutcomeMark,
        most: usize,
    ) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>> {
        let most = integer(most as u64);
        self.0.ask(move |connection| {
            let sql = "SELECT outcome, rowid FROM outcomes WHERE rowid > ?1 ORDER BY rowid LIMIT ?2";
            Ok(mark.on(all(connection, sql, params![mark.0, most])?))
        })
    }
}

fn all(connection: &Connection, sql: &str, by: &[&dyn ToSql]) -> rusqlite::Result<Vec<(Outcome, i64)>> {
    connection.prepare_cached(sql)?.query_map(by, |row| Ok((read(row)?, row.get(1)?)))?.collect()
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
