//! `global.stores.response_cache` and the plugins `response_cache` and `router_replay`.
//!
//! It knows one key at a time. **Invariant:** a store that this version does not have is an error at its line, unless the
//! file switches it off.

use super::cursor::Cursor;
use super::headers::header_name;
use crate::diagnostic::code;
use crate::{
    CacheControls, CacheDirective, CacheEviction, CacheMode, CacheRevision, CacheScope, CacheSettings,
    CacheStore, Permille, ReplaySettings,
};
use std::time::Duration;

const BACKENDS: [(&str, bool); 6] = [
    ("memory", true),
    ("redis", false),
    ("valkey", false),
    ("milvus", false),
    ("qdrant", false),
    ("hybrid", false),
];

const EVICTIONS: [(&str, Option<CacheEviction>); 3] =
    [("fifo", Some(CacheEviction::Fifo)), ("lru", Some(CacheEviction::Lru)), ("lfu", None)];

const MODES: [(&str, CacheMode); 3] = [
    ("semantic", CacheMode::Semantic),
    ("exact", CacheMode::Exact),
    ("exact_then_semantic", CacheMode::ExactThenSemantic),
];

const SCOPES: [(&str, Option<CacheScope>); 4] = [
    ("user", Some(CacheScope::User)),
    ("team", Some(CacheScope::Team)),
    ("global", Some(CacheScope::Global)),
    ("tenant", None),
];

/// Most answers that a store may hold.
const ENTRIES_MOST: i64 = 10_000_000;

/// Reads the store.
pub(super) fn store(root: &Cursor<'_>) -> CacheStore {
    let defaults = CacheStore::default();
    let Some(at) = root.dig(&["global", "stores", "response_cache"]) else { return defaults };
    let enabled = at.boolean("enabled").unwrap_or(defaults.enabled);
    let is_ours = at.word("backend_type", &BACKENDS).unwrap_or(true);
    if let Some(named) = at.get("backend_type").filter(|_| enabled && !is_ours) {
        let help = "`backend_type: memory` is supported".to_owned();
        named.error_help(code::NOT_SUPPORTED_YET, "this store is known, not supported", help);
    }
    let eviction = at.word("eviction_policy", &EVICTIONS).unwrap_or(Some(defaults.eviction));
    if let Some(named) = at.get("eviction_policy").filter(|_| enabled && eviction.is_none()) {
        let help = "`fifo` and `lru` are supported".to_owned();
        named.error_help(code::NOT_SUPPORTED_YET, "this policy is known, not supported", help);
    }
    let entries = at.integer_in("max_entries", 0, ENTRIES_MOST).filter(|n| *n > 0);
    CacheStore {
        enabled,
        threshold: at.float_in("similarity_threshold", 0.0, 1.0).map(Permille::of),
        max_entries: entries.and_then(|n| usize::try_from(n).ok()).unwrap_or(defaults.max_entries),
        ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs),
        eviction: eviction.unwrap_or_default(),
    }
}

/// Reads the plugin of a route.
pub(super) fn plugin(at: &Cursor<'_>) -> CacheSettings {
    let semantic = at.get("semantic").and_then(|it| it.float_in("similarity_threshold", 0.0, 1.0));
    let scope = at.word("scope", &SCOPES);
    if let (Some(None), Some(named)) = (scope, at.get("scope")) {
        let help = "answers are kept apart by user instead".to_owned();
        named.warn_help(code::NOT_SUPPORTED_YET, "this scope is known, not supported yet", help);
    }
    let mode = at.word("mode", &MODES).unwrap_or_default();
    let threshold = semantic.or_else(|| at.float_in("similarity_threshold", 0.0, 1.0)).map(Permille::of);
    if threshold.is_some() && !mode.is_semantic() {
        at.warn(code::UNUSED, "a similarity threshold has no effect with `mode: exact`");
    }
    CacheSettings {
        mode,
        scope: scope.flatten().unwrap_or_default(),
        scope_is_written: at.get("scope").is_some(),
        threshold,
        ttl: at.count("ttl_seconds").map(Duration::from_secs),
        controls: controls(at),
        personalized: at
            .get("personalized")
            .and_then(|it| it.word("mode", &[("disabled", false), ("exact", true)]))
            .unwrap_or(false),
        revision: at.get("revision").map(|it| revision(&it)).unwrap_or_default(),
    }
}

/// Both spellings: the block, and two keys beside it.
fn controls(at: &Cursor<'_>) -> CacheControls {
    let defaults = CacheControls::default();
    let block = at.get("request_controls");
    let named = block.as_ref().and_then(|it| it.get("header")).or_else(|| at.get("control_header"));
    let enabled = block.as_ref().and_then(|it| it.boolean("enabled"));
    let enabled = enabled.or_else(|| at.boolean("allow_request_controls")).unwrap_or(defaults.enabled);
    let allowed: Vec<CacheDirective> = block
        .iter()
        .flat_map(|it| it.items("allowed"))
        .filter_map(|it| it.one_of(&CacheDirective::ALL))
        .collect();
    CacheControls {
        enabled,
        header: named.and_then(|it| header_name(&it)).map_or(defaults.header, |it| it.to_ascii_lowercase()),
        allowed: if allowed.is_empty() { defaults.allowed } else { allowed },
        max_ttl: block.and_then(|it| it.count("max_ttl_seconds")).map(Duration::from_secs),
    }
}

