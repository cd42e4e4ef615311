//! What users have stated, with the vectors by which it is found: each memory belongs to one user.
//!
//! It knows texts and vectors, not what they mean nor where they come from; times and rules are arguments.
//! **Invariant:** no question reaches a memory of another user than the one that it names.

use crate::database::{Database, count, integer, new_id};
use crate::recall_fault::RecallFault;
use chorus_recall::reflect::strength;
use chorus_recall::vector::{dot, from_bytes, to_bytes};
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

/// A memory.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Memory {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// What was stated.
    pub text: String,
    /// When it was stated last, in seconds since 1970.
    pub stated_at: u64,
    /// When it was shown to a model last, in seconds since 1970.
    pub read_at: u64,
    /// How often it was shown to a model.
    pub reads: u64,
    /// The run in which it was stated last.
    pub run: Option<String>,
    /// Its vector, of unit length.
    #[serde(skip)]
    pub vector: Vec<f32>,
}

/// A statement to be remembered.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Whose it is.
    pub user: String,
    /// What was stated.
    pub text: String,
    /// Digest of the encoder that made the vector.
    pub encoder: String,
    /// Its vector, of unit length.
    pub vector: Vec<f32>,
    /// Now, in seconds since 1970.
    pub at: u64,
    /// The run in which it was stated.
    pub run: Option<String>,
}

/// When a statement is new, and what makes room for it.
#[derive(Debug, Clone, Copy)]
pub struct KeepRule {
    /// Cosine from which two statements say the same.
    pub same_cosine: f64,
    /// Most memories of one user; the weakest make room.
    pub most: usize,
    /// Days that a memory nobody reads is strong for (`initial_strength_days`).
    pub initial_days: f64,
    /// Strength below which a memory is forgotten; 0 forgets none.
    pub least_strength: f64,
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is a new memory.
    New(String),
    /// This memory says the same, and is as fresh as if it had been stated now.
    Known(String),
}

/// Memories in one file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Memories {
    database: Database,
}

impl Memories {
    pub(crate) fn over(database: Database) -> Self {
        Self { database }
    }

