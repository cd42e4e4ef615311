//! Reads how a place is called: `reliability` of a model; limits, timeouts, credential and way of a backend.
//!
//! It knows no network. **Invariant:** every word of `retry_on`, `fallback_on` and `quirks` is one that is run.

use super::cursor::Cursor;
use super::names::Reserved;
use super::nearest::suggest;
use crate::deployment::{FAILURE_WORDS, QUIRK_WORDS};
use crate::diagnostic::code;
use crate::{
    Access, BackendLimits, CredentialSource, HealthCheck, LoadBalance, Model, ModelId, Reliability, Template,
};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Reads `reliability`; whom its `fallback` names is checked once all models are known.
pub(super) fn reliability(model: &Cursor<'_>) -> Reliability {
    const POLICIES: [(&str, LoadBalance); 2] =
        [("round_robin", LoadBalance::RoundRobin), ("least_request", LoadBalance::LeastRequest)];
    let Some(at) = model.get("reliability") else { return Reliability::default() };
    let usual = Reliability::default();
    let small = |key: &str, most: i64| at.integer_in(key, 0, most).and_then(|n| u32::try_from(n).ok());
    let it = Reliability {
        balance: at.word("lb_policy", &POLICIES).unwrap_or_default(),
        retry_count: small("retry_count", 5),
        retry_on: failures(&at, "retry_on"),
        retry_budget_percent: at
            .float_in("retry_budget_percent", 0.0, 100.0)
            .unwrap_or(usual.retry_budget_percent),
        consecutive_5xx: small("consecutive_5xx", i64::from(u32::MAX)).unwrap_or(usual.consecutive_5xx),
        base_ejection_time: at.duration("base_ejection_time").unwrap_or(usual.base_ejection_time),
        max_ejection_percent: small("max_ejection_percent", 100).unwrap_or(usual.max_ejection_percent),
        health_check: health_check(&at),
        fallback: at.strings("fallback").into_iter().map(ModelId::new).collect(),
        fallback_on: failures(&at, "fallback_on"),
        hedge_after_percentile: at.float_in("hedge_after_percentile", 50.0, 99.9),
    };
    if it.retry_count.is_some_and(|count| count > 0) && at.get("retry_on").is_none() {
        let help = "for example `retry_on: 5xx,connect-failure,reset`".to_owned();
        let place = at.get("retry_count").unwrap_or_else(|| at.clone());
        place.error_help(code::MISSING_KEY, "`retry_count` needs `retry_on`", help);
    }
    if let Some(idle) = at.get("fallback_on").filter(|_| it.fallback.is_empty()) {
        idle.warn(code::UNUSED, "`fallback_on` has no effect without `fallback`");
    }
    it
}

fn health_check(at: &Cursor<'_>) -> Option<HealthCheck> {
    let (interval, timeout) = (at.duration("health_check_interval"), at.duration("health_check_timeout"));
    let Some(written) = at.get("health_check_path") else {
        if interval.or(timeout).is_some() {
            at.warn(code::UNUSED, "health checks need `health_check_path`");
        }
        return None;
    };
    let path = written.text()?;
    if !path.starts_with('/') {
        written.error(code::BAD_VALUE, "`health_check_path` must begin with `/`");
        return None;
    }
    let seconds = Duration::from_secs;
    Some(HealthCheck {
        path,
        interval: interval.unwrap_or(seconds(10)),
        timeout: timeout.unwrap_or(seconds(2)),
    })
}

/// A list of kinds of failure, or the contract's one text with commas.
fn failures(at: &Cursor<'_>, key: &str) -> Vec<String> {
    let Some(written) = at.get(key) else { return Vec::new() };
    let is_list = written.node().text().is_none();
    let texts = if is_list { written.texts() } else { written.text().into_iter().collect() };
    let words = texts.iter().flat_map(|text| text.split(',')).map(str::trim).filter(|word| !word.is_empty());
    let words = words.filter(|word| {
        let is_status = word.parse().is_ok_and(|status: u16| (400..=599).contains(&status));
        let known = is_status || FAILURE_WORDS.contains(word);
        if !known {
            let help =
                suggest(word, &FAILURE_WORDS, "a status such as 503, or one of the words of the manual");
            written.error_help(code::BAD_VALUE, format!("`{key}` cannot be `{word}`"), help);
        }
        known
    });
    words.map(str::to_owned).collect()
}

