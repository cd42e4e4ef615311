//! Vector stores: which files they hold, and the passages of those.

use super::elsewhere::{Elsewhere, left_behind};
use super::{DocumentLimits, Documents, Whose, bounded, files};
use crate::database::{count, integer, new_id};
use crate::recall_fault::RecallFault;
use chorus_recall::ChunkRule;
use chorus_vectors::to_bytes;
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "id, owner, name, created_at, metadata,
    (SELECT coalesce(sum(bytes), 0) FROM attached WHERE store = id)";
const FILE_COLUMNS: &str =
    "store, file, status, error, created_at, attributes, max_tokens, overlap_tokens, bytes";

/// A vector store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VectorStore {
    /// Its id.
    pub id: String,
    /// Whose it is; `None` is nobody's: routes may look it up for anybody.
    pub owner: Option<String>,
    /// Its name, for people and for policies.
    pub name: String,
    /// When it was made, in seconds since 1970.
    pub created_at: u64,
    /// A JSON object of the client's.
    pub metadata: String,
    /// Bytes of its files' texts.
    pub bytes: u64,
}

/// How far a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// It is being read.
    InProgress,
    /// Its passages can be found.
    Completed,
    /// It could not be read, and why.
    Failed(String),
}

impl Progress {
    /// The API's word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
        }
    }
}

/// A file of a vector store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    /// The vector store.
    pub store: String,
    /// The file.
    pub file: String,
    /// How far it is.
    pub progress: Progress,
    /// When it was attached, in seconds since 1970.
    pub created_at: u64,
    /// A JSON object of the client's, by which a search can choose.
    pub attributes: String,
    /// How it is cut.
    pub rule: ChunkRule,
    /// Bytes of its passages.
    pub bytes: u64,
}

/// What became of attaching a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attached {
    /// It waits for its passages.
    New(AttachedFile),
    /// There is no such vector store within reach.
    NoStore,
    /// There is no such file within reach.
    NoFile,
}

/// A passage of a file.
#[derive(Debug, Clone)]
pub struct NewPassage {
    /// What it says.
    pub text: String,
    /// Its vector, of unit length.
    pub vector: Vec<f32>,
}

