//! `global.services.router_replay` and `global.services.api_keys`: where run records, outcomes and API keys are kept.
//!
//! **Invariant:** a password is a reference; and records do not cross a network in the clear unless the file says so.

use super::credential::secret;
use super::cursor::Cursor;
use super::{qdrant, redis};
use crate::diagnostic::code;
use crate::{
    KeptWhere, PostgresMode, PostgresServer, QdrantRecords, RecordsServer, RedisRecords, RedisServer,
};
use std::time::Duration;

/// A store of records that the contract names, and whether there is one here.
const RECORD_BACKENDS: [(&str, Backend); 5] = [
    ("memory", Backend::File),
    ("postgres", Backend::Postgres),
    ("redis", Backend::Redis),
    ("milvus", Backend::Unknown),
    ("qdrant", Backend::Qdrant),
];
/// A store of keys.
const KEY_BACKENDS: [(&str, Backend); 2] = [("file", Backend::File), ("postgres", Backend::Postgres)];

/// How long a Redis or Qdrant server keeps runs unless the file says otherwise, and how many. Source: contract §1.9,
/// `ttl_seconds`, and §1.10, `max_records` of the plugin.
const KEEPS: (Duration, usize) = (Duration::from_secs(2_592_000), 10_000);
/// Most runs that it may be told to keep.
const RECORDS_MOST: i64 = 10_000_000;
/// An empty spool takes some pages already.
const LEAST_SPOOL_BYTES: i64 = 1 << 20;
/// What the names of keys in Redis begin with unless the file says otherwise.
const KEY_PREFIX: &str = "vllm-sr:replay:";
/// The collection in Qdrant unless the file says otherwise.
const COLLECTION: &str = "router_replay";

/// `verify-ca` would leave the host's name unchecked; it is held as the stronger one.
const MODES: [(&str, PostgresMode); 4] = [
    ("disable", PostgresMode::Disable),
    ("require", PostgresMode::Require),
    ("verify-ca", PostgresMode::VerifyFull),
    ("verify-full", PostgresMode::VerifyFull),
];

#[derive(Clone, Copy, PartialEq)]
enum Backend {
    File,
    Postgres,
    Redis,
    Qdrant,
    Unknown,
}

/// Reads both blocks of the services.
pub(super) fn read(services: &Cursor<'_>) -> KeptWhere {
    let replay = services.get("router_replay");
    let is_on = replay.as_ref().is_some_and(|at| at.boolean("enabled").unwrap_or(true));
    let backend = replay.as_ref().and_then(|at| at.word("store_backend", &RECORD_BACKENDS));
    if let Some(named) = replay.as_ref().and_then(|at| at.get("store_backend"))
        && backend == Some(Backend::Unknown)
    {
        let help = Some("say `postgres`, `redis` or `qdrant` for a server that replicas share".to_owned());
        let text =
            "this store of run records is known, not supported yet: they are kept in a file of this machine";
        named.warn_help(code::NOT_SUPPORTED_YET, text, help);
    }
    let replay = replay.filter(|_| is_on);
    let records = replay.as_ref().and_then(|at| records(at, backend?));
    let spool_bytes = replay.as_ref().and_then(|at| spool_bytes(at, records.is_some()));
    let records_for = replay.and_then(|at| match &records {
        Some(RecordsServer::Postgres(_)) => at.count("ttl_seconds").map(Duration::from_secs),
        Some(RecordsServer::Qdrant(_)) => Some(keep_for(&at)),
        Some(RecordsServer::Redis(_)) | None => None,
    });
    let keys = services.get("api_keys").and_then(|at| keys(&at, records.as_ref()));
    KeptWhere { records, records_for, spool_bytes, keys }
}

/// What may wait on this machine while the server of the records is away.
fn spool_bytes(at: &Cursor<'_>, is_shared: bool) -> Option<u64> {
    let named = at.get("max_spool_bytes")?;
    if !is_shared {
        named.warn(code::UNUSED, "`max_spool_bytes` has no effect with this `store_backend`");
        return None;
    }
    let bytes = at.integer_in("max_spool_bytes", LEAST_SPOOL_BYTES, i64::MAX)?;
    u64::try_from(bytes).ok()
}

