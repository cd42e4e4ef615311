//! Reads issuers of tokens, the store of limits, and where traces go.
//!
//! It knows no network. **Invariant:** no key and no trace leaves this machine in the clear unless the file says so.

use super::cursor::Cursor;
use super::redis;
use crate::diagnostic::code;
use crate::{LimitStore, RedisServer, TokenAlgorithm, TokenIssuer, TraceExport};
use std::time::Duration;

/// What tokens are signed with where the file does not say.
const ALGORITHMS: [TokenAlgorithm; 3] = [TokenAlgorithm::Rs256, TokenAlgorithm::Es256, TokenAlgorithm::EdDsa];
/// The furthest that clocks may be apart, in seconds.
const LEEWAY_MOST: i64 = 600;

/// Reads the providers `jwt` of `authz`.
pub(super) fn token_issuers(authz: &Cursor<'_>) -> Vec<TokenIssuer> {
    let providers = authz.items("providers");
    let tokens =
        providers.iter().filter(|it| it.get("type").and_then(|at| at.text()).as_deref() == Some("jwt"));
    tokens.filter_map(token_issuer).collect()
}

fn token_issuer(at: &Cursor<'_>) -> Option<TokenIssuer> {
    let issuer = at.required("issuer");
    let audiences = at.strings("audiences");
    if audiences.is_empty() {
        let help = "name who tokens are for: a token for another service must open nothing here".to_owned();
        at.error_help(code::MISSING_KEY, "a provider `jwt` needs `audiences`", help);
    }
    let written = at.get("jwks_url");
    let jwks_url = match &written {
        Some(url) => Some(url.text().filter(|_| is_safe(url))?),
        None => None,
    };
    if let (None, Some(issuer)) = (&written, at.get("issuer")) {
        is_safe(&issuer);
    }
    let algorithms = at.get("algorithms").map(|list| {
        let each = list.elements();
        each.iter().filter_map(|word| word.one_of(&TokenAlgorithm::WORDS)).collect::<Vec<_>>()
    });
    let leeway = at.integer_in("leeway_seconds", 0, LEEWAY_MOST).unwrap_or(60);
    Some(TokenIssuer {
        issuer: issuer.filter(|_| !audiences.is_empty())?,
        jwks_url,
        audiences,
        algorithms: algorithms.filter(|list| !list.is_empty()).unwrap_or_else(|| ALGORITHMS.to_vec()),
        user_claim: at.string("user_claim").unwrap_or_else(|| "sub".to_owned()),
        groups_claim: at.string("groups_claim").unwrap_or_else(|| "groups".to_owned()),
        leeway: Duration::from_secs(u64::try_from(leeway).unwrap_or(60)),
    })
}

/// Whether keys come from there unchanged: by TLS, or from this machine. The error is reported.
fn is_safe(at: &Cursor<'_>) -> bool {
    let text = at.text().unwrap_or_default();
    let host = text.strip_prefix("http://").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let local = host.is_some_and(|host| {
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        // Before an `@` stands a user, not the host.
        !host.contains('@') && matches!(name, "127.0.0.1" | "localhost" | "[::1]")
    });
    if text.starts_with("https://") || local {
        return true;
    }
    let help = "only keys that came by TLS, or from this machine, are the issuer's".to_owned();
    at.error_help(code::BAD_VALUE, "keys are fetched from an `https` URL", help);
    false
}

/// Reads where `ratelimit` counts.
pub(super) fn limit_store(services: &Cursor<'_>) -> LimitStore {
    let Some(at) = services.get("ratelimit") else { return LimitStore::Process };
    let providers = at.items("providers");
    let is_redis =
        |it: &&Cursor<'_>| it.get("type").and_then(|at| at.text()).as_deref() == Some("redis-limiter");
    let Some(shared) = providers.iter().find(is_redis) else { return LimitStore::Process };
    let defaults = RedisServer { key_prefix: "chorus:limits:".to_owned(), ..RedisServer::default() };
    let server = Box::new(redis::server(shared, "db", defaults));
    LimitStore::Redis { server, fail_open: at.boolean("fail_open").unwrap_or(false) }
}

/// Reads `observability.tracing`; `None` where nothing is traced.
pub(super) fn trace_export(services: &Cursor<'_>) -> Option<TraceExport> {
    let at = services.dig(&["observability", "tracing"])?;
    if at.boolean("enabled") != Some(true) {
        return None;
    }
    let exporter = at.needed("exporter")?;
    if exporter.word("type", &[("otlp", true), ("stdout", false)]) == Some(false) {
        exporter.warn(code::NOT_SUPPORTED_YET, "the exporter `stdout` is known, not supported yet");
        return None;
    }
    let sampling = at.get("sampling");
    let rate = sampling.as_ref().and_then(|it| it.float_in("rate", 0.0, 1.0)).unwrap_or(1.0);
    const KINDS: [(&str, Option<f64>); 3] =
        [("always_on", Some(1.0)), ("always_off", Some(0.0)), ("probabilistic", None)];
    let fixed = sampling.as_ref().and_then(|it| it.word("type", &KINDS)).flatten();
    let resource = at.get("resource");
    let word = |key: &str| resource.as_ref().and_then(|it| it.string(key)).filter(|text| !text.is_empty());
    Some(TraceExport {
        endpoint: endpoint(&exporter)?,
        rate: fixed.unwrap_or(rate),
        service_name: word("service_name").unwrap_or_else(|| "chorus".to_owned()),
        service_version: word("service_version"),
        environment: word("deployment_environment"),
    })
}

/// The contract writes `host:port` and `insecure`; a URL says both.
fn endpoint(exporter: &Cursor<'_>) -> Option<String> {
    let at = exporter.needed("endpoint")?;
    let text = at.text()?;
    let url = match (text.contains("://"), exporter.boolean("insecure").unwrap_or(false)) {
        (true, _) => text.trim_end_matches('/').to_owned(),
        (false, true) => format!("http://{text}"),
        (false, false) => format!("https://{text}"),
    };
    if url.starts_with("http://") || url.starts_with("https://") {
        return Some(url);
    }
    let help = "write `https://host:4318`, or `host:4318` with `insecure: true`".to_owned();
    at.error_help(code::BAD_VALUE, "traces go to a collector over HTTP", help);
    None
}