fn revision(at: &Cursor<'_>) -> CacheRevision {
    let word = |key: &str| at.string(key).unwrap_or_default();
    CacheRevision {
        epoch: word("cache_epoch"),
        model: word("model_revision"),
        prompt: word("prompt_revision"),
        policy: word("policy_revision"),
    }
}

/// Reads the plugin `router_replay`.
pub(super) fn replay(at: &Cursor<'_>) -> ReplaySettings {
    let defaults = ReplaySettings::default();
    let size = |key: &str, default: usize| {
        at.count(key).map_or(default, |n| usize::try_from(n).unwrap_or(usize::MAX))
    };
    ReplaySettings {
        max_records: at.count("max_records").unwrap_or(defaults.max_records),
        request_body: at.boolean("capture_request_body").unwrap_or(defaults.request_body),
        response_body: at.boolean("capture_response_body").unwrap_or(defaults.response_body),
        max_body_bytes: size("max_body_bytes", defaults.max_body_bytes),
        max_tool_trace_bytes: size("max_tool_trace_bytes", defaults.max_tool_trace_bytes),
        max_tool_trace_steps: size("max_tool_trace_steps", defaults.max_tool_trace_steps),
    }
}

#[cfg(test)]
mod tests {
    use crate::{CacheDirective, CacheEviction, CacheMode, CacheScope, Checked, Permille, Plugin, Severity};
    use std::time::Duration;

    fn checked(global: &str, plugins: &str) -> Checked {
        crate::read(&format!(
            "version: v0.3\nproviders:\n  models:\n    - {{ name: m, backend_refs: [{{ endpoint: 'h:1' }}] }}\nrouting:\n  \
             modelCards: [{{ name: m }}]\n  decisions:\n    - {{ name: d, modelRefs: [{{ model: m }}], plugins: [{plugins}] }}\n{global}"
        ))
    }

    fn errors(checked: &Checked) -> Vec<(&'static str, usize)> {
        let errors = checked.diagnostics.iter().filter(|it| it.severity == Severity::Error);
        errors.map(|it| (it.code, it.place.line)).collect()
    }

    #[test]
    fn a_plugin_of_every_key_is_read() {
        let plugin = "{ type: semantic-cache, configuration: { enabled: true, mode: exact_then_semantic, scope: team, \
                      semantic: { similarity_threshold: 0.92 }, ttl_seconds: 60, personalized: { mode: exact }, \
                      request_controls: { enabled: true, header: X-My-Cache, allowed: [no-cache, ttl], max_ttl_seconds: 5 }, \
                      revision: { cache_epoch: '7', model_revision: b } } }";
        let checked = checked("", plugin);
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let [Plugin::ResponseCache(it)] = spec.recipes[0].decisions[0].plugins.as_slice() else { panic!() };
        assert_eq!(
            (it.mode, it.scope, it.scope_is_written),
            (CacheMode::ExactThenSemantic, CacheScope::Team, true)
        );
        assert_eq!((it.threshold, it.ttl), (Some(Permille(920)), Some(Duration::from_secs(60))));
        assert_eq!((it.controls.header.as_str(), it.controls.enabled), ("x-my-cache", true));
        assert_eq!(it.controls.allowed, [CacheDirective::NoCache, CacheDirective::Ttl]);
        assert_eq!(
            (it.personalized, it.revision.epoch.as_str(), it.revision.model.as_str()),
            (true, "7", "b")
        );
    }

    #[test]
    fn a_store_that_is_not_ours_is_an_error_at_its_line_unless_it_is_off() {
        let store = |enabled: bool| {
            format!(
                "global:\n  stores:\n    response_cache:\n      enabled: {enabled}\n      backend_type: redis\n"
            )
        };
        let [(code, line)] = errors(&checked(&store(true), ""))[..] else { panic!() };
        assert_eq!((code, line), ("not-supported-yet", 13));
        assert_eq!(errors(&checked(&store(false), "")), []);
    }

    #[test]
    fn the_store_has_bounds() {
        let global = "global: { stores: { response_cache: { max_entries: 5, ttl_seconds: 9, eviction_policy: lru } } }\n";
        let checked = checked(global, "");
        let store = checked.spec.map(|spec| spec.global.response_cache).unwrap();
        assert_eq!((store.max_entries, store.ttl.as_secs()), (5, 9));
        assert_eq!((store.eviction, store.threshold), (CacheEviction::Lru, None));
    }
}
