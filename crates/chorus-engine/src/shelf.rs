//! What plugins recall from: memories and documents, originals of what was shortened, what was found lately, and vectors
//! of tools. All configurations of a process share it.
//!
//! It knows stores and bounds, no request. **Invariant:** everything here that holds a user's words is kept under that
//! user, or under one run.

use crate::env::Env;
use crate::qdrant_link::{Link, QdrantPlaceFault};
use crate::states::{self, StatesFault};
use chorus_spec::{Digest, Global, MemoryCache};
use chorus_store::{CachedMemories, Originals, OriginalsRule, QdrantMemories, Recall, RecallFault};
use chorus_upstream::Upstream;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bounds of what was found lately: of one caller, and of all (`max_found_bytes`).
const FOUND_BYTES: (usize, usize) = (4 << 20, 64 << 20);

/// Most tools whose vectors are kept (`max_tool_vectors`).
const TOOL_VECTORS: usize = 8192;

/// Why a server that a configuration names cannot be asked at all.
#[derive(Debug, thiserror::Error)]
pub enum ServedFault {
    /// A Qdrant server.
    #[error(transparent)]
    Qdrant(#[from] QdrantPlaceFault),
    /// The Redis server of found memories.
    #[error(transparent)]
    Redis(#[from] StatesFault),
}

/// What plugins recall from. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Shelf {
    /// Memories and documents.
    pub store: Recall,
    /// Originals of what was shortened, by run.
    pub(crate) originals: Arc<Originals>,
    found: Arc<Originals>,
    tools: Arc<Mutex<BTreeMap<Digest, Arc<Vec<f32>>>>>,
}

impl Shelf {
    /// Over that store; over one that is gone with the process, where there is none.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    pub fn over(store: Option<Recall>) -> Result<Self, RecallFault> {
        let store = store.map_or_else(Recall::in_memory, Ok)?;
        Ok(Self { store, originals: Arc::default(), found: Arc::default(), tools: Arc::default() })
    }

    /// How many originals of shortened texts wait, and their bytes.
    #[must_use]
    pub fn originals(&self) -> (usize, usize) {
        self.originals.size()
    }

    /// Forgets the originals of a run, or all of them, and returns how many that were.
    #[must_use]
    pub fn forget_originals(&self, run: Option<&str>) -> usize {
        match run {
            Some(run) => self.originals.end(run),
            None => self.originals.clear(),
        }
    }

    /// This shelf, where what a configuration has a server keep is in that server.
    ///
    /// # Errors
    /// [`ServedFault`].
    pub(crate) fn served(
        &self,
        global: &Global,
        env: &Env,
        upstream: &Upstream,
    ) -> Result<Self, ServedFault> {
        let mut shelf = self.clone();
        if let Some(place) = &global.memory.server {
            let link = Arc::new(Link::to(place, env, upstream.clone())?);
            shelf.store.memories = Arc::new(QdrantMemories::new(link, &place.collection));
        }
        if let Some(MemoryCache { place, ttl }) = global.memory.cache.as_deref() {
            let place = states::place(place, env)?;
            let cached = CachedMemories::in_redis(shelf.store.memories, &place, *ttl);
            shelf.store.memories = Arc::new(cached.map_err(StatesFault::from)?);
        }
        if let Some(place) = &global.vector_store.server {
            let link = Arc::new(Link::to(place, env, upstream.clone())?);
            shelf.store.documents = shelf.store.documents.with_passages_in(link, &place.collection);
        }
        Ok(shelf)
    }

    /// What was found for that question of that caller lately.
    pub(crate) fn found(&self, caller: &str, question: &str, now: Instant) -> Option<String> {
        self.found.get(caller, question, now)
    }

    /// Keeps what was found, where there is room.
    pub(crate) fn keep_found(
        &self,
        caller: &str,
        question: &str,
        found: String,
        ttl: Duration,
        now: Instant,
    ) {
        let (max_bytes_per_scope, max_total_bytes) = FOUND_BYTES;
        let rule = OriginalsRule { ttl, max_bytes_per_scope, max_total_bytes };
        // No room is no fault: the next question is looked up again.
        let _ = self.found.put(caller, question, found, &rule, now);
    }

    /// The vector of a text of a tool, where it is kept.
    pub(crate) fn tool_vector(&self, encoder: &str, text: &str) -> Option<Arc<Vec<f32>>> {
        let vectors = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        vectors.get(&tool_key(encoder, text)).map(Arc::clone)
    }

    /// Keeps the vector of a text of a tool; when there are too many, all others go.
    pub(crate) fn keep_tool_vector(&self, encoder: &str, text: &str, vector: Vec<f32>) -> Arc<Vec<f32>> {
        let mut vectors = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if vectors.len() >= TOOL_VECTORS {
            vectors.clear();
        }
        let vector = Arc::new(vector);
        vectors.insert(tool_key(encoder, text), Arc::clone(&vector));
        vector
    }
}

fn tool_key(encoder: &str, text: &str) -> Digest {
    Digest::of(format!("{encoder}\0{text}").as_bytes())
}
