//! The `memory` plugin, and what `global.stores.memory` says for all routes.
//!
//! It knows settings, not memories. **Invariant:** a route's settings are whole: what the route leaves out was filled from
//! the store's defaults when the file was read.

use crate::{QdrantPlace, RedisServer};
use std::time::Duration;

/// What one route does with what is remembered of its caller.
#[derive(Debug, Clone, PartialEq)]
pub struct MemorySettings {
    /// Most memories that a request is given; at least 1, default 5.
    pub retrieval_limit: usize,
    /// Least similarity of one, in 0..=1 on the scale of configuration files; default 0.70.
    pub similarity_threshold: f64,
    /// Whether what the caller states is kept.
    pub auto_store: bool,
    /// How words count beside meaning; `None` where they do not.
    pub hybrid: Option<HybridMode>,
    /// What is held back of what was found or stated.
    pub reflection: Reflection,
    /// Candidates for which nothing is remembered or shown (`disabled_models`).
    pub disabled_models: Vec<String>,
    /// What becomes of old memories.
    pub quality: MemoryQuality,
}

/// How two rankings, by meaning and by words, become one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum HybridMode {
    /// A weighted mean of the two scores.
    #[default]
    Weighted,
    /// Reciprocal ranks, summed.
    ReciprocalRank,
}

/// What is held back of what was found or stated (`reflection`).
#[derive(Debug, Clone, PartialEq)]
pub struct Reflection {
    /// Whether found memories are weighed by age, cleared of near repetitions and cut to a budget; default true. Blocked
    /// patterns hold either way.
    pub enabled: bool,
    /// Most tokens of memories in one request; default 2,048.
    pub max_inject_tokens: u64,
    /// Age at which a memory counts half; default 30 days.
    pub half_life: Duration,
    /// Similarity from which two memories say the same, in 0..=1; default 0.90.
    pub dedup_threshold: f64,
    /// Regular expressions, without regard to case: a text that one of them finds is neither kept nor shown.
    pub block_patterns: Vec<String>,
}

/// What becomes of old memories (`quality_scoring`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryQuality {
    /// Days after which the strength of a memory that nobody asked for has fallen to 1/e; each reading adds to them.
    /// Default 30.
    pub initial_strength_days: f64,
    /// Strength below which a memory is forgotten, in 0..=1; 0, the default, forgets none by age.
    pub prune_threshold: f64,
    /// Most memories of one user; the weakest make room. Default 1,000.
    pub max_memories_per_user: usize,
}

/// What `global.stores.memory` says.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct MemoryStore {
    /// Whether every route remembers that does not say otherwise.
    pub enabled: bool,
    /// Routes that do not (`disabled_routes`, by the decision's name).
    pub disabled_routes: Vec<String>,
    /// What a route's settings are filled from.
    pub defaults: MemorySettings,
    /// The server that keeps memories; `None` is the store of this process.
    pub server: Option<Box<QdrantPlace>>,
    /// What keeps memories that were found lately in front of that server (`redis_cache`).
    pub cache: Option<Box<MemoryCache>>,
}

/// A Redis server that keeps found memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryCache {
    /// The server; its keys begin with `vllm-sr:memory:` by default.
    pub place: RedisServer,
    /// How long they are found there, where nothing of the user's memories changes; default 5 minutes.
    pub ttl: Duration,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self {
            retrieval_limit: 5,
            similarity_threshold: 0.7,
            auto_store: false,
            hybrid: None,
            reflection: Reflection::default(),
            disabled_models: Vec::new(),
            quality: MemoryQuality::default(),
        }
    }
}

impl Default for Reflection {
    fn default() -> Self {
        Self {
            enabled: true,
            max_inject_tokens: 2048,
            half_life: Duration::from_secs(30 * 86_400),
            dedup_threshold: 0.9,
            block_patterns: Vec::new(),
        }
    }
}

impl Default for MemoryQuality {
    fn default() -> Self {
        Self { initial_strength_days: 30.0, prune_threshold: 0.0, max_memories_per_user: 1000 }
    }
}