/// The server of run records; `None` is a file of this machine.
fn records(at: &Cursor<'_>, backend: Backend) -> Option<RecordsServer> {
    if let Some(idle) = at.get("max_records").filter(|_| !matches!(backend, Backend::Redis | Backend::Qdrant))
    {
        idle.warn(code::UNUSED, "`max_records` has no effect with this `store_backend`");
    }
    match backend {
        Backend::Postgres => server(&at.needed("postgres")?).map(RecordsServer::Postgres),
        Backend::Redis => Some(RecordsServer::Redis(Box::new(in_redis(at)))),
        Backend::Qdrant => Some(RecordsServer::Qdrant(Box::new(QdrantRecords {
            place: qdrant::place(at, "collection_name", COLLECTION),
            most: most(at),
        }))),
        Backend::File | Backend::Unknown => None,
    }
}

/// Memory is bounded: there is always a time and a number.
fn in_redis(at: &Cursor<'_>) -> RedisRecords {
    let defaults = RedisServer { key_prefix: KEY_PREFIX.to_owned(), ..RedisServer::default() };
    RedisRecords { place: redis::server(at, "db", defaults), keep_for: keep_for(at), most: most(at) }
}

fn keep_for(at: &Cursor<'_>) -> Duration {
    let seconds = at.count("ttl_seconds").filter(|seconds| *seconds > 0);
    seconds.map_or(KEEPS.0, Duration::from_secs)
}

fn most(at: &Cursor<'_>) -> usize {
    let most = at.integer_in("max_records", 1, RECORDS_MOST).and_then(|most| usize::try_from(most).ok());
    most.unwrap_or(KEEPS.1)
}

/// The database of keys: its own, or the one of the records.
fn keys(at: &Cursor<'_>, records: Option<&RecordsServer>) -> Option<PostgresServer> {
    if at.word("store_backend", &KEY_BACKENDS)? != Backend::Postgres {
        return None;
    }
    match (at.get("postgres"), records) {
        (Some(own), _) => server(&own),
        (None, Some(RecordsServer::Postgres(records))) => Some(records.clone()),
        (None, _) => {
            at.needed("postgres");
            None
        }
    }
}

fn server(at: &Cursor<'_>) -> Option<PostgresServer> {
    let host = at.string("host").unwrap_or_else(|| "localhost".to_owned());
    let local = host.starts_with('/') || matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
    let ca_file = at.string("ca_file");
    let (database, user) = (at.required("database"), at.required("user"));
    let mode = mode(at, local, ca_file.is_some());
    Some(PostgresServer {
        host,
        port: at.integer_in("port", 1, 65_535).and_then(|port| u16::try_from(port).ok()).unwrap_or(5432),
        database: database?,
        user: user?,
        password: secret(at, "password"),
        mode,
        ca_file,
    })
}

/// Who names authorities wants the certificate looked at: `require` is `verify-ca` then. Source: libpq, "SSL Support", which
/// reads `require` so where there is a file of authorities.
fn mode(at: &Cursor<'_>, local: bool, has_authorities: bool) -> PostgresMode {
    match at.word("ssl_mode", &MODES) {
        Some(PostgresMode::Require) | None if has_authorities => PostgresMode::VerifyFull,
        Some(PostgresMode::Disable) if has_authorities => {
            at.warn(code::UNUSED, "`ca_file` has no effect beside `ssl_mode: disable`");
            PostgresMode::Disable
        }
        Some(mode) => mode,
        None if local => PostgresMode::Disable,
        None => PostgresMode::VerifyFull,
    }
}

#[cfg(test)]
mod tests {
    use crate::{KeptWhere, PostgresMode, PostgresServer, RecordsServer, Severity, code, read};
    use std::time::Duration;

