//! Run records read off the file by another process than the one that writes it, as an operator's tools do.
//!
//! It knows the table `runs` and the few fields that it asks for.

use crate::line::Usage;
use anyhow::Context;
use rusqlite::{Connection, OpenFlags};
use serde::Deserialize;
use std::path::Path;

/// What a record says of one run.
#[derive(Debug, Deserialize)]
pub(crate) struct Kept {
    pub(crate) id: String,
    pub(crate) calls: Vec<KeptCall>,
}

/// What it says of one call.
#[derive(Debug, Deserialize)]
pub(crate) struct KeptCall {
    pub(crate) status: String,
    pub(crate) usage: Usage,
}

/// The file, read only.
pub(crate) struct Records(Connection);

impl Records {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).context("the records cannot be opened")?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        Ok(Self(connection))
    }

    /// Ids of runs that were committed after that row, and the last row.
    pub(crate) fn ids_after(&self, row: i64) -> anyhow::Result<(Vec<String>, i64)> {
        let mut query =
            self.0.prepare_cached("SELECT rowid, id FROM runs WHERE rowid > ?1 ORDER BY rowid")?;
        let rows = query.query_map([row], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))?;
        let mut last = row;
        let mut ids = Vec::new();
        for row in rows {
            let (number, id) = row?;
            last = number;
            ids.push(id);
        }
        Ok((ids, last))
    }

    /// Every record, one after the other.
    pub(crate) fn each(&self, mut look: impl FnMut(Kept)) -> anyhow::Result<()> {
        let mut query = self.0.prepare("SELECT record FROM runs")?;
        let mut rows = query.query([])?;
        while let Some(row) = rows.next()? {
            look(serde_json::from_str(&row.get::<_, String>(0)?)?);
        }
        Ok(())
    }

    /// What SQLite finds wrong with the file; `ok` where nothing is.
    pub(crate) fn check(&self) -> anyhow::Result<String> {
        Ok(self.0.query_row("PRAGMA quick_check", [], |row| row.get(0))?)
    }
}
