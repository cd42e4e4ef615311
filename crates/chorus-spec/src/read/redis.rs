//! Blocks `redis`: how a Redis server is reached.

use super::credential::secret;
use super::cursor::Cursor;
use crate::RedisServer;
use crate::diagnostic::code;

/// Greatest number of a Redis database.
pub(super) const DATABASES_MOST: i64 = 65_535;
/// Most retries of a lost connection.
const RETRIES_MOST: i64 = 100;

/// The server under `redis`, where it says so; `database` is the key of the database's number.
pub(super) fn server(at: &Cursor<'_>, database: &str, defaults: RedisServer) -> RedisServer {
    match at.get("redis") {
        Some(block) => place(&block, database, defaults),
        None => defaults,
    }
}

/// The server of that block.
pub(super) fn place(at: &Cursor<'_>, database: &str, defaults: RedisServer) -> RedisServer {
    RedisServer {
        address: address(at).unwrap_or(defaults.address),
        database: at.integer_in(database, 0, DATABASES_MOST).unwrap_or(defaults.database),
        password: secret(at, "password"),
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
fn address(at: &Cursor<'_>) -> Option<String> {
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
