//! `global.stores.response_cache` and the plugins `response_cache` and `router_replay`.
//!
//! It knows one key at a time. **Invariant:** a store that this version does not have is an error at its line, unless the
//! file switches it off.

use super::credential::secret;
use super::cursor::Cursor;
use super::headers::header_name;
use super::host::host;
use super::qdrant;
use super::redis::DATABASES_MOST;
use crate::diagnostic::code;
use crate::{
    CacheBackend, CacheControls, CacheDirective, CacheEviction, CacheMode, CacheRevision, CacheScope,
    CacheServer, CacheServerKind, CacheSettings, CacheStore, Permille, RedisServer, ReplaySettings,
};
use std::time::Duration;

/// The words of `backend_type`.
#[derive(Clone, Copy, PartialEq)]
enum Backend {
    Memory,
    Server(CacheServerKind),
    Qdrant,
    Foreign,
}

const BACKENDS: [(&str, Backend); 6] = [
    ("memory", Backend::Memory),
    ("redis", Backend::Server(CacheServerKind::Redis)),
    ("valkey", Backend::Server(CacheServerKind::Valkey)),
    ("milvus", Backend::Foreign),
    ("qdrant", Backend::Qdrant),
    ("hybrid", Backend::Foreign),
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
/// Where a server listens unless the file says otherwise.
const PORT: i64 = 6379;
/// How long a question to a server may take, in seconds, unless the file says otherwise, and at most.
const TIMEOUT_SECONDS: (i64, i64) = (1, 60);
/// What names of keys begin with, unless the file says otherwise.
const KEY_PREFIX: &str = "vllm-sr:cache:";
/// The collection of a Qdrant server, unless the file says otherwise.
const COLLECTION: &str = "semantic_cache";

/// Reads the store.
pub(super) fn store(root: &Cursor<'_>) -> CacheStore {
    let defaults = CacheStore::default();
    let Some(at) = root.dig(&["global", "stores", "response_cache"]) else { return defaults };
    let enabled = at.boolean("enabled").unwrap_or(defaults.enabled);
    let backend = at.word("backend_type", &BACKENDS).unwrap_or(Backend::Memory);
    if let Some(named) = at.get("backend_type").filter(|_| enabled && backend == Backend::Foreign) {
        let help = "`memory`, `redis`, `valkey` and `qdrant` are supported".to_owned();
        named.error_help(code::NOT_SUPPORTED_YET, "this store is known, not supported", help);
    }
    for kind in [CacheServerKind::Redis, CacheServerKind::Valkey] {
        if let Some(idle) = at.get(kind.as_str()).filter(|_| backend != Backend::Server(kind)) {
            idle.warn(code::UNUSED, format!("`{}` has no effect with this `backend_type`", kind.as_str()));
        }
    }
    if let Some(idle) = at.get("qdrant").filter(|_| backend != Backend::Qdrant) {
        idle.warn(code::UNUSED, "`qdrant` has no effect with this `backend_type`");
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
        backend: match backend {
            Backend::Server(kind) if enabled => CacheBackend::Server(Box::new(server(&at, kind))),
            Backend::Qdrant if enabled => {
                CacheBackend::Qdrant(Box::new(qdrant::place(&at, "collection_name", COLLECTION)))
            }
            Backend::Memory | Backend::Server(_) | Backend::Qdrant | Backend::Foreign => CacheBackend::Memory,
        },
    }
}

/// The server under its own name; one of this machine where the file says nothing of it.
fn server(at: &Cursor<'_>, speaks: CacheServerKind) -> CacheServer {
    let block = at.get(speaks.as_str());
    let link = block.as_ref().and_then(|it| it.get("connection"));
    let prefix = block.as_ref().and_then(|it| it.get("index")).and_then(|it| it.string("prefix"));
    let timeout = link.as_ref().and_then(|it| it.integer_in("timeout", 1, TIMEOUT_SECONDS.1));
    let host = host(link.as_ref(), "`port` and `password`");
    let port = link.as_ref().and_then(|it| it.integer_in("port", 1, 65_535)).unwrap_or(PORT);
    let place = RedisServer {
        address: format!("{host}:{port}"),
        database: link.as_ref().and_then(|it| it.integer_in("database", 0, DATABASES_MOST)).unwrap_or(0),
        password: link.as_ref().and_then(|it| secret(it, "password")),
        tls: link.as_ref().is_some_and(tls),
        tls_any_certificate: false,
        // A lookup that has to wait for another try is a miss.
        retries: 0,
        key_prefix: prefix.filter(|it| !it.is_empty()).unwrap_or_else(|| KEY_PREFIX.to_owned()),
    };
    let seconds = u64::try_from(timeout.unwrap_or(TIMEOUT_SECONDS.0)).unwrap_or(1);
    CacheServer { speaks, place, timeout: Duration::from_secs(seconds) }
}

/// Whether the connection is encrypted. A certificate that would go unread would promise what is not kept.
fn tls(at: &Cursor<'_>) -> bool {
    let Some(at) = at.get("tls") else { return false };
    for key in ["cert_file", "key_file", "ca_file"] {
        if let Some(named) = at.get(key).filter(|it| it.text().is_some_and(|text| !text.is_empty())) {
            let help = "the server's certificate is checked against the roots that browsers know".to_owned();
            named.error_help(
                code::NOT_SUPPORTED_YET,
                "certificates of one's own are known, not supported",
                help,
            );
        }
    }
    at.boolean("enabled").unwrap_or(false)
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
    use crate::{
        CacheBackend, CacheDirective, CacheEviction, CacheMode, CacheScope, Checked, Permille, Plugin,
        Severity,
    };
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
                "global:\n  stores:\n    response_cache:\n      enabled: {enabled}\n      backend_type: milvus\n"
            )
        };
        let [(code, line)] = errors(&checked(&store(true), ""))[..] else { panic!() };
        assert_eq!((code, line), ("not-supported-yet", 13));
        assert_eq!(errors(&checked(&store(false), "")), []);
    }

    #[test]
    fn a_server_that_replicas_share_is_reached_by_what_its_block_says() {
        let of = |text: &str| checked(&format!("global: {{ stores: {{ response_cache: {text} }} }}\n"), "");
        let server = |text: &str| {
            let checked = of(text);
            match checked.spec.map(|spec| spec.global.response_cache.backend) {
                Some(CacheBackend::Server(server)) => *server,
                other => panic!("{other:?} {:?}", checked.diagnostics),
            }
        };
        let it = server(
            "{ backend_type: redis, redis: { connection: { host: cache.internal, port: 7000, database: 2, timeout: 3, \
             password: '${REDIS_PASSWORD}', tls: { enabled: true } }, index: { prefix: 'ours:' } } }",
        );
        assert_eq!((it.speaks.as_str(), it.timeout.as_secs()), ("redis", 3));
        assert_eq!(
            (it.place.address.as_str(), it.place.database, it.place.tls),
            ("cache.internal:7000", 2, true)
        );
        assert!(it.place.password.is_some() && !it.place.tls_any_certificate);
        assert_eq!(it.place.key_prefix, "ours:");
        let it = server("{ backend_type: valkey }");
        assert_eq!(
            (
                it.speaks.as_str(),
                it.place.address.as_str(),
                it.place.key_prefix.as_str(),
                it.timeout.as_secs()
            ),
            ("valkey", "localhost:6379", "vllm-sr:cache:", 1)
        );
        assert_eq!(
            server("{ backend_type: redis, redis: { connection: { host: '::1' } } }").place.address,
            "[::1]:6379"
        );
        for (wrong, code) in [
            ("{ backend_type: redis, redis: { connection: { host: 'redis://h' } } }", "bad-value"),
            ("{ backend_type: redis, redis: { connection: { host: 'h:1' } } }", "bad-value"),
            (
                "{ backend_type: redis, redis: { connection: { tls: { ca_file: a.pem } } } }",
                "not-supported-yet",
            ),
        ] {
            assert_eq!(errors(&of(wrong)).first().map(|it| it.0), Some(code), "{wrong}");
        }
        let idle = of("{ redis: { connection: { host: h } } }");
        assert!(idle.diagnostics.iter().any(|it| it.code == "unused" && it.message.contains("`redis`")));
    }

    #[test]
    fn answers_in_qdrant_are_in_the_collection_that_its_block_names() {
        let of = |text: &str| checked(&format!("global: {{ stores: {{ response_cache: {text} }} }}\n"), "");
        let place = |text: &str| match of(text).spec.map(|spec| spec.global.response_cache.backend) {
            Some(CacheBackend::Qdrant(place)) => *place,
            other => panic!("{other:?}"),
        };
        let it = place(
            "{ backend_type: qdrant, qdrant: { host: q.internal, port: 7333, api_key: '${QDRANT_KEY}', use_tls: true, \
             collection_name: ours } }",
        );
        assert_eq!(
            (it.host.as_str(), it.port, it.tls, it.collection.as_str()),
            ("q.internal", 7333, true, "ours")
        );
        assert!(it.api_key.is_some());
        assert_eq!(place("{ backend_type: qdrant }").collection, "semantic_cache");
        let idle = of("{ qdrant: { host: h } }");
        assert!(idle.diagnostics.iter().any(|it| it.code == "unused" && it.message.contains("`qdrant`")));
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
