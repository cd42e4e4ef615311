//! Passages in a Qdrant server: one collection a vector store. Files, and which of them a store holds, stay in the file of this
//! process.
//!
//! It knows ids of stores and files, not whose they are. **Invariant:** what the server gives is a hint: a passage is shown where
//! this process's file says that its file is attached to that store and was read to its end.

use crate::qdrant::{self, Collection, Field, Point, QdrantFault, QdrantLink, is, is_one_of};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use uuid::Uuid;

const FIELDS: &[Field] = &[("file", qdrant::keyword), ("encoder", qdrant::keyword)];

/// Passages that one question carries to the server.
const BATCH: usize = 64;

/// Collections of vector stores on one server.
#[derive(Debug)]
pub(super) struct Elsewhere {
    link: Arc<dyn QdrantLink>,
    prefix: String,
    collections: Mutex<BTreeMap<String, Arc<Collection>>>,
}

/// A passage that the server gives.
pub(super) struct Given {
    pub(super) file: String,
    pub(super) text: String,
    pub(super) place: u64,
    pub(super) cosine: f64,
}

impl Elsewhere {
    /// In collections of that server, whose names begin with the prefix.
    pub(super) fn new(link: Arc<dyn QdrantLink>, prefix: &str) -> Self {
        Self { link, prefix: prefix.to_owned(), collections: Mutex::default() }
    }

    fn of(&self, store: &str) -> Arc<Collection> {
        let mut all = self.collections.lock().unwrap_or_else(PoisonError::into_inner);
        let new =
            || Arc::new(Collection::of(Arc::clone(&self.link), format!("{}{store}", self.prefix), FIELDS));
        Arc::clone(all.entry(store.to_owned()).or_insert_with(new))
    }

    /// How many passages a store has besides those of that file.
    pub(super) async fn count(&self, store: &str, besides: &str) -> Result<u64, QdrantFault> {
        let points = self.of(store);
        let all = points.count(qdrant::all(Vec::new())).await?;
        let own = points.count(qdrant::all(vec![is("file", besides)])).await?;
        Ok(all.saturating_sub(own) as u64)
    }

    /// Puts passages, each a text and its vector, in the place of those that the file has there.
    pub(super) async fn put(
        &self,
        store: &str,
        file: &str,
        encoder: &str,
        passages: &[(&str, &[f32])],
    ) -> Result<(), QdrantFault> {
        self.take_out(store, file).await?;
        let points = self.of(store);
        let rows: Vec<(usize, &(&str, &[f32]))> = passages.iter().enumerate().collect();
        for batch in rows.chunks(BATCH) {
            let width = batch.first().map_or(0, |(_, (_, vector))| vector.len());
            let point = |(place, (text, vector)): &(usize, &(&str, &[f32]))| {
                json!({"id": Uuid::now_v7().hyphenated().to_string(), "vector": vector, "payload": {
                    "file": file, "encoder": encoder, "place": place, "text": text,
                }})
            };
            points.upsert(batch.iter().map(point).collect(), width).await?;
        }
        Ok(())
    }

    /// Takes out the passages of a file.
    pub(super) async fn take_out(&self, store: &str, file: &str) -> Result<(), QdrantFault> {
        self.of(store).delete(qdrant::all(vec![is("file", file)])).await
    }

    /// Takes out the passages of a store.
    pub(super) async fn drop_store(&self, store: &str) -> Result<(), QdrantFault> {
        let dropped = self.of(store).drop_all().await;
        self.collections.lock().unwrap_or_else(PoisonError::into_inner).remove(store);
        match dropped {
            Err(QdrantFault::NotFound) => Ok(()),
            other => other,
        }
    }

    /// The passages of a store that are nearest, nearest first, of these files where any are named.
    pub(super) async fn nearest(
        &self,
        store: &str,
        encoder: &str,
        vector: &[f32],
        most: usize,
        files: Option<&BTreeSet<String>>,
    ) -> Result<Vec<Given>, QdrantFault> {
        let mut conditions = vec![is("encoder", encoder)];
        conditions.extend(files.map(|files| is_one_of("file", files.iter().map(String::as_str))));
        let found = self.of(store).nearest(vector, qdrant::all(conditions), most, false).await?;
        let is_asked_for = |it: &Given| files.is_none_or(|files| files.contains(&it.file));
        let of_encoder = found.iter().filter(|point| point.text("encoder") == Some(encoder));
        Ok(of_encoder.filter_map(given).filter(is_asked_for).collect())
    }
}

fn given(point: &Point) -> Option<Given> {
    Some(Given {
        file: point.text("file")?.to_owned(),
        text: point.text("text")?.to_owned(),
        place: point.number("place").unwrap_or_default(),
        cosine: point.cosine,
    })
}

/// What could not be taken out stays where nobody is shown it; the next time that its store or file goes, it goes too.
pub(super) fn left_behind(gone: Result<(), QdrantFault>) {
    if let Err(fault) = gone {
        tracing::warn!(%fault, "passages of a file that is gone stay in the Qdrant server; nobody is shown them");
    }
}
