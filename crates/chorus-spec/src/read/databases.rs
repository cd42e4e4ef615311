//! `global.services.router_replay` and `global.services.api_keys`: where run records, outcomes and API keys are kept.
//!
//! **Invariant:** a password is a reference; and records do not cross a network in the clear unless the file says so.

use super::credential::secret;
use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{KeptWhere, PostgresMode, PostgresServer};
use std::time::Duration;

/// A store of records that the contract names, and whether there is one here.
const RECORD_BACKENDS: [(&str, Backend); 5] = [
    ("memory", Backend::File),
    ("postgres", Backend::Postgres),
    ("redis", Backend::Unknown),
    ("milvus", Backend::Unknown),
    ("qdrant", Backend::Unknown),
];
/// A store of keys.
const KEY_BACKENDS: [(&str, Backend); 2] = [("file", Backend::File), ("postgres", Backend::Postgres)];

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
        let help = Some("say `postgres` for a database that replicas share".to_owned());
        let text =
            "this store of run records is known, not supported yet: they are kept in a file of this machine";
        named.warn_help(code::NOT_SUPPORTED_YET, text, help);
    }
    let shared = replay.filter(|_| is_on && backend == Some(Backend::Postgres));
    let records = shared.as_ref().and_then(|at| server(&at.needed("postgres")?));
    let records_for = shared.and_then(|at| at.count("ttl_seconds")).map(Duration::from_secs);
    let keys = services.get("api_keys").and_then(|at| keys(&at, records.as_ref()));
    KeptWhere { records, records_for, keys }
}

/// The database of keys: its own, or the one of the records.
fn keys(at: &Cursor<'_>, records: Option<&PostgresServer>) -> Option<PostgresServer> {
    if at.word("store_backend", &KEY_BACKENDS)? != Backend::Postgres {
        return None;
    }
    match (at.get("postgres"), records) {
        (Some(own), _) => server(&own),
        (None, Some(records)) => Some(records.clone()),
        (None, None) => {
            at.needed("postgres");
            None
        }
    }
}

fn server(at: &Cursor<'_>) -> Option<PostgresServer> {
    let host = at.string("host").unwrap_or_else(|| "localhost".to_owned());
    let local = host.starts_with('/') || matches!(host.as_str(), "localhost" | "127.0.0.1" | "::1");
    let unsaid = if local { PostgresMode::Disable } else { PostgresMode::VerifyFull };
    let (database, user) = (at.required("database"), at.required("user"));
    Some(PostgresServer {
        host,
        port: at.integer_in("port", 1, 65_535).and_then(|port| u16::try_from(port).ok()).unwrap_or(5432),
        database: database?,
        user: user?,
        password: secret(at, "password"),
        mode: at.word("ssl_mode", &MODES).unwrap_or(unsaid),
        ca_file: at.string("ca_file"),
    })
}

#[cfg(test)]
mod tests {
    use crate::{KeptWhere, PostgresMode, PostgresServer, Severity, code, read};
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
        let records = kept.records.clone().unwrap();
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
    fn what_is_not_a_place_is_told_where_it_stands() {
        let rows = [
            ("router_replay: { store_backend: redis }", Severity::Warning, code::NOT_SUPPORTED_YET),
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
