//! Memories in a SQLite file of this process.
//!
//! **Invariant:** as of the module above: every statement names the user.

use super::{KeepRule, Kept, Memory, MemoryStore, Statement};
use crate::database::{Database, count, integer, new_id};
use crate::recall_fault::RecallFault;
use chorus_vectors::{dot, from_bytes, to_bytes};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OptionalExtension, Row, params};

pub(crate) const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS memories (
        id TEXT NOT NULL PRIMARY KEY,
        user TEXT NOT NULL,
        text TEXT NOT NULL,
        encoder TEXT NOT NULL,
        vector BLOB NOT NULL,
        stated_at INTEGER NOT NULL,
        read_at INTEGER NOT NULL,
        reads INTEGER NOT NULL,
        run TEXT
    ) STRICT;
    CREATE INDEX IF NOT EXISTS memories_by_user ON memories (user, stated_at);";

const COLUMNS: &str = "id, user, text, stated_at, read_at, reads, run, vector";

/// Memories in one file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct SqliteMemories {
    database: Database,
}

impl SqliteMemories {
    pub(crate) fn over(database: Database) -> Self {
        Self { database }
    }
}

impl MemoryStore for SqliteMemories {
    fn keep(&self, it: Statement, rule: KeepRule) -> BoxFuture<'_, Result<Kept, RecallFault>> {
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            let known = of_user(&change, &it.user, Some(&it.encoder))?;
            let same = |memory: &&Memory| {
                memory.text == it.text || f64::from(dot(&memory.vector, &it.vector)) >= rule.same_cosine
            };
            let kept = match known.iter().find(same) {
                Some(memory) => {
                    let sql = "UPDATE memories SET text = ?3, vector = ?4, stated_at = ?5, run = ?6
                               WHERE id = ?1 AND user = ?2";
                    let vector = to_bytes(&it.vector);
                    change
                        .execute(sql, params![memory.id, it.user, it.text, vector, integer(it.at), it.run])?;
                    Kept::Known(memory.id.clone())
                }
                None => Kept::New(insert(&change, &it)?),
            };
            forget_weak(&change, &it.user, it.at, rule)?;
            change.commit()?;
            Ok(kept)
        };
        self.database.ask(question)
    }

    fn of<'a>(&'a self, user: &'a str, encoder: &'a str) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        let (user, encoder) = (user.to_owned(), encoder.to_owned());
        self.database.ask(move |connection| of_user(connection, &user, Some(&encoder)))
    }

    fn finds_by_vector(&self) -> bool {
        false
    }

    /// All of them: they are near enough as they are.
    fn near<'a>(
        &'a self,
        user: &'a str,
        encoder: &'a str,
        _: &'a [f32],
        _: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        self.of(user, encoder)
    }

    fn read<'a>(
        &'a self,
        user: &'a str,
        ids: Vec<String>,
        at: u64,
    ) -> BoxFuture<'a, Result<(), RecallFault>> {
        let user = user.to_owned();
        let question = move |connection: &mut Connection| {
            let sql = "UPDATE memories SET reads = reads + 1, read_at = ?3 WHERE id = ?1 AND user = ?2";
            let mut statement = connection.prepare(sql)?;
            for id in ids {
                statement.execute(params![id, user, integer(at)])?;
            }
            Ok(())
        };
        self.database.ask(question)
    }

    fn list<'a>(
        &'a self,
        user: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>> {
        let user = user.map(str::to_owned);
        let question = move |connection: &mut Connection| {
            let sql = format!(
                "SELECT {COLUMNS} FROM memories WHERE ?1 IS NULL OR user = ?1
                 ORDER BY stated_at DESC, id DESC LIMIT ?2"
            );
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map(params![user, integer(limit as u64)], row)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        };
        self.database.ask(question)
    }

    fn get<'a>(
        &'a self,
        user: Option<&'a str>,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Memory>, RecallFault>> {
        let (user, id) = (user.map(str::to_owned), id.to_owned());
        let question = move |connection: &mut Connection| {
            let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1 AND (?2 IS NULL OR user = ?2)");
            Ok(connection.query_row(&sql, params![id, user], row).optional()?)
        };
        self.database.ask(question)
    }

    fn forget<'a>(&'a self, user: Option<&'a str>, id: &'a str) -> BoxFuture<'a, Result<bool, RecallFault>> {
        let (user, id) = (user.map(str::to_owned), id.to_owned());
        let question = move |connection: &mut Connection| {
            let sql = "DELETE FROM memories WHERE id = ?1 AND (?2 IS NULL OR user = ?2)";
            Ok(connection.execute(sql, params![id, user])? > 0)
        };
        self.database.ask(question)
    }

    fn forget_all<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<usize, RecallFault>> {
        let user = user.to_owned();
        let question = move |connection: &mut Connection| {
            Ok(connection.execute("DELETE FROM memories WHERE user = ?1", [user])?)
        };
        self.database.ask(question)
    }
}

fn of_user(connection: &Connection, user: &str, encoder: Option<&str>) -> Result<Vec<Memory>, RecallFault> {
    let sql = format!(
        "SELECT {COLUMNS} FROM memories WHERE user = ?1 AND (?2 IS NULL OR encoder = ?2)
         ORDER BY stated_at DESC, id DESC"
    );
    let mut statement = connection.prepare(&sql)?;
    let rows = statement.query_map(params![user, encoder], row)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn insert(connection: &Connection, it: &Statement) -> Result<String, RecallFault> {
    let id = new_id("mem_");
    let sql = "INSERT INTO memories (id, user, text, encoder, vector, stated_at, read_at, reads, run)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6, 0, ?7)";
    let vector = to_bytes(&it.vector);
    connection.execute(sql, params![id, it.user, it.text, it.encoder, vector, integer(it.at), it.run])?;
    Ok(id)
}

/// Memories that are too weak, and the weakest of those that are too many.
fn forget_weak(connection: &Connection, user: &str, now: u64, rule: KeepRule) -> Result<(), RecallFault> {
    let all = of_user(connection, user, None)?;
    if all.len() <= rule.most && rule.least_strength <= 0.0 {
        return Ok(());
    }
    for id in rule.weak(all, now) {
        connection.execute("DELETE FROM memories WHERE id = ?1 AND user = ?2", params![id, user])?;
    }
    Ok(())
}

fn row(row: &Row<'_>) -> rusqlite::Result<Memory> {
    Ok(Memory {
        id: row.get(0)?,
        user: row.get(1)?,
        text: row.get(2)?,
        stated_at: count(row.get(3)?),
        read_at: count(row.get(4)?),
        reads: count(row.get(5)?),
        run: row.get(6)?,
        vector: from_bytes(&row.get::<_, Vec<u8>>(7)?),
    })
}
