//! `global.router.learning.state_store`: where what is known of conversations is kept. Source: contract §4.8.

use super::cursor::Cursor;
use super::redis;
use crate::SessionStore;
use std::time::Duration;

/// The words of `backend`, and whether replicas share it.
const BACKENDS: [(&str, bool); 2] = [("memory", false), ("redis", true)];
/// The longest that one question may take, in milliseconds.
const TIMEOUT_MOST: i64 = 60_000;

/// Reads it; `None` is the memory of each process.
pub(super) fn read(global: &Cursor<'_>) -> Option<Box<SessionStore>> {
    let at = global.dig(&["router", "learning", "state_store"])?;
    if !at.word("backend", &BACKENDS)? {
        return None;
    }
    let defaults = SessionStore::default();
    let timeout = at.integer_in("timeout_ms", 1, TIMEOUT_MOST).and_then(|it| u64::try_from(it).ok());
    Some(Box::new(SessionStore {
        place: redis::server(&at, "database", defaults.place),
        ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs),
        timeout: timeout.map_or(defaults.timeout, Duration::from_millis),
    }))
}

#[cfg(test)]
mod tests {
    use crate::{SessionStore, code, read};
    use std::time::Duration;

    fn of(state_store: &str) -> (Option<SessionStore>, Vec<&'static str>) {
        let file = format!(
            "version: v0.3\nglobal: {{ router: {{ learning: {{ enabled: true, state_store: {{ {state_store} }} }} }} }}\n"
        );
        let loaded = read(&file);
        let codes = loaded.diagnostics.iter().map(|it| it.code).collect();
        (loaded.spec.and_then(|spec| spec.global.session_store).map(|it| *it), codes)
    }

    #[test]
    fn conversations_are_kept_where_the_file_says() {
        let (store, told) = of("backend: redis, ttl_seconds: 60, timeout_ms: 50,
             redis: { address: 'r:7000', password: '${P}', database: 2, key_prefix: 'x:' }");
        let store = store.unwrap();
        assert_eq!((store.ttl, store.timeout), (Duration::from_secs(60), Duration::from_millis(50)));
        let place = &store.place;
        assert_eq!((place.address.as_str(), place.database, place.key_prefix.as_str()), ("r:7000", 2, "x:"));
        assert_eq!(told, [""; 0]);
        assert_eq!(of("backend: redis").0, Some(SessionStore::default()));
        assert_eq!(of("backend: memory"), (None, Vec::new()));
        assert_eq!(of("backend: disk").1, [code::BAD_VALUE]);
        assert_eq!(of("backend: redis, redis: { address: 'redis://u:p@h' }").1, [code::BAD_VALUE]);
    }
}
