//! The passages of a vector store that are nearest to a vector: a scan over all of them, kept in memory between changes.

use super::elsewhere::{Elsewhere, Given};
use super::{Documents, Loaded, Whose, stores};
use crate::database::integer;
use crate::recall_fault::RecallFault;
use chorus_vectors::{Exact, from_bytes};
use rusqlite::{Connection, OptionalExtension as _, params};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};

/// Most vector stores whose vectors stay in memory.
const LOADED_MOST: usize = 8;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct Question {
    /// The vector store, by its id.
    pub store: String,
    /// Digest of the encoder that made the vector; passages of another one are not found.
    pub encoder: String,
    /// The vector, of unit length.
    pub vector: Vec<f32>,
    /// Most passages.
    pub most: usize,
    /// Only passages of these files, where any are named.
    pub files: Option<BTreeSet<String>>,
}

/// A passage that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The file.
    pub file: String,
    /// The file's name.
    pub name: String,
    /// Where in the file it stands, as a count from 0.
    pub place: u64,
    /// What it says.
    pub text: String,
    /// The file's attributes, a JSON object.
    pub attributes: String,
    /// How near it is, in −1..=1.
    pub cosine: f64,
}

impl Documents {
    /// The nearest passages, nearest first; `None` where there is no such store within reach.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub async fn search(&self, whose: Whose, it: Question) -> Result<Option<Vec<Hit>>, RecallFault> {
        if let Some(elsewhere) = &self.elsewhere {
            return self.search_elsewhere(elsewhere, whose, it).await;
        }
        let documents = self.clone();
        let question = move |connection: &mut Connection| {
            if stores::find(connection, &whose, &it.store)?.is_none() {
                return Ok(None);
            }
            let vectors = documents.vectors(connection, &it.store, &it.encoder)?;
            let wanted = wanted(connection, &it)?;
            let is_wanted = |key: i64| wanted.as_ref().is_none_or(|keys| keys.contains(&key));
            let nearest = vectors.nearest(&it.vector, it.most, &is_wanted);
            nearest
                .into_iter()
                .map(|(key, cosine)| hit(connection, key, cosine))
                .collect::<Result<_, _>>()
                .map(Some)
        };
        self.database.ask(question).await
    }

    async fn search_elsewhere(
        &self,
        elsewhere: &Elsewhere,
        whose: Whose,
        it: Question,
    ) -> Result<Option<Vec<Hit>>, RecallFault> {
        let Question { store, encoder, vector, most, files } = it;
        let named = store.clone();
        let within_reach = move |connection: &mut Connection| stores::find(connection, &whose, &named);
        if self.database.ask(within_reach).await?.is_none() {
            return Ok(None);
        }
        let found = elsewhere.nearest(&store, &encoder, &vector, most, files.as_ref()).await?;
        let question = move |connection: &mut Connection| {
            let hits = found.into_iter().map(|it| known(connection, &store, it));
            Ok(hits.collect::<Result<Vec<Option<Hit>>, RecallFault>>()?.into_iter().flatten().collect())
        };
        self.database.ask(question).await.map(Some)
    }

    /// The vectors of a store: those in memory, where nothing has changed since.
    fn vectors(
        &self,
        connection: &Connection,
        store: &str,
        encoder: &str,
    ) -> Result<Arc<Exact>, RecallFault> {
        let sql = "SELECT revision FROM vector_stores WHERE id = ?1";
        let revision: i64 = connection.query_row(sql, [store], |row| row.get(0))?;
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = 1 + loaded.values().map(|it| it.used).max().unwrap_or(0);
        let fresh = |it: &&mut Loaded| it.revision == revision && it.encoder == encoder;
        if let Some(it) = loaded.get_mut(store).filter(fresh) {
            it.used = turn;
            return Ok(Arc::clone(&it.vectors));
        }
        let vectors = Arc::new(read(connection, store, encoder)?);
        let it = Loaded { revision, encoder: encoder.to_owned(), vectors: Arc::clone(&vectors), used: turn };
        loaded.insert(store.to_owned(), it);
        forget_surplus(&mut loaded);
        Ok(vectors)
    }
}

fn forget_surplus(loaded: &mut BTreeMap<String, Loaded>) {
    while loaded.len() > LOADED_MOST {
        let oldest = loaded.iter().min_by_key(|(_, it)| it.used).map(|(store, _)| store.clone());
        let Some(oldest) = oldest else { break };
        loaded.remove(&oldest);
    }
}

fn read(connection: &Connection, store: &str, encoder: &str) -> Result<Exact, RecallFault> {
    let sql = "SELECT key, vector FROM passages WHERE store = ?1 AND encoder = ?2 ORDER BY key";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query(params![store, encoder])?;
    let mut matrix: Option<Exact> = None;
    while let Some(row) = rows.next()? {
        let (key, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        let vector = from_bytes(&bytes);
        matrix.get_or_insert_with(|| Exact::of_width(vector.len())).push(key, &vector);
    }
    Ok(matrix.unwrap_or_default())
}

/// The passages of the named files, where any are named.
fn wanted(connection: &Connection, it: &Question) -> Result<Option<BTreeSet<i64>>, RecallFault> {
    let Some(files) = &it.files else { return Ok(None) };
    let mut statement = connection.prepare("SELECT key FROM passages WHERE store = ?1 AND file = ?2")?;
    let mut keys = BTreeSet::new();
    for file in files {
        let rows = statement.query_map(params![it.store, file], |row| row.get::<_, i64>(0))?;
        for key in rows {
            keys.insert(key?);
        }
    }
    Ok(Some(keys))
}

fn hit(connection: &Connection, key: i64, cosine: f32) -> Result<Hit, RecallFault> {
    let sql = "SELECT passages.file, files.name, place, text, attributes FROM passages
               JOIN files ON files.id = passages.file
               JOIN attached ON attached.store = passages.store AND attached.file = passages.file
               WHERE key = ?1";
    let read = |row: &rusqlite::Row<'_>| {
        Ok(Hit {
            file: row.get(0)?,
            name: row.get(1)?,
            place: crate::database::count(row.get(2)?),
            text: row.get(3)?,
            attributes: row.get(4)?,
            cosine: f64::from(cosine),
        })
    };
    Ok(connection.query_row(sql, [integer(u64::try_from(key).unwrap_or(0))], read)?)
}

/// What the server gives, where its file is attached to the store and was read to its end.
fn known(connection: &Connection, store: &str, it: Given) -> Result<Option<Hit>, RecallFault> {
    let sql = "SELECT files.name, attributes FROM attached JOIN files ON files.id = attached.file
               WHERE attached.store = ?1 AND attached.file = ?2 AND status = 'completed'";
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let Given { file, text, place, cosine } = it;
    let known: Option<(String, String)> = connection.query_row(sql, [store, &file], read).optional()?;
    Ok(known.map(|(name, attributes)| Hit { file, name, place, text, attributes, cosine }))
}
