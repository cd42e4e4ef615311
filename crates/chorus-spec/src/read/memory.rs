//! `global.stores.memory` and the plugin `memory`.
//!
//! The store's settings are the defaults of every route's plugin. Source: contract §1.9, §1.10.

use super::cursor::Cursor;
use super::{patterns, qdrant, redis};
use crate::diagnostic::code;
use crate::{
    HybridMode, MemoryCache, MemoryQuality, MemorySettings, MemoryStore, QdrantPlace, RedisServer, Reflection,
};
use std::time::Duration;

/// Most memories that one request may be given.
const LIMIT_MOST: i64 = 100;
const DAY: Duration = Duration::from_secs(86_400);

/// Backends that the contract names and this version does not run.
const FOREIGN: [&str; 2] = ["milvus", "valkey"];
/// The collection of memories unless the file says otherwise. Source: contract §1.9, of `milvus`.
const COLLECTION: &str = "agentic_memory";

/// How long found memories are found again unless the file says otherwise.
const CACHE_TTL: Duration = Duration::from_secs(300);
/// What the names of their keys begin with unless the file says otherwise.
const CACHE_PREFIX: &str = "vllm-sr:memory:";

/// Reads `global.stores.memory`.
pub(super) fn store(root: &Cursor<'_>) -> MemoryStore {
    let Some(at) = root.dig(&["global", "stores", "memory"]) else { return MemoryStore::default() };
    if at.boolean("enabled") == Some(false) {
        return MemoryStore {
            defaults: settings(&at, &MemorySettings::default(), KEYS),
            ..MemoryStore::default()
        };
    }
    let server = server(&at, "backend", ("collection", COLLECTION));
    if server.is_none() {
        foreign(&at, "backend", &FOREIGN);
    }
    let mut defaults = settings(&at, &MemorySettings::default(), KEYS);
    defaults.disabled_models = at.strings("disabled_models");
    if let Some(quality) = at.get("quality_scoring") {
        defaults.quality = self::quality(&quality);
    }
    MemoryStore {
        enabled: at.boolean("enabled").unwrap_or(false),
        disabled_routes: at.strings("disabled_routes"),
        defaults,
        cache: cache(&at, server.is_some()),
        server,
    }
}

/// The server of found memories. The store of this process needs none in front of it.
fn cache(at: &Cursor<'_>, is_served: bool) -> Option<Box<MemoryCache>> {
    let at = at.get("redis_cache")?;
    if at.boolean("enabled") != Some(true) {
        return None;
    }
    if !is_served {
        at.warn(code::UNUSED, "`redis_cache` has no effect with this `backend`");
        return None;
    }
    // A look-up that has to wait for another try is none.
    let defaults = RedisServer { key_prefix: CACHE_PREFIX.to_owned(), retries: 0, ..RedisServer::default() };
    let seconds = at.count("ttl_seconds").filter(|seconds| *seconds > 0);
    Some(Box::new(MemoryCache {
        place: redis::place(&at, "db", defaults),
        ttl: seconds.map_or(CACHE_TTL, Duration::from_secs),
    }))
}

/// The Qdrant server that keeps it, where `backend` says so; `collection` is the key of the collection's name, and its default.
pub(super) fn server(at: &Cursor<'_>, backend: &str, collection: (&str, &str)) -> Option<Box<QdrantPlace>> {
    let named = at.get(backend).and_then(|it| it.text());
    if named.is_some_and(|text| text.trim().eq_ignore_ascii_case("qdrant")) {
        return Some(Box::new(qdrant::place(at, collection.0, collection.1)));
    }
    if let Some(idle) = at.get("qdrant") {
        idle.warn(code::UNUSED, format!("`qdrant` has no effect with this `{backend}`"));
    }
    None
}

/// Reads the plugin of a route.
pub(super) fn plugin(at: &Cursor<'_>, store: &MemoryStore) -> MemorySettings {
    settings(at, &store.defaults, ["retrieval_limit", "similarity_threshold"])
}