impl Documents {
    /// Makes a vector store.
    ///
    /// # Errors
    /// [`RecallFault::Bound`] for one too many.
    pub async fn make_store(
        &self,
        owner: Option<String>,
        name: String,
        metadata: String,
        at: u64,
        limits: DocumentLimits,
    ) -> Result<VectorStore, RecallFault> {
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            let sql = "SELECT count(*) FROM vector_stores WHERE owner IS ?1";
            let have: i64 = change.query_row(sql, [&owner], |row| row.get(0))?;
            let (what, bound) = ("the number of vector stores", "max_vector_stores");
            bounded(count(have) + 1, limits.max_vector_stores, what, bound)?;
            let id = new_id("vs_");
            let sql = "INSERT INTO vector_stores (id, owner, name, created_at, metadata, revision)
                       VALUES (?1, ?2, ?3, ?4, ?5, 0)";
            change.execute(sql, params![id, owner, name, integer(at), metadata])?;
            change.commit()?;
            Ok(VectorStore { id, owner, name, created_at: at, metadata, bytes: 0 })
        };
        self.database.ask(question).await
    }

    /// Changes a vector store's name or metadata; what it is then.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn change_store(
        &self,
        whose: Whose,
        id: &str,
        name: Option<String>,
        metadata: Option<String>,
    ) -> Result<Option<VectorStore>, RecallFault> {
        let id = id.to_owned();
        let question = move |connection: &mut Connection| {
            if find(connection, &whose, &id)?.is_none() {
                return Ok(None);
            }
            let sql = "UPDATE vector_stores SET name = coalesce(?2, name), metadata = coalesce(?3, metadata)
                       WHERE id = ?1";
            connection.execute(sql, params![id, name, metadata])?;
            find(connection, &whose, &id)
        };
        self.database.ask(question).await
    }

    /// Vector stores, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn stores(&self, whose: Whose, limit: usize) -> Result<Vec<VectorStore>, RecallFault> {
        let question = move |connection: &mut Connection| {
            let mut statement =
                connection.prepare(&format!("SELECT {COLUMNS} FROM vector_stores ORDER BY id DESC"))?;
            let rows = statement.query_map([], row)?;
            let mine = rows.filter(|row| row.as_ref().map_or(true, |it| whose.reaches(it.owner.as_deref())));
            Ok(mine.take(limit).collect::<rusqlite::Result<_>>()?)
        };
        self.database.ask(question).await
    }

    /// The vector store of that id, else the one of that name: the caller's own before a shared one, the latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn store(&self, whose: Whose, id_or_name: &str) -> Result<Option<VectorStore>, RecallFault> {
        let named = id_or_name.to_owned();
        let question = move |connection: &mut Connection| {
            if let Some(found) = find(connection, &whose, &named)? {
                return Ok(Some(found));
            }
            let sql = format!(
                "SELECT {COLUMNS} FROM vector_stores WHERE name = ?1 ORDER BY owner IS NULL, id DESC"
            );
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([&named], row)?;
            let all: Vec<VectorStore> = rows.collect::<rusqlite::Result<_>>()?;
            Ok(all.into_iter().find(|it| whose.reaches(it.owner.as_deref())))
        };
        self.database.ask(question).await
    }

    /// Deletes a vector store with its passages; its files stay. Whether it was there.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn delete_store(&self, whose: Whose, id: &str) -> Result<bool, RecallFault> {
        let store = id.to_owned();
        let id = store.clone();
        let question = move |connection: &mut Connection| {
            if find(connection, &whose, &id)?.is_none() {
                return Ok(false);
            }
            Ok(connection.execute("DELETE FROM vector_stores WHERE id = ?1", [&id])? > 0)
        };
        let gone = self.database.ask::<_, RecallFault>(question).await?;
        if let Some(elsewhere) = self.elsewhere.as_ref().filter(|_| gone) {
            left_behind(elsewhere.drop_store(&store).await);
        }
        Ok(gone)
    }

    /// Attaches a file that is to be read; one that is attached already is read again.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn attach(
        &self,
        whose: Whose,
        store: &str,
        file: &str,
        attributes: String,
        rule: ChunkRule,
        at: u64,
    ) -> Result<Attached, RecallFault> {
        let (store, file) = (store.to_owned(), file.to_owned());
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            if find(&change, &whose, &store)?.is_none() {
                return Ok(Attached::NoStore);
            }
            if files::find(&change, &whose, &file)?.is_none() {
                return Ok(Attached::NoFile);
            }
            change.execute("DELETE FROM attached WHERE store = ?1 AND file = ?2", [&store, &file])?;
            let sql = "INSERT INTO attached
                       (store, file, status, created_at, attributes, max_tokens, overlap_tokens, bytes)
                       VALUES (?1, ?2, 'in_progress', ?3, ?4, ?5, ?6, 0)";
            let (most, overlap) = (integer(rule.max_tokens), integer(rule.overlap_tokens));
            change.execute(sql, params![store, file, integer(at), attributes, most, overlap])?;
            revise(&change, &store)?;
            change.commit()?;
            let progress = Progress::InProgress;
            Ok(Attached::New(AttachedFile {
                store,
                file,
                progress,
                created_at: at,
                attributes,
                rule,
                bytes: 0,
            }))
        };
        self.database.ask(question).await
    }

    /// Gives an attached file its passages, or says why it has none.
    ///
    /// # Errors
    /// [`RecallFault::Bound`] where the store would hold too many passages; nothing has changed then.
    pub async fn settle(
        &self,
        store: &str,
        file: &str,
        encoder: &str,
        outcome: Result<Vec<NewPassage>, String>,
        limits: DocumentLimits,
    ) -> Result<(), RecallFault> {
        if let (Some(elsewhere), Ok(passages)) = (&self.elsewhere, &outcome) {
            return self.settle_elsewhere(elsewhere, [store, file, encoder], passages, limits).await;
        }
        let (store, file, encoder) = (store.to_owned(), file.to_owned(), encoder.to_owned());
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            match outcome {
                Ok(passages) => fill(&change, &store, &file, &encoder, &passages, limits)?,
                Err(why) => {
                    let sql =
                        "UPDATE attached SET status = 'failed', error = ?3 WHERE store = ?1 AND file = ?2";
                    change.execute(sql, params![store, file, why])?;
                }
            }
            revise(&change, &store)?;
            Ok(change.commit()?)
        };
        self.database.ask(question).await
    }

    /// Gives an attached file its passages in the server, and then says that they are there.
    async fn settle_elsewhere(
        &self,
        elsewhere: &Elsewhere,
        [store, file, encoder]: [&str; 3],
        passages: &[NewPassage],
        limits: DocumentLimits,
    ) -> Result<(), RecallFault> {
        let all = elsewhere.count(store, file).await? + passages.len() as u64;
        bounded(all, limits.max_passages, "the number of passages", "max_entries_per_store")?;
        let rows: Vec<(&str, &[f32])> =
            passages.iter().map(|it| (it.text.as_str(), it.vector.as_slice())).collect();
        elsewhere.put(store, file, encoder, &rows).await?;
        let bytes = bytes_of(passages);
        let (of_store, of_file) = (store.to_owned(), file.to_owned());
        let question = move |connection: &mut Connection| complete(connection, &of_store, &of_file, bytes);
        if !self.database.ask(question).await? {
            // It was taken out while it was read.
            left_behind(elsewhere.take_out(store, file).await);
        }
        Ok(())
    }

    /// The files of a vector store, latest first; `None` where there is no such store within reach.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn attached(
        &self,
        whose: Whose,
        store: &str,
    ) -> Result<Option<Vec<AttachedFile>>, RecallFault> {
        let store = store.to_owned();
        let question = move |connection: &mut Connection| {
            if find(connection, &whose, &store)?.is_none() {
                return Ok(None);
            }
            let sql = format!(
                "SELECT {FILE_COLUMNS} FROM attached WHERE store = ?1 ORDER BY created_at DESC, file DESC"
            );
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([&store], file_row)?;
            Ok(Some(rows.collect::<rusqlite::Result<_>>()?))
        };
        self.database.ask(question).await
    }

    /// Takes a file out of a vector store; the file itself stays. Whether it was there.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn detach(&self, whose: Whose, store: &str, file: &str) -> Result<bool, RecallFault> {
        let place = (store.to_owned(), file.to_owned());
        let (store, file) = place.clone();
        let question = move |connection: &mut Connection| {
            if find(connection, &whose, &store)?.is_none() {
                return Ok(false);
            }
            let sql = "DELETE FROM attached WHERE store = ?1 AND file = ?2";
            let gone = connection.execute(sql, [&store, &file])? > 0;
            revise(connection, &store)?;
            Ok(gone)
        };
        let gone = self.database.ask::<_, RecallFault>(question).await?;
        if let Some(elsewhere) = self.elsewhere.as_ref().filter(|_| gone) {
            left_behind(elsewhere.take_out(&place.0, &place.1).await);
        }
        Ok(gone)
    }
}

