//! `global` and `listeners`: a sparse override over built-in defaults.
//!
//! It knows the defaults only through [`Global::default`]; what this version does not run was remarked upon by the
//! contract check.

use super::cursor::Cursor;
use super::names::{Lead, Reserved};
use crate::diagnostic::code;
use crate::{Global, Listener, PrototypeScoring, Strategy};
use std::net::IpAddr;
use std::time::Duration;

/// The words of `strategy`.
pub(super) const STRATEGIES: [(&str, Strategy); 2] =
    [("priority", Strategy::Priority), ("confidence", Strategy::Confidence)];

/// Reads `global`.
pub(super) fn read(root: &Cursor<'_>) -> Global {
    let mut it = Global::default();
    let Some(global) = root.get("global") else {
        return it;
    };
    if let Some(router) = global.get("router") {
        self::router(&router, &mut it);
    }
    if let Some(looper) = global.dig(&["integrations", "looper"]) {
        self::looper(&looper, &mut it);
    }
    if let Some(catalog) = global.get("model_catalog") {
        self::catalog(&catalog, &mut it);
    }
    if let Some(management) = global.dig(&["services", "management_api"]) {
        if let Some(address) = address(&management, "bind_address") {
            it.management_address = address;
        }
        it.management_port = port(&management).unwrap_or(it.management_port);
    }
    it
}

/// The strategy that recipes without one of their own use.
pub(super) fn strategy(root: &Cursor<'_>) -> Strategy {
    root.dig(&["global", "router"]).and_then(|at| at.word("strategy", &STRATEGIES)).unwrap_or_default()
}

fn router(at: &Cursor<'_>, it: &mut Global) {
    if at.word("config_source", &[("file", false), ("kubernetes", true)]) == Some(true) {
        at.warn(code::NOT_SUPPORTED_YET, "`config_source: kubernetes` is known, not supported yet");
    }
    let single = at.string("auto_model_name");
    for name in single.into_iter().chain(at.strings("auto_model_names")) {
        if !name.trim().is_empty() && !it.auto_names.contains(&name) {
            it.auto_names.push(name);
        }
    }
    it.include_config_models_in_list = at.boolean("include_config_models_in_list").unwrap_or(false);
}

fn looper(at: &Cursor<'_>, it: &mut Global) {
    if let Some(seconds) = at.count("timeout_seconds") {
        it.looper_timeout = Duration::from_secs(seconds);
    }
    if let Some(names) = names(at, "fusion") {
        it.fusion_names = names;
    }
    let others: Vec<String> = ["remom", "flow"]
        .into_iter()
        .zip(["vllm-sr/remom", "vllm-sr/flow"])
        .flat_map(|(kind, default)| names(at, kind).unwrap_or_else(|| vec![default.to_owned()]))
        .collect();
    it.unsupported_looper_names = others;
}

fn names(looper: &Cursor<'_>, kind: &str) -> Option<Vec<String>> {
    let at = looper.get(kind)?;
    at.get("model_names").map(|names| names.texts())
}

fn catalog(at: &Cursor<'_>, it: &mut Global) {
    if let Some(config) = at.dig(&["embeddings", "semantic", "embedding_config"]) {
        prototypes(&config, &mut it.embedding_prototypes);
        if let Some(top_k) = config.integer_in("top_k", 0, i64::from(u32::MAX)) {
            it.embedding_top_k = usize::try_from(top_k).unwrap_or(it.embedding_top_k);
        }
        let threshold = config.float_in("min_score_threshold", 0.0, 1.0).or(it.embedding_soft_threshold);
        it.embedding_soft_threshold =
            threshold.filter(|_| config.boolean("enable_soft_matching").unwrap_or(true));
    }
    if let Some(complexity) = at.dig(&["modules", "complexity"]) {
        prototypes(&complexity, &mut it.complexity_prototypes);
    }
    if let Some(domain) = at.dig(&["modules", "classifier", "domain"]) {
        it.domain_threshold = domain.float_in("threshold", 0.0, 1.0).unwrap_or(it.domain_threshold);
    }
}

fn prototypes(parent: &Cursor<'_>, it: &mut PrototypeScoring) {
    let Some(at) = parent.get("prototype_scoring") else {
        return;
    };
    if at.boolean("enabled") == Some(false) {
        at.warn(
            code::NOT_SUPPORTED_YET,
            "examples without prototypes are known, not supported yet: prototypes stay on",
        );
    }
    let size =
        |key: &str, default: usize| at.count(key).and_then(|n| usize::try_from(n).ok()).unwrap_or(default);
    *it = PrototypeScoring {
        cluster_similarity_threshold: at
            .float_in("cluster_similarity_threshold", 0.0, 1.0)
            .unwrap_or(it.cluster_similarity_threshold),
        max_prototypes: size("max_prototypes", it.max_prototypes),
        best_weight: at.float_in("best_weight", 0.0, 1.0).unwrap_or(it.best_weight),
        top_m: size("top_m", it.top_m),
    };
}

/// Every name that leads elsewhere than to a model; two owners of one name are an error.
pub(super) fn reserve(root: &Cursor<'_>, global: &Global) -> Reserved {
    let mut reserved = Reserved::default();
    let looper = ["global", "integrations", "looper"];
    let owners = [
        (&global.auto_names, Lead::Recipe("default".to_owned()), ""),
        (&global.fusion_names, Lead::Fusion, "fusion"),
        (&global.unsupported_looper_names, Lead::Looper, "remom"),
    ];
    for (names, lead, kind) in owners {
        for name in names {
            if reserved.lead(name).is_some_and(|other| *other != lead) {
                let looper = root.dig(&looper).unwrap_or_else(|| root.clone());
                let at = looper.dig(&[kind, "model_names"]).unwrap_or(looper);
                at.error(code::NAME_COLLISION, format!("`{name}` names both a looper and something else"));
            }
            reserved.add(name, lead.clone());
        }
    }
    reserved
}

/// Reads `listeners`.
pub(super) fn listeners(root: &Cursor<'_>) -> Vec<Listener> {
    let read = |at: &Cursor<'_>| {
        if at.get("port").is_none() {
            at.missing("port");
        }
        let address =
            if at.get("address").is_some() { address(at, "address")? } else { "127.0.0.1".to_owned() };
        let port = port(at)?;
        let name = at.string("name").unwrap_or_else(|| format!("http-{port}"));
        Some(Listener { name, address, port, timeout: at.duration("timeout") })
    };
    root.items("listeners").iter().filter_map(read).collect()
}

fn port(at: &Cursor<'_>) -> Option<u16> {
    at.integer_in("port", 1, i64::from(u16::MAX)).and_then(|port| u16::try_from(port).ok())
}

fn address(parent: &Cursor<'_>, key: &str) -> Option<String> {
    let at = parent.get(key)?;
    let text = at.text()?;
    if text.parse::<IpAddr>().is_err() {
        let help = "write `127.0.0.1` for this machine only, `0.0.0.0` for every interface".to_owned();
        at.error_help(code::BAD_VALUE, format!("`{text}` is not an IP address"), help);
        return None;
    }
    Some(text)
}