/// What the store calls the two settings that a plugin names otherwise.
const KEYS: [&str; 2] = ["default_retrieval_limit", "default_similarity_threshold"];

fn settings(at: &Cursor<'_>, defaults: &MemorySettings, [limit, threshold]: [&str; 2]) -> MemorySettings {
    let count = at.integer_in(limit, 0, LIMIT_MOST).filter(|n| *n > 0);
    MemorySettings {
        retrieval_limit: count.and_then(|n| usize::try_from(n).ok()).unwrap_or(defaults.retrieval_limit),
        similarity_threshold: at.float_in(threshold, 0.0, 1.0).unwrap_or(defaults.similarity_threshold),
        auto_store: at.boolean("auto_store").unwrap_or(defaults.auto_store),
        hybrid: hybrid(at, defaults.hybrid),
        reflection: at
            .get("reflection")
            .map_or_else(|| defaults.reflection.clone(), |it| reflection(&it, &defaults.reflection)),
        disabled_models: defaults.disabled_models.clone(),
        quality: defaults.quality,
    }
}

fn hybrid(at: &Cursor<'_>, default: Option<HybridMode>) -> Option<HybridMode> {
    const MODES: [(&str, HybridMode); 2] =
        [("weighted", HybridMode::Weighted), ("rrf", HybridMode::ReciprocalRank)];
    let mode = at.word("hybrid_mode", &MODES);
    match at.boolean("hybrid_search") {
        Some(true) => Some(mode.or(default).unwrap_or_default()),
        Some(false) => None,
        None => default.map(|default| mode.unwrap_or(default)),
    }
}

fn reflection(at: &Cursor<'_>, defaults: &Reflection) -> Reflection {
    let written = at.items("block_patterns");
    patterns::check(&written, "`block_patterns`", false);
    let block =
        if written.is_empty() { defaults.block_patterns.clone() } else { at.strings("block_patterns") };
    let days = at.count("recency_decay_days").and_then(|days| u32::try_from(days).ok());
    Reflection {
        enabled: at.boolean("enabled").unwrap_or(defaults.enabled),
        max_inject_tokens: at.count("max_inject_tokens").unwrap_or(defaults.max_inject_tokens),
        half_life: days.map_or(defaults.half_life, |days| DAY * days),
        dedup_threshold: at.float_in("dedup_threshold", 0.0, 1.0).unwrap_or(defaults.dedup_threshold),
        block_patterns: block,
    }
}

fn quality(at: &Cursor<'_>) -> MemoryQuality {
    let defaults = MemoryQuality::default();
    MemoryQuality {
        initial_strength_days: at.positive("initial_strength_days").unwrap_or(defaults.initial_strength_days),
        prune_threshold: at.float_in("prune_threshold", 0.0, 1.0).unwrap_or(defaults.prune_threshold),
        max_memories_per_user: at
            .count("max_memories_per_user")
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(defaults.max_memories_per_user),
    }
}

/// Refuses a backend that the contract names and this version does not run; `embedded`, and none, is our own.
pub(super) fn foreign(at: &Cursor<'_>, key: &str, names: &[&str]) {
    let Some(named) = at.get(key) else { return };
    let Some(text) = named.text() else { return };
    let own = ["", "memory", "embedded"];
    if own.iter().any(|word| text.trim().eq_ignore_ascii_case(word)) {
        return;
    }
    let known = names.iter().any(|name| text.trim().eq_ignore_ascii_case(name));
    let help = "leave it out, or write `embedded`: the store of this process needs no server; what `qdrant` can keep, it keeps".to_owned();
    if known {
        named.error_help(
            code::NOT_SUPPORTED_YET,
            format!("the backend `{text}` is known, not supported"),
            help,
        );
    } else {
        named.error_help(code::BAD_VALUE, format!("there is no backend `{text}`"), help);
    }
}
