//! Files: their bytes, and whose they are.

use super::elsewhere::left_behind;
use super::{DocumentLimits, Documents, Whose, bounded};
use crate::database::{count, integer, new_id};
use crate::recall_fault::RecallFault;
use rusqlite::{Connection, OptionalExtension, Row, params};

const COLUMNS: &str = "id, owner, name, purpose, created_at, length(content)";

/// A file to be kept.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// Whose it is; `None` is nobody's.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: String,
    /// What it is for, in the client's word.
    pub purpose: String,
    /// Its bytes.
    pub content: Vec<u8>,
    /// Now, in seconds since 1970.
    pub at: u64,
}

/// A file, without its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// Its id.
    pub id: String,
    /// Whose it is; `None` is nobody's.
    pub owner: Option<String>,
    /// Its name, for people.
    pub name: String,
    /// What it is for, in the client's word.
    pub purpose: String,
    /// When it came, in seconds since 1970.
    pub created_at: u64,
    /// Its length.
    pub bytes: u64,
}

impl Documents {
    /// Keeps a file.
    ///
    /// # Errors
    /// [`RecallFault::Bound`] for one that is too large or one too many.
    pub async fn put_file(&self, it: NewFile, limits: DocumentLimits) -> Result<StoredFile, RecallFault> {
        let most = limits.max_file_bytes as u64;
        bounded(it.content.len() as u64, most, "the file's bytes", "max_file_size_mb")?;
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            let sql = "SELECT count(*), coalesce(sum(length(content)), 0) FROM files WHERE owner IS ?1";
            let (files, bytes): (i64, i64) =
                change.query_row(sql, [&it.owner], |row| Ok((row.get(0)?, row.get(1)?)))?;
            bounded(count(files) + 1, limits.max_files, "the number of files", "max_files")?;
            let bytes = count(bytes) + it.content.len() as u64;
            bounded(bytes, limits.max_owner_bytes, "the bytes of all files", "max_owner_bytes")?;
            let id = new_id("file-");
            let sql = "INSERT INTO files (id, owner, name, purpose, created_at, content)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
            change.execute(sql, params![id, it.owner, it.name, it.purpose, integer(it.at), it.content])?;
            change.commit()?;
            let bytes = it.content.len() as u64;
            let NewFile { owner, name, purpose, at, .. } = it;
            Ok(StoredFile { id, owner, name, purpose, created_at: at, bytes })
        };
        self.database.ask(question).await
    }

    /// Files, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn files(&self, whose: Whose, limit: usize) -> Result<Vec<StoredFile>, RecallFault> {
        let question = move |connection: &mut Connection| {
            let sql = format!("SELECT {COLUMNS} FROM files ORDER BY id DESC");
            let mut statement = connection.prepare(&sql)?;
            let rows = statement.query_map([], row)?;
            let mine = rows.filter(|row| row.as_ref().map_or(true, |it| whose.reaches(it.owner.as_deref())));
            Ok(mine.take(limit).collect::<rusqlite::Result<_>>()?)
        };
        self.database.ask(question).await
    }

    /// One file.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn file(&self, whose: Whose, id: &str) -> Result<Option<StoredFile>, RecallFault> {
        let id = id.to_owned();
        self.database.ask(move |connection| find(connection, &whose, &id)).await
    }

    /// The bytes of a file.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn content(&self, whose: Whose, id: &str) -> Result<Option<Vec<u8>>, RecallFault> {
        let id = id.to_owned();
        let question = move |connection: &mut Connection| {
            if find(connection, &whose, &id)?.is_none() {
                return Ok(None);
            }
            let sql = "SELECT content FROM files WHERE id = ?1";
            Ok(connection.query_row(sql, [&id], |row| row.get(0)).optional()?)
        };
        self.database.ask(question).await
    }

    /// Deletes a file and its passages in every vector store; whether it was there.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn delete_file(&self, whose: Whose, id: &str) -> Result<bool, RecallFault> {
        let file = id.to_owned();
        let id = file.clone();
        let question = move |connection: &mut Connection| {
            let change = connection.transaction()?;
            if find(&change, &whose, &id)?.is_none() {
                return Ok(None);
            }
            let stores = stores_of(&change, &id)?;
            let sql = "UPDATE vector_stores SET revision = revision + 1
                       WHERE id IN (SELECT store FROM attached WHERE file = ?1)";
            change.execute(sql, [&id])?;
            change.execute("DELETE FROM files WHERE id = ?1", [&id])?;
            change.commit()?;
            Ok(Some(stores))
        };
        let Some(stores) = self.database.ask::<_, RecallFault>(question).await? else { return Ok(false) };
        if let Some(elsewhere) = &self.elsewhere {
            for store in stores {
                left_behind(elsewhere.take_out(&store, &file).await);
            }
        }
        Ok(true)
    }
}

/// The vector stores that hold a file.
fn stores_of(connection: &Connection, file: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT store FROM attached WHERE file = ?1")?;
    statement.query_map([file], |row| row.get(0))?.collect()
}

/// The file of that id, if it is within reach.
pub(super) fn find(
    connection: &Connection,
    whose: &Whose,
    id: &str,
) -> Result<Option<StoredFile>, RecallFault> {
    let sql = format!("SELECT {COLUMNS} FROM files WHERE id = ?1");
    let found = connection.query_row(&sql, [id], row).optional()?;
    Ok(found.filter(|it| whose.reaches(it.owner.as_deref())))
}

fn row(row: &Row<'_>) -> rusqlite::Result<StoredFile> {
    Ok(StoredFile {
        id: row.get(0)?,
        owner: row.get(1)?,
        name: row.get(2)?,
        purpose: row.get(3)?,
        created_at: count(row.get(4)?),
        bytes: count(row.get(5)?),
    })
}
