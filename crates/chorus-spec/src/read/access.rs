//! Reads limits on callers and the roles of the management plane.
//!
//! It knows no environment. **Invariant:** every token has a role that is declared, and every rule a limit.

use super::cursor::Cursor;
use super::names::unique;
use super::nearest::suggest;
use crate::diagnostic::{code, is_variable_name};
use crate::{ManagementAuth, RateMatch, RateRule, Secret};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Reads `services.ratelimit`.
pub(super) fn rate_limits(services: &Cursor<'_>) -> Vec<RateRule> {
    let Some(at) = services.get("ratelimit") else { return Vec::new() };
    let mut rules = Vec::new();
    let mut seen = BTreeSet::new();
    for provider in at.items("providers") {
        let here = provider
            .word("type", &[("local-limiter", true), ("redis-limiter", true), ("envoy-ratelimit", false)]);
        if here == Some(false) {
            let place = provider.get("type").unwrap_or_else(|| provider.clone());
            let message = "`envoy-ratelimit` is known, not supported yet: its rules are not kept";
            place.warn(code::NOT_SUPPORTED_YET, message);
        }
        for (index, written) in provider.items("rules").into_iter().enumerate() {
            let rule = rule(&written, index);
            if let Some(rule) = rule.filter(|rule| unique(&mut seen, &written, "limit", &rule.name)) {
                rules.extend((here != Some(false)).then_some(rule));
            }
        }
    }
    rules
}

fn rule(at: &Cursor<'_>, index: usize) -> Option<RateRule> {
    const UNITS: [(&str, u64); 4] = [("second", 1), ("minute", 60), ("hour", 3600), ("day", 86_400)];
    let matched = |key: &str| {
        let name = at.get("match")?.string(key).filter(|name| !name.trim().is_empty())?;
        Some(if name == "*" { RateMatch::Each } else { RateMatch::Name(name) })
    };
    let rule = RateRule {
        name: at.string("name").unwrap_or_else(|| format!("rule-{}", index + 1)),
        user: matched("user"),
        group: matched("group"),
        model: matched("model"),
        requests: at.count("requests_per_unit"),
        tokens: at.count("tokens_per_unit"),
        micro_usd: at.count("micro_usd_per_unit"),
        unit: Duration::from_secs(at.word("unit", &UNITS).unwrap_or(60)),
    };
    if rule.requests.or(rule.tokens).or(rule.micro_usd).is_none() {
        let help = "add `requests_per_unit`, `tokens_per_unit` or `micro_usd_per_unit`".to_owned();
        at.error_help(code::MISSING_KEY, format!("the rule `{}` limits nothing", rule.name), help);
        return None;
    }
    Some(rule)
}

/// Reads `management_api.auth`; `None` where anybody may do anything.
pub(super) fn management(api: &Cursor<'_>) -> Option<ManagementAuth> {
    let at = api.get("auth")?;
    if at.word("mode", &[("disabled", false), ("bearer", true)]) != Some(true) {
        return None;
    }
    let entries = at.get("roles").map(|roles| roles.entries()).unwrap_or_default();
    let roles: BTreeMap<String, Vec<String>> =
        entries.iter().map(|(name, _, list)| ((*name).to_owned(), list.texts())).collect();
    let known: Vec<&str> = roles.keys().map(String::as_str).collect();
    let mut tokens = Vec::new();
    for written in at.items("tokens") {
        let (Some(variable), Some(role)) = (written.required("env"), written.required("role")) else {
            continue;
        };
        if !is_variable_name(&variable) {
            // The text is not shown: it may be the token itself.
            let place = written.get("env").unwrap_or_else(|| written.clone());
            place.error(code::BAD_VALUE, "`env` takes the bare name of an environment variable");
        } else if !roles.contains_key(&role) {
            let place = written.get("role").unwrap_or_else(|| written.clone());
            let help = suggest(&role, &known, "declare it under `roles`");
            place.error_help(code::UNKNOWN_REFERENCE, format!("no role is named `{role}`"), help);
        } else {
            tokens.push((Secret::new(format!("${{{variable}}}")), role));
        }
    }
    if at.items("tokens").is_empty() {
        at.error(code::MISSING_KEY, "`mode: bearer` needs `tokens`: without one nobody could do anything");
    }
    Some(ManagementAuth { tokens, roles })
}
