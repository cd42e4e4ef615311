//! What plugins recall from: memories and documents, originals of what was shortened, what was found lately, and vectors
//! of tools. All configurations of a process share it.
//!
//! It knows stores and bounds, no request. **Invariant:** everything here that holds a user's words is kept under that
//! user, or under one run.

use chorus_spec::Digest;
use chorus_store::{Originals, OriginalsRule, Recall, RecallFault};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Bounds of what was found lately: of one caller, and of all (`max_found_bytes`).
const FOUND_BYTES: (usize, usize) = (4 << 20, 64 << 20);

/// Most tools whose vectors are kept (`max_tool_vectors`).
const TOOL_VECTORS: usize = 8192;

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