/// Reports fallbacks that no model answers to.
pub(super) fn check_fallbacks(
    models: &BTreeMap<ModelId, Model>,
    written: &BTreeMap<ModelId, Cursor<'_>>,
    refused: &BTreeSet<String>,
    reserved: &Reserved,
) {
    for (id, at) in written {
        let Some(list) = at.dig(&["reliability", "fallback"]) else { continue };
        for place in list.elements() {
            let Some(name) = place.text() else { continue };
            if reserved.lead(&name).is_some() {
                place.error(code::RECURSION, format!("`{name}` is itself routed: it cannot be a fallback"));
            } else if name == id.as_str() {
                place.error(code::RECURSION, format!("`{name}` cannot be its own fallback"));
            } else if !models.contains_key(&ModelId::new(name.as_str())) && !refused.contains(&name) {
                let known: Vec<&str> = models.keys().map(ModelId::as_str).collect();
                let help = suggest(&name, &known, "declare it under `providers.models`");
                place.error_help(code::UNKNOWN_REFERENCE, format!("no model is named `{name}`"), help);
            }
        }
    }
}

/// Reads a backend's own bounds.
pub(super) fn limits(at: &Cursor<'_>) -> BackendLimits {
    let time = |key: &str| at.get("timeouts")?.duration(key);
    BackendLimits {
        max_concurrency: at.count("max_concurrency").and_then(|n| u32::try_from(n).ok()),
        requests_per_minute: at.count("requests_per_minute"),
        tokens_per_minute: at.count("tokens_per_minute"),
        connect: time("connect"),
        first_byte: time("first_byte"),
        idle: time("idle"),
        total: time("total"),
    }
}

/// Reads the way to a backend.
pub(super) fn access(at: &Cursor<'_>) -> Access {
    let text = |key: &str| at.string(key).filter(|text| !text.trim().is_empty());
    Access {
        api_version: text("api_version"),
        credential: credential(at),
        proxy: text("proxy").map(Template::new),
        ca_file: text("ca_file"),
        region: text("region"),
        quirks: quirks(at),
    }
}

fn credential(at: &Cursor<'_>) -> Option<CredentialSource> {
    let direct = ["api_key", "api_key_env"].into_iter().find(|key| at.get(key).is_some());
    let (file, command) = (at.get("api_key_file"), at.get("api_key_command"));
    if let (Some(direct), Some(idle)) = (direct, file.as_ref().or(command.as_ref())) {
        idle.warn(code::UNUSED, format!("it has no effect beside `{direct}`"));
        return None;
    }
    if let Some(file) = file {
        if let Some(idle) = command {
            idle.warn(code::UNUSED, "`api_key_command` has no effect beside `api_key_file`");
        }
        return file.text().map(CredentialSource::File);
    }
    let written = command?;
    let words = written.texts();
    if words.first().is_none_or(|program| program.trim().is_empty()) {
        written.error(code::BAD_VALUE, "`api_key_command` is a list: a program and its arguments");
        return None;
    }
    Some(CredentialSource::Command(words))
}

fn quirks(at: &Cursor<'_>) -> Vec<String> {
    let words = at.strings("quirks");
    for word in words.iter().filter(|word| !QUIRK_WORDS.contains(&word.as_str())) {
        let place = at.get("quirks").unwrap_or_else(|| at.clone());
        let help = suggest(word, &QUIRK_WORDS, "");
        place.error_help(code::BAD_VALUE, format!("`quirks` cannot hold `{word}`"), help);
    }
    if words.iter().filter(|word| word.ends_with("_tokens_only")).count() > 1 {
        at.error(code::BAD_VALUE, "a backend knows one name for the cap of output, not neither");
    }
    words
}