fn fill(
    connection: &Connection,
    store: &str,
    file: &str,
    encoder: &str,
    passages: &[NewPassage],
    limits: DocumentLimits,
) -> Result<(), RecallFault> {
    let sql = "SELECT count(*) FROM passages WHERE store = ?1";
    let have: i64 = connection.query_row(sql, [store], |row| row.get(0))?;
    let all = count(have) + passages.len() as u64;
    bounded(all, limits.max_passages, "the number of passages", "max_entries_per_store")?;
    if !complete(connection, store, file, bytes_of(passages))? {
        // It was taken out while it was read.
        return Ok(());
    }
    let sql =
        "INSERT INTO passages (store, file, place, text, encoder, vector) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut statement = connection.prepare(sql)?;
    for (place, it) in passages.iter().enumerate() {
        let vector = to_bytes(&it.vector);
        statement.execute(params![store, file, integer(place as u64), it.text, encoder, vector])?;
    }
    Ok(())
}

fn bytes_of(passages: &[NewPassage]) -> u64 {
    passages.iter().map(|it| it.text.len() as u64).sum()
}

/// Says that the passages of a file can be found; whether it is still attached.
fn complete(connection: &Connection, store: &str, file: &str, bytes: u64) -> Result<bool, RecallFault> {
    let sql = "UPDATE attached SET status = 'completed', error = NULL, bytes = ?3
               WHERE store = ?1 AND file = ?2";
    Ok(connection.execute(sql, params![store, file, integer(bytes)])? > 0)
}

/// Vectors of the store that are in memory are no longer those of the file.
fn revise(connection: &Connection, store: &str) -> Result<(), RecallFault> {
    connection.execute("UPDATE vector_stores SET revision = revision + 1 WHERE id = ?1", [store])?;
    Ok(())
}

/// The vector store of that id, if it is within reach.
pub(super) fn find(
    connection: &Connection,
    whose: &Whose,
    id: &str,
) -> Result<Option<VectorStore>, RecallFault> {
    let sql = format!("SELECT {COLUMNS} FROM vector_stores WHERE id = ?1");
    let found = connection.query_row(&sql, [id], row).optional()?;
    Ok(found.filter(|it| whose.reaches(it.owner.as_deref())))
}

fn row(row: &Row<'_>) -> rusqlite::Result<VectorStore> {
    Ok(VectorStore {
        id: row.get(0)?,
        owner: row.get(1)?,
        name: row.get(2)?,
        created_at: count(row.get(3)?),
        metadata: row.get(4)?,
        bytes: count(row.get(5)?),
    })
}

fn file_row(row: &Row<'_>) -> rusqlite::Result<AttachedFile> {
    let (status, error): (String, Option<String>) = (row.get(2)?, row.get(3)?);
    let progress = match status.as_str() {
        "completed" => Progress::Completed,
        "in_progress" => Progress::InProgress,
        _ => Progress::Failed(error.unwrap_or_default()),
    };
    Ok(AttachedFile {
        store: row.get(0)?,
        file: row.get(1)?,
        progress,
        created_at: count(row.get(4)?),
        attributes: row.get(5)?,
        rule: ChunkRule { max_tokens: count(row.get(6)?), overlap_tokens: count(row.get(7)?) },
        bytes: count(row.get(8)?),
    })
}