    fn of(services: &str) -> (KeptWhere, Vec<(Severity, &'static str)>) {
        let file = format!("version: v0.3\nglobal: {{ services: {{ {services} }} }}\n");
        let loaded = read(&file);
        let codes = loaded.diagnostics.iter().map(|it| (it.severity, it.code)).collect();
        (loaded.spec.map(|spec| spec.global.kept_where).unwrap_or_default(), codes)
    }

    #[test]
    fn records_and_keys_go_to_the_database_that_is_named() {
        let (kept, told) = of("router_replay: { enabled: true, store_backend: postgres, ttl_seconds: 60,
             async_writes: false, postgres: { host: db.internal, database: vsr, user: router,
             password: '${PG}', table_name: t } }, api_keys: { store_backend: postgres }");
        let Some(RecordsServer::Postgres(records)) = kept.records.clone() else { panic!("{kept:?}") };
        assert_eq!((records.port, records.mode), (5432, PostgresMode::VerifyFull));
        assert_eq!((kept.records_for, kept.keys), (Some(Duration::from_secs(60)), Some(records)));
        assert_eq!(told, [(Severity::Warning, code::NOT_NEEDED)], "the table's name");
        let (kept, told) = of("api_keys: { store_backend: postgres, postgres: { database: k, user: u } }");
        let own = PostgresServer {
            host: "localhost".to_owned(),
            port: 5432,
            database: "k".to_owned(),
            user: "u".to_owned(),
            password: None,
            mode: PostgresMode::Disable,
            ca_file: None,
        };
        assert_eq!((kept.records, kept.keys, told.len()), (None, Some(own), 0), "{told:?}");
    }

    #[test]
    fn what_waits_on_this_machine_has_a_bound_of_the_file() {
        let rows = [
            ("store_backend: postgres, max_spool_bytes: 1048576", Some(1 << 20), None),
            ("store_backend: postgres", None, None),
            ("store_backend: postgres, max_spool_bytes: 1000", None, Some(code::BAD_RANGE)),
            ("store_backend: memory, max_spool_bytes: 1048576", None, Some(code::UNUSED)),
        ];
        for (replay, bytes, told) in rows {
            let (kept, codes) =
                of(&format!("router_replay: {{ {replay}, postgres: {{ database: d, user: u }} }}"));
            assert_eq!(kept.spool_bytes, bytes, "{replay}");
            assert_eq!(codes.first().map(|it| it.1), told, "{replay}");
        }
    }

    #[test]
    fn who_names_authorities_has_certificates_looked_at() {
        let rows = [
            ("host: localhost", PostgresMode::Disable, None),
            ("host: /run/postgresql", PostgresMode::Disable, None),
            ("host: db.internal", PostgresMode::VerifyFull, None),
            ("host: db.internal, ssl_mode: disable", PostgresMode::Disable, None),
            ("host: db.internal, ssl_mode: require", PostgresMode::Require, None),
            ("host: db.internal, ssl_mode: verify-ca", PostgresMode::VerifyFull, None),
            ("host: db.internal, ssl_mode: require, ca_file: ca.pem", PostgresMode::VerifyFull, None),
            ("host: localhost, ca_file: ca.pem", PostgresMode::VerifyFull, None),
            (
                "host: localhost, ssl_mode: disable, ca_file: ca.pem",
                PostgresMode::Disable,
                Some(code::UNUSED),
            ),
        ];
        for (place, mode, warning) in rows {
            let (kept, told) = of(&format!(
                "api_keys: {{ store_backend: postgres, postgres: {{ database: k, user: u, {place} }} }}"
            ));
            assert_eq!(kept.keys.map(|it| it.mode), Some(mode), "{place}");
            assert_eq!(told.first().map(|it| it.1), warning, "{place}");
        }
    }

    #[test]
    fn records_in_a_redis_server_are_bounded_by_time_and_number() {
        let in_redis = |services: &str| match of(services) {
            (KeptWhere { records: Some(RecordsServer::Redis(it)), records_for: None, .. }, told) => {
                (*it, told)
            }
            other => panic!("{other:?}"),
        };
        let (it, told) = in_redis("router_replay: { enabled: true, store_backend: redis, ttl_seconds: 60, max_records: 5,
             redis: { address: 'r:7000', db: 2, password: '${R}', use_tls: true, key_prefix: 'x:', pool_size: 3 } }");
        assert_eq!((it.keep_for, it.most), (Duration::from_secs(60), 5));
        let place = &it.place;
        assert_eq!(
            (place.address.as_str(), place.database, place.tls, place.key_prefix.as_str()),
            ("r:7000", 2, true, "x:")
        );
        assert_eq!(told, []);
        let (it, told) = in_redis("router_replay: { store_backend: redis }");
        assert_eq!((it.keep_for.as_secs(), it.most), (2_592_000, 10_000));
        assert_eq!(
            (it.place.address.as_str(), it.place.key_prefix.as_str()),
            ("localhost:6379", "vllm-sr:replay:")
        );
        assert_eq!(told, []);
    }

    #[test]
    fn records_in_a_qdrant_server_are_bounded_by_time_and_number() {
        let in_qdrant = |services: &str| match of(services) {
            (KeptWhere { records: Some(RecordsServer::Qdrant(it)), records_for, spool_bytes, .. }, told) => {
                (*it, records_for.map(|it| it.as_secs()), spool_bytes, told)
            }
            other => panic!("{other:?}"),
        };
        let (it, keep_for, spool_bytes, told) = in_qdrant(
            "router_replay: { store_backend: qdrant, ttl_seconds: 60, max_records: 5, max_spool_bytes: 1048576,
             qdrant: { host: q.internal, port: 7333, api_key: '${Q}', use_tls: true, connect_timeout: 9,
                       collection_name: runs } }",
        );
        assert_eq!((it.most, keep_for, spool_bytes), (5, Some(60), Some(1 << 20)));
        let place = &it.place;
        assert_eq!((place.host.as_str(), place.port, place.tls), ("q.internal", 7333, true));
        assert_eq!((place.timeout.as_secs(), place.collection.as_str()), (9, "runs"));
        assert!(place.api_key.is_some());
        assert_eq!(told, []);
        let (it, keep_for, _, told) = in_qdrant("router_replay: { store_backend: qdrant }");
        assert_eq!((it.most, keep_for), (10_000, Some(2_592_000)));
        assert_eq!((it.place.host.as_str(), it.place.port), ("localhost", 6333));
        assert_eq!(it.place.collection, "router_replay");
        assert_eq!(told, []);
    }

