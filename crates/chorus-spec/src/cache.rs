//! The `response_cache` plugin, and the store behind it (`global.stores.response_cache`).
//!
//! Plain data of the file; it knows no entry and no key. Source: contract §1.9, §1.10.

use crate::{QdrantPlace, RedisServer};
use std::time::Duration;

/// What one route does with answers that were given before.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CacheSettings {
    /// How alike a request must be to an earlier one.
    pub mode: CacheMode,
    /// Whose earlier requests count.
    pub scope: CacheScope,
    /// Whether the file names the scope: a scope that is meant leaves nobody without one to share an answer.
    pub scope_is_written: bool,
    /// Least similarity of a semantic hit, in thousandths of the scale of configuration files; the store's where `None`.
    pub threshold: Option<Permille>,
    /// How long an answer is good; the store's time where `None`.
    pub ttl: Option<Duration>,
    /// What a client may wish for.
    pub controls: CacheControls,
    /// On a route that adds what it knows of the user: whether an answer is kept for the very request that models got
    /// (`personalized: {mode: exact}`); otherwise such a route has no cache.
    pub personalized: bool,
    /// Words that are part of every key: another word leaves all earlier answers behind.
    pub revision: CacheRevision,
}

/// A similarity in thousandths, 0..=1000.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permille(pub u16);

impl Permille {
    /// The nearest to a similarity in 0..=1.
    #[must_use]
    pub fn of(similarity: f64) -> Self {
        let rounded = (similarity.clamp(0.0, 1.0) * 1000.0).round();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "in 0..=1000")]
        Self(rounded as u16)
    }

    /// In 0..=1.
    #[must_use]
    pub fn as_similarity(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

/// How alike a request must be to an earlier one.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    /// The last user message may be worded otherwise; everything else is the same.
    #[default]
    Semantic,
    /// Everything is the same.
    Exact,
    /// Looked for exactly, then by meaning.
    ExactThenSemantic,
}

impl CacheMode {
    /// Whether the very same request is looked for.
    #[must_use]
    pub fn is_exact(self) -> bool {
        matches!(self, Self::Exact | Self::ExactThenSemantic)
    }

    /// Whether a request of the same meaning is looked for.
    #[must_use]
    pub fn is_semantic(self) -> bool {
        matches!(self, Self::Semantic | Self::ExactThenSemantic)
    }

    /// The contract's word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Semantic => "semantic",
            Self::Exact => "exact",
            Self::ExactThenSemantic => "exact_then_semantic",
        }
    }
}

/// Whose earlier requests count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CacheScope {
    /// The same user's.
    #[default]
    User,
    /// Those of users of the same groups.
    Team,
    /// Everybody's.
    Global,
}

/// What a client may wish for with a header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheControls {
    /// Whether a client may also ask for an answer to be stored, and for how long (`ttl`); without it a client can only
    /// keep away from the cache.
    pub enabled: bool,
    /// The header, in lower case; default `x-vsr-cache-control`.
    pub header: String,
    /// The directives that are followed; all where the file names none.
    pub allowed: Vec<CacheDirective>,
    /// The longest time that a client may wish for.
    pub max_ttl: Option<Duration>,
}

impl Default for CacheControls {
    fn default() -> Self {
        Self {
            enabled: false,
            header: "x-vsr-cache-control".to_owned(),
            allowed: CacheDirective::ALL.map(|(_, directive)| directive).to_vec(),
            max_ttl: None,
        }
    }
}

/// A word of a cache header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheDirective {
    /// Nothing is looked up.
    NoCache,
    /// Nothing is stored.
    NoStore,
    /// Neither.
    Bypass,
    /// Nothing older than so many seconds.
    MaxAge,
    /// Stored for so many seconds.
    Ttl,
}

impl CacheDirective {
    /// Every directive by its word.
    pub const ALL: [(&'static str, Self); 5] = [
        ("no-cache", Self::NoCache),
        ("no-store", Self::NoStore),
        ("bypass", Self::Bypass),
        ("max-age", Self::MaxAge),
        ("ttl", Self::Ttl),
    ];
}

/// Words that are part of every key of a route.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CacheRevision {
    /// Of the route's whole cache.
    pub epoch: String,
    /// Of its models.
    pub model: String,
    /// Of its prompts.
    pub prompt: String,
    /// Of its policy.
    pub policy: String,
}

/// The store of answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheStore {
    /// Whether there is one; default true. Without it every route's cache is off.
    pub enabled: bool,
    /// Least similarity of a semantic hit where a route names none, on the scale of configuration files.
    pub threshold: Option<Permille>,
    /// Most answers; default 1,000.
    pub max_entries: usize,
    /// How long an answer is good where a route does not say; default one hour.
    pub ttl: Duration,
    /// Which answer makes room for another.
    pub eviction: CacheEviction,
    /// Where answers are kept.
    pub backend: CacheBackend,
}

/// Where answers are kept.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum CacheBackend {
    /// In this process; gone when it stops.
    #[default]
    Memory,
    /// In a server that replicas share.
    Server(Box<CacheServer>),
    /// In collections of a Qdrant server, which replicas share.
    Qdrant(Box<QdrantPlace>),
}

impl CacheBackend {
    /// The contract's word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Server(server) => server.speaks.as_str(),
            Self::Qdrant(_) => "qdrant",
        }
    }
}

/// A server that keeps answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheServer {
    /// What it is.
    pub speaks: CacheServerKind,
    /// How it is reached; names of keys begin with `vllm-sr:cache:` by default.
    pub place: RedisServer,
    /// How long one question may take; default one second. A request waits for it.
    pub timeout: Duration,
}

/// Which server keeps answers; both speak one protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheServerKind {
    /// Redis.
    Redis,
    /// Valkey.
    Valkey,
}

impl CacheServerKind {
    /// The contract's word, which is also the key of its block.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Valkey => "valkey",
        }
    }
}

impl Default for CacheStore {
    fn default() -> Self {
        Self {
            enabled: true,
            threshold: None,
            max_entries: 1000,
            ttl: Duration::from_secs(3600),
            eviction: CacheEviction::default(),
            backend: CacheBackend::default(),
        }
    }
}

/// Which answer makes room for another.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum CacheEviction {
    /// The oldest.
    #[default]
    Fifo,
    /// The one that was not asked for for the longest time.
    Lru,
}