    /// Remembers a statement.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn keep(&self, it: Statement, rule: KeepRule) -> Result<Kept, RecallFault> {
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
        self.database.ask(question).await
    }

    /// All memories of a user that this encoder made, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn of(&self, user: &str, encoder: &str) -> Result<Vec<Memory>, RecallFault> {
        let (user, encoder) = (user.to_owned(), encoder.to_owned());
        self.database.ask(move |connection| of_user(connection, &user, Some(&encoder))).await
    }

    /// Notes that memories of a user were shown to a model.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn read(&self, user: &str, ids: Vec<String>, at: u64) -> Result<(), RecallFault> {
        let user = user.to_owned();
        let question = move |connection: &mut Connection| {
            let sql = "UPDATE memories SET reads = reads + 1, read_at = ?3 WHERE id = ?1 AND user = ?2";
            let mut statement = connection.prepare(sql)?;
            for id in ids {
                statement.execute(params![id, user, integer(at)])?;
            }
            Ok(())
        };
        self.database.ask(question).await
    }

    /// Memories of a user, or of all where none is named, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn list(&self, user: Option<&str>, limit: usize) -> Result<Vec<Memory>, RecallFault> {
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
        self.database.ask(question).await
    }

    /// One memory, of that user where one is named.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn get(&self, user: Option<&str>, id: &str) -> Result<Option<Memory>, RecallFault> {
        let (user, id) = (user.map(str::to_owned), id.to_owned());
        let question = move |connection: &mut Connection| {
            let sql = format!("SELECT {COLUMNS} FROM memories WHERE id = ?1 AND (?2 IS NULL OR user = ?2)");
            Ok(connection.query_row(&sql, params![id, user], row).optional()?)
        };
        self.database.ask(question).await
    }

    /// Forgets one memory, of that user where one is named; whether it was there.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn forget(&self, user: Option<&str>, id: &str) -> Result<bool, RecallFault> {
        let (user, id) = (user.map(str::to_owned), id.to_owned());
        let question = move |connection: &mut Connection| {
            let sql = "DELETE FROM memories WHERE id = ?1 AND (?2 IS NULL OR user = ?2)";
            Ok(connection.execute(sql, params![id, user])? > 0)
        };
        self.database.ask(question).await
    }

    /// Forgets all memories of a user; how many there were.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn forget_all(&self, user: &str) -> Result<usize, RecallFault> {
        let user = user.to_owned();
        let question = move |connection: &mut Connection| {
            Ok(connection.execute("DELETE FROM memories WHERE user = ?1", [user])?)
        };
        self.database.ask(question).await
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
    let mut all = of_user(connection, user, None)?;
    if all.len() <= rule.most && rule.least_strength <= 0.0 {
        return Ok(());
    }
    let power = |memory: &Memory| {
        let idle = now.saturating_sub(memory.stated_at.max(memory.read_at));
        strength(idle, memory.reads, rule.initial_days)
    };
    all.sort_by(|a, b| power(b).total_cmp(&power(a)));
    for (place, memory) in all.iter().enumerate() {
        if place >= rule.most || power(memory) < rule.least_strength {
            connection
                .execute("DELETE FROM memories WHERE id = ?1 AND user = ?2", params![memory.id, user])?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Recall;

    const RULE: KeepRule = KeepRule { same_cosine: 0.95, most: 3, initial_days: 30.0, least_strength: 0.0 };
    const DAY: u64 = 86_400;

    fn statement(user: &str, text: &str, vector: [f32; 2], at: u64) -> Statement {
        let (user, text) = (user.to_owned(), text.to_owned());
        Statement { user, text, encoder: "e".to_owned(), vector: vector.to_vec(), at, run: None }
    }

    fn texts(memories: &[Memory]) -> Vec<&str> {
        memories.iter().map(|it| it.text.as_str()).collect()
    }

    #[tokio::test]
    async fn what_is_said_again_is_one_memory_and_fresh() {
        let it = Recall::in_memory().unwrap().memories;
        let first = it.keep(statement("ada", "likes tea", [1.0, 0.0], 1), RULE).await.unwrap();
        let Kept::New(id) = first else { panic!("{first:?}") };
        let again = it.keep(statement("ada", "loves tea", [0.99, 0.1], 9), RULE).await.unwrap();
        assert_eq!(again, Kept::Known(id.clone()));
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!((texts(&all), all[0].stated_at), (vec!["loves tea"], 9));
        assert_eq!(it.of("ada", "another encoder").await.unwrap(), []);
        it.read("ada", vec![id.clone()], 12).await.unwrap();
        assert_eq!(it.get(Some("ada"), &id).await.unwrap().map(|it| (it.reads, it.read_at)), Some((1, 12)));
    }

    #[tokio::test]
    async fn f01_no_user_reaches_another_s_memories() {
        let it = Recall::in_memory().unwrap().memories;
        let Kept::New(id) = it.keep(statement("ada", "lives in Kiel", [1.0, 0.0], 1), RULE).await.unwrap()
        else {
            panic!()
        };
        it.keep(statement("bob", "lives in Rome", [1.0, 0.0], 1), RULE).await.unwrap();
        assert_eq!(
            texts(&it.of("bob", "e").await.unwrap()),
            ["lives in Rome"],
            "the same vector, another user"
        );
        assert_eq!(it.get(Some("bob"), &id).await.unwrap(), None);
        assert!(!it.forget(Some("bob"), &id).await.unwrap());
        it.read("bob", vec![id.clone()], 5).await.unwrap();
        assert_eq!(it.get(None, &id).await.unwrap().map(|it| it.reads), Some(0));
        assert_eq!(it.list(None, 10).await.unwrap().len(), 2);
        assert_eq!(it.forget_all("bob").await.unwrap(), 1);
        assert!(it.forget(Some("ada"), &id).await.unwrap());
        assert_eq!(it.list(None, 10).await.unwrap(), []);
    }

    #[tokio::test]
    async fn i02_the_weakest_make_room() {
        let it = Recall::in_memory().unwrap().memories;
        for (n, vector) in [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]].into_iter().enumerate() {
            it.keep(statement("ada", &format!("fact {n}"), vector, n as u64 * DAY), RULE).await.unwrap();
        }
        let oldest = it.of("ada", "e").await.unwrap().pop().unwrap();
        for _ in 0..40 {
            it.read("ada", vec![oldest.id.clone()], 3 * DAY).await.unwrap();
        }
        it.keep(statement("ada", "fact 3", [0.0, -1.0], 4 * DAY), RULE).await.unwrap();
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!(texts(&all), ["fact 3", "fact 2", "fact 0"], "the one that was read often stays");
        let strict = KeepRule { least_strength: 0.5, ..RULE };
        it.keep(statement("ada", "fact 4", [0.7, 0.7], 90 * DAY), strict).await.unwrap();
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!(texts(&all), ["fact 4"], "90 days leave less than half");
    }
}