    #[test]
    fn what_is_not_a_place_is_told_where_it_stands() {
        let rows = [
            ("router_replay: { store_backend: milvus }", Severity::Warning, code::NOT_SUPPORTED_YET),
            (
                "router_replay: { store_backend: qdrant, qdrant: { port: 6334 } }",
                Severity::Warning,
                code::BAD_VALUE,
            ),
            (
                "router_replay: { store_backend: qdrant, qdrant: { collection_name: 'a/b' } }",
                Severity::Error,
                code::BAD_VALUE,
            ),
            (
                "router_replay: { store_backend: qdrant, qdrant: { api_key: hunter2 } }",
                Severity::Warning,
                code::LITERAL_SECRET,
            ),
            ("router_replay: { store_backend: redis, max_records: 0 }", Severity::Error, code::BAD_RANGE),
            ("router_replay: { store_backend: memory, max_records: 9 }", Severity::Warning, code::UNUSED),
            (
                "router_replay: { store_backend: redis }, api_keys: { store_backend: postgres }",
                Severity::Error,
                code::MISSING_KEY,
            ),
            ("router_replay: { store_backend: postgres }", Severity::Error, code::MISSING_KEY),
            (
                "router_replay: { store_backend: postgres, postgres: { user: u } }",
                Severity::Error,
                code::MISSING_KEY,
            ),
            ("router_replay: { store_backend: disk }", Severity::Error, code::BAD_VALUE),
            ("api_keys: { store_backend: postgres }", Severity::Error, code::MISSING_KEY),
            (
                "api_keys: { store_backend: postgres, postgres: { database: k, user: u, ssl_mode: prefer } }",
                Severity::Error,
                code::BAD_VALUE,
            ),
            (
                "api_keys: { store_backend: postgres, postgres: { database: k, user: u, password: hunter2 } }",
                Severity::Warning,
                code::LITERAL_SECRET,
            ),
        ];
        for (services, severity, code) in rows {
            let (kept, told) = of(services);
            assert_eq!(told.first(), Some(&(severity, code)), "{services}");
            assert!(!format!("{kept:?}").contains("hunter2"));
        }
        let off =
            "router_replay: { enabled: false, store_backend: postgres, postgres: { database: d, user: u } }";
        assert_eq!(of(off).0, KeptWhere::default());
    }
}
