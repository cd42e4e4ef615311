//! `global.services.response_api`: what the Responses door keeps.

use super::cursor::Cursor;
use super::flow_state::{BACKENDS, Backend};
use super::redis;
use crate::diagnostic::code;
use crate::{RedisServer, ResponseApi, ResponsesPlace};
use std::time::Duration;

/// Most responses that may be kept.
const RESPONSES_MOST: i64 = 10_000_000;

/// What the names of its keys begin with unless the file says otherwise.
const KEY_PREFIX: &str = "vllm-sr:responses:";

/// Reads `response_api` of the services.
pub(super) fn read(services: &Cursor<'_>) -> ResponseApi {
    let defaults = ResponseApi::default();
    let Some(at) = services.get("response_api") else { return defaults };
    let backend = at.word("store_backend", &BACKENDS);
    if let Some(idle) = at.get("redis").filter(|_| backend != Some(Backend::Redis)) {
        idle.warn(code::UNUSED, "`redis` has no effect with this `store_backend`");
    }
    let most = at.integer_in("max_responses", 1, RESPONSES_MOST).and_then(|it| usize::try_from(it).ok());
    ResponseApi {
        enabled: at.boolean("enabled").unwrap_or(defaults.enabled),
        place: match backend {
            Some(Backend::Memory) => ResponsesPlace::Memory,
            Some(Backend::Redis) => ResponsesPlace::Redis(Box::new(server(&at))),
            Some(Backend::File) | None => ResponsesPlace::File,
        },
        ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs),
        max_responses: most.unwrap_or(defaults.max_responses),
    }
}

/// One server; what would go unread of a cluster or a certificate would promise what is not kept.
fn server(at: &Cursor<'_>) -> RedisServer {
    let defaults = RedisServer { key_prefix: KEY_PREFIX.to_owned(), ..RedisServer::default() };
    let Some(at) = at.get("redis") else { return defaults };
    if let Some(named) = at.get("cluster_mode").filter(|_| at.boolean("cluster_mode") == Some(true)) {
        let help = "name one server by `address`".to_owned();
        named.error_help(code::NOT_SUPPORTED_YET, "a cluster of Redis servers is known, not supported", help);
    }
    for key in ["tls_cert_path", "tls_key_path", "tls_ca_path"] {
        if let Some(named) = at.get(key).filter(|it| it.text().is_some_and(|text| !text.is_empty())) {
            let help = "the server's certificate is checked against the roots that browsers know".to_owned();
            let text = "certificates of one's own are known, not supported";
            named.error_help(code::NOT_SUPPORTED_YET, text, help);
        }
    }
    RedisServer { tls: at.boolean("tls_enabled").unwrap_or(false), ..redis::place(&at, "db", defaults) }
}

#[cfg(test)]
mod tests {
    use crate::{ResponseApi, ResponsesPlace, code, read};
    use std::time::Duration;

    fn of(settings: &str) -> (Option<ResponseApi>, Vec<&'static str>) {
        let file = format!("version: v0.3\nglobal: {{ services: {{ response_api: {{ {settings} }} }} }}\n");
        let loaded = read(&file);
        let codes = loaded.diagnostics.iter().map(|it| it.code).collect();
        (loaded.spec.map(|spec| spec.global.response_api), codes)
    }

    #[test]
    fn what_is_kept_where_and_how_long() {
        let own = of("enabled: true, store_backend: memory, ttl_seconds: 60, max_responses: 5");
        let want = ResponseApi {
            enabled: true,
            place: ResponsesPlace::Memory,
            ttl: Duration::from_secs(60),
            max_responses: 5,
        };
        assert_eq!(own, (Some(want), Vec::new()));
        assert_eq!(of("store_backend: file"), (Some(ResponseApi::default()), Vec::new()));
    }

    #[test]
    fn responses_in_a_redis_server() {
        let in_redis = |settings: &str| match of(settings) {
            (Some(ResponseApi { place: ResponsesPlace::Redis(it), .. }), told) => (*it, told),
            other => panic!("{other:?}"),
        };
        let (it, told) = in_redis("store_backend: redis, redis: { address: 'r:7000', db: 4, password: '${R}',
             key_prefix: 'x:', tls_enabled: true, pool_size: 3, dial_timeout: 2, cluster_mode: false, tls_ca_path: '' }");
        assert_eq!(
            (it.address.as_str(), it.database, it.key_prefix.as_str(), it.tls),
            ("r:7000", 4, "x:", true)
        );
        assert_eq!(told, [""; 0]);
        let (it, told) = in_redis("store_backend: redis");
        assert_eq!((it.key_prefix.as_str(), told.len()), ("vllm-sr:responses:", 0));
        for wrong in ["cluster_mode: true", "tls_ca_path: a.pem"] {
            let told = of(&format!("store_backend: redis, redis: {{ {wrong} }}"));
            assert_eq!(told, (None, vec![code::NOT_SUPPORTED_YET]), "{wrong}");
        }
        assert_eq!(of("redis: { address: 'r:1' }").1, [code::UNUSED]);
    }
}
