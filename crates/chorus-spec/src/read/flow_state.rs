//! `global.integrations.looper.flow.state`: where runs wait for a client's tools.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{FlowRedis, FlowState, FlowStore, Secret};
use std::time::Duration;

/// Greatest number of a Redis database.
const DATABASES_MOST: i64 = 65_535;
/// Most retries of a lost connection.
const RETRIES_MOST: i64 = 100;

/// The words of `store_backend`.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Backend {
    Memory,
    File,
    Redis,
}

/// What `store_backend` may say, here and of responses.
pub(super) const BACKENDS: [(&str, Backend); 3] =
    [("memory", Backend::Memory), ("file", Backend::File), ("redis", Backend::Redis)];

/// Reads `state` of the looper `flow`.
pub(super) fn read(flow: &Cursor<'_>) -> FlowState {
    let defaults = FlowState::default();
    let Some(at) = flow.get("state") else { return defaults };
    let backend = at.word("store_backend", &BACKENDS).unwrap_or(Backend::Memory);
    for (key, is_read) in
        [("file", matches!(backend, Backend::File)), ("redis", matches!(backend, Backend::Redis))]
    {
        if let Some(idle) = at.get(key).filter(|_| !is_read) {
            idle.warn(code::UNUSED, format!("`{key}` has no effect with this `store_backend`"));
        }
    }
    let store = match backend {
        Backend::Memory => FlowStore::Memory,
        Backend::File => file(&at).unwrap_or(FlowStore::Memory),
        Backend::Redis => FlowStore::Redis(Box::new(redis(&at, FlowRedis::default()))),
    };
    FlowState { store, ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs) }
}

fn file(at: &Cursor<'_>) -> Option<FlowStore> {
    Some(FlowStore::File { directory: at.needed("file")?.required("directory")? })
}

/// The server under `redis`, where it says so.
pub(super) fn redis(at: &Cursor<'_>, defaults: FlowRedis) -> FlowRedis {
    let Some(at) = at.get("redis") else { return defaults };
    FlowRedis {
        address: address(&at).unwrap_or(defaults.address),
        database: at.integer_in("db", 0, DATABASES_MOST).unwrap_or(defaults.database),
        password: password(&at),
        tls: at.boolean("use_tls").unwrap_or(defaults.tls),
        tls_any_certificate: at.boolean("tls_skip_verify").unwrap_or(defaults.tls_any_certificate),
        retries: at
            .integer_in("max_retries", 0, RETRIES_MOST)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(defaults.retries),
        key_prefix: at.string("key_prefix").unwrap_or(defaults.key_prefix),
    }
}

/// `host:port`, without a scheme and without credentials.
pub(super) fn address(at: &Cursor<'_>) -> Option<String> {
    let text = at.string("address")?;
    let port = text.rsplit_once(':').and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
    if port.is_some_and(|(host, _)| !host.is_empty()) && !text.contains(['/', '@', ' ']) {
        return Some(text);
    }
    if let Some(named) = at.get("address") {
        let help = "write `host:port`; the password has its own key".to_owned();
        named.error_help(code::BAD_VALUE, "this is not an address of a Redis server", help);
    }
    None
}

/// The password, by reference; one that is written out is a warning.
pub(super) fn password(at: &Cursor<'_>) -> Option<Secret> {
    secret(at, "password")
}

/// A credential, by reference; one that is written out is a warning.
pub(super) fn secret(at: &Cursor<'_>, key: &str) -> Option<Secret> {
    let named = at.get(key)?;
    let text = named.text().filter(|text| !text.is_empty())?;
    if !(text.starts_with("${") && text.ends_with('}')) {
        let help = "write `${NAME}` and set that environment variable".to_owned();
        named.warn_help(code::LITERAL_SECRET, "a credential is written into the file", help);
    }
    Some(Secret::new(text))
}
