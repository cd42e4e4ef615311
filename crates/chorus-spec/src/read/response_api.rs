//! `global.services.response_api`: what the Responses door keeps.

use super::cursor::Cursor;
use super::flow_state::{BACKENDS, Backend};
use crate::ResponseApi;
use crate::diagnostic::code;
use std::time::Duration;

/// Most responses that may be kept.
const RESPONSES_MOST: i64 = 10_000_000;

/// Reads `response_api` of the services.
pub(super) fn read(services: &Cursor<'_>) -> ResponseApi {
    let defaults = ResponseApi::default();
    let Some(at) = services.get("response_api") else { return defaults };
    let backend = at.word("store_backend", &BACKENDS);
    if let Some(named) = at.get("store_backend").filter(|_| backend == Some(Backend::Redis)) {
        named.warn_help(
            code::NOT_SUPPORTED_YET,
            "responses in Redis are known, not supported yet: they are kept in a file of this machine",
            Some("say `file`, or `memory` to forget them when the process stops".to_owned()),
        );
    }
    let most = at.integer_in("max_responses", 1, RESPONSES_MOST).and_then(|it| usize::try_from(it).ok());
    ResponseApi {
        enabled: at.boolean("enabled").unwrap_or(defaults.enabled),
        in_memory: backend == Some(Backend::Memory),
        ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs),
        max_responses: most.unwrap_or(defaults.max_responses),
    }
}

#[cfg(test)]
mod tests {
    use crate::{ResponseApi, code, read};
    use std::time::Duration;

    fn of(settings: &str) -> (ResponseApi, Vec<&'static str>) {
        let file = format!("version: v0.3\nglobal: {{ services: {{ response_api: {{ {settings} }} }} }}\n");
        let loaded = read(&file);
        let codes = loaded.diagnostics.iter().map(|it| it.code).collect();
        (loaded.spec.unwrap().global.response_api, codes)
    }

    #[test]
    fn what_is_kept_where_and_how_long() {
        let (own, codes) = of("enabled: true, store_backend: memory, ttl_seconds: 60, max_responses: 5");
        let want =
            ResponseApi { enabled: true, in_memory: true, ttl: Duration::from_secs(60), max_responses: 5 };
        assert_eq!((own, codes.is_empty()), (want, true), "{codes:?}");
        let (other, codes) = of("store_backend: redis");
        assert_eq!((other, codes), (ResponseApi::default(), vec![code::NOT_SUPPORTED_YET]));
    }
}
