//! The plugin `context_compression`.
//!
//! Source: contract §1.10.

use super::cursor::Cursor;
use super::headers::header_name;
use crate::diagnostic::code;
use crate::{
    CompressionControls, CompressionMode, CompressionScoring, CompressionSettings, CompressionTarget,
    CompressionTargets, RecoverySettings,
};
use std::time::Duration;

/// Reads it.
pub(super) fn read(at: &Cursor<'_>) -> CompressionSettings {
    let defaults = CompressionSettings::default();
    let budget = at.get("budget");
    let limit = |key: &str| budget.as_ref().and_then(|it| tokens(it, key));
    let recovery = at.get("recovery").map_or(defaults.recovery, |it| recovery(&it));
    let targets = at.get("targets").map_or(defaults.targets.clone(), |it| targets(&it, &defaults.targets));
    warn_unrecoverable(at, &targets, recovery);
    let (trigger, target) = (limit("trigger_tokens"), limit("target_tokens"));
    if let (Some(trigger), Some(target), Some(budget)) = (trigger, target, &budget)
        && target >= trigger
    {
        budget.error(code::BAD_RANGE, "`target_tokens` must be smaller than `trigger_tokens`");
    }
    CompressionSettings {
        always: at.word("mode", &[("auto", false), ("always", true)]).unwrap_or(false),
        trigger_tokens: trigger,
        target_tokens: target,
        reserve_output_tokens: limit("reserve_output_tokens"),
        targets,
        scoring: at.get("scoring").map_or(defaults.scoring, |it| scoring(&it)),
        recovery,
        controls: at.get("request_controls").and_then(|it| controls(&it)),
        fail_closed: at
            .word("failure_mode", &[("fail_open", false), ("fail_closed", true)])
            .unwrap_or(defaults.fail_closed),
    }
}

/// A number of tokens, or `auto`, which is no number.
fn tokens(at: &Cursor<'_>, key: &str) -> Option<u64> {
    let is_auto = |text: &str| text.trim().eq_ignore_ascii_case("auto");
    if at.get(key)?.node().text().is_some_and(is_auto) {
        return None;
    }
    at.tokens(key).filter(|n| *n > 0)
}

fn targets(at: &Cursor<'_>, defaults: &CompressionTargets) -> CompressionTargets {
    let target =
        |key: &str, default: CompressionTarget| at.get(key).map_or(default, |it| target(&it, default));
    CompressionTargets {
        tool_outputs: target("tool_outputs", defaults.tool_outputs),
        history: target("history", defaults.history),
        rag: target("rag", defaults.rag),
        memory: target("memory", defaults.memory),
    }
}

fn target(at: &Cursor<'_>, default: CompressionTarget) -> CompressionTarget {
    const MODES: [(&str, CompressionMode); 3] = [
        ("preserve", CompressionMode::Preserve),
        ("extractive", CompressionMode::Extractive),
        ("recoverable", CompressionMode::Recoverable),
    ];
    let (min, target) = (at.tokens("min_tokens"), at.tokens("target_tokens"));
    let it = CompressionTarget {
        mode: at.word("mode", &MODES).unwrap_or(default.mode),
        min_tokens: min.unwrap_or(target.map_or(default.min_tokens, |t| default.min_tokens.max(t + 1))),
        target_tokens: target
            .unwrap_or(min.map_or(default.target_tokens, |m| default.target_tokens.min(m / 2))),
    };
    if it.mode != CompressionMode::Preserve && it.target_tokens >= it.min_tokens {
        at.error(code::BAD_RANGE, "`target_tokens` must be smaller than `min_tokens`");
    }
    it
}

fn scoring(at: &Cursor<'_>) -> CompressionScoring {
    const METHODS: [(&str, CompressionScoring); 3] = [
        ("bm25", CompressionScoring::Bm25),
        ("embedding", CompressionScoring::Embedding),
        ("hybrid", CompressionScoring::Hybrid),
    ];
    if let Some(named) = at.get("embedding_model_ref") {
        named.warn(code::UNUSED, "every part of the engine shares one encoder; this names none");
    }
    at.word("method", &METHODS).unwrap_or_default()
}

fn recovery(at: &Cursor<'_>) -> RecoverySettings {
    let defaults = RecoverySettings::default();
    if let Some(store) = at.get("store").filter(|it| it.node().text().is_some_and(|text| text != "memory")) {
        let help = "leave it out: originals wait in this process".to_owned();
        store.error_help(code::NOT_SUPPORTED_YET, "this store of originals is known, not supported", help);
    }
    let size = |key: &str, default| at.count(key).and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    RecoverySettings {
        enabled: at.boolean("enabled").unwrap_or(false),
        ttl: at.count("ttl_seconds").map_or(defaults.ttl, Duration::from_secs),
        max_bytes_per_request: size("max_bytes_per_request", defaults.max_bytes_per_request),
        max_total_bytes: size("max_total_bytes", defaults.max_total_bytes),
        max_retrievals: size("max_retrievals", defaults.max_retrievals),
    }
}

fn controls(at: &Cursor<'_>) -> Option<CompressionControls> {
    let defaults = CompressionControls::default();
    let allowed = at.items("allowed");
    let words: Vec<&str> =
        allowed.iter().filter_map(|it| it.one_of(&[("bypass", "bypass"), ("target", "target")])).collect();
    let may = |word: &str| allowed.is_empty() || words.contains(&word);
    let it = CompressionControls {
        header: at
            .get("header")
            .and_then(|it| header_name(&it))
            .map_or(defaults.header, |name| name.to_ascii_lowercase()),
        bypass: may("bypass"),
        target: may("target"),
        max_target_tokens: at.tokens("max_target_tokens").unwrap_or(defaults.max_target_tokens),
    };
    at.boolean("enabled").unwrap_or(false).then_some(it)
}

fn warn_unrecoverable(at: &Cursor<'_>, targets: &CompressionTargets, recovery: RecoverySettings) {
    let all = [targets.tool_outputs, targets.history, targets.rag, targets.memory];
    if !recovery.enabled && all.iter().any(|it| it.mode == CompressionMode::Recoverable) {
        let message = "a `recoverable` target without `recovery.enabled: true` is `extractive`";
        at.warn(code::UNUSED, message);
    }
}
