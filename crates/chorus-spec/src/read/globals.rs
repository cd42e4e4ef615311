//! `global` and `listeners`: a sparse override over built-in defaults.
//!
//! It knows the defaults only through [`Global::default`]; what this version does not run was remarked upon by the
//! contract check.

use super::cursor::Cursor;
use super::names::{Lead, Reserved};
use super::{
    access, cache, databases, flow_state, headers, knowledge, memory, prototypes, response_api, selection,
    services, session_store, vector_store,
};
use crate::diagnostic::code;
use crate::{Global, Identity, Listener, LooperKind, ModalityMethod, Strategy};
use std::net::IpAddr;
use std::time::Duration;

/// The words of `strategy`.
pub(super) const STRATEGIES: [(&str, Strategy); 2] =
    [("priority", Strategy::Priority), ("confidence", Strategy::Confidence)];

/// The words of `modality_detector.method`.
const MODALITY_METHODS: [(&str, ModalityMethod); 3] = [
    ("classifier", ModalityMethod::Classifier),
    ("keyword", ModalityMethod::Keyword),
    ("hybrid", ModalityMethod::Hybrid),
];

/// Reads `global`.
pub(super) fn read(root: &Cursor<'_>) -> Global {
    let knowledge_bases = knowledge::read(root.dig(&["global", "model_catalog"]).as_ref());
    let (memory, vector_store) = (memory::store(root), vector_store::read(root));
    let response_cache = cache::store(root);
    let mut it = Global { knowledge_bases, memory, vector_store, response_cache, ..Global::default() };
    let Some(global) = root.get("global") else {
        return it;
    };
    it.session_store = session_store::read(&global);
    if let Some(router) = global.get("router") {
        self::router(&router, &mut it);
    }
    if let Some(looper) = global.dig(&["integrations", "looper"]) {
        self::looper(&looper, &mut it);
    }
    if let Some(catalog) = global.get("model_catalog") {
        self::catalog(&catalog, &mut it);
    }
    if let Some(services) = global.get("services") {
        it.rate_limits = access::rate_limits(&services);
        it.limit_store = services::limit_store(&services);
        it.tracing = services::trace_export(&services);
        it.kept_where = databases::read(&services);
        it.response_api = response_api::read(&services);
    }
    if let Some(authz) = global.dig(&["services", "authz"]) {
        it.identity = identity(&authz);
        it.token_issuers = services::token_issuers(&authz);
    }
    if let Some(management) = global.dig(&["services", "management_api"]) {
        if let Some(address) = address(&management, "bind_address") {
            it.management_address = address;
        }
        it.management_port = port(&management).unwrap_or(it.management_port);
        it.management_auth = access::management(&management);
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
    it.selection = at.get("model_selection").map(|at| selection::defaults(&at)).unwrap_or_default();
    it.adaptation = at.get("learning").map(|at| selection::adaptation(&at)).unwrap_or_default();
    it.sessions = at.get("learning").map(|at| selection::sessions(&at)).unwrap_or_default();
    it.include_config_models_in_list = at.boolean("include_config_models_in_list").unwrap_or(false);
}

fn looper(at: &Cursor<'_>, it: &mut Global) {
    if let Some(seconds) = at.count("timeout_seconds") {
        it.looper_timeout = Duration::from_secs(seconds);
    }
    if let Some(names) = names(at, "fusion") {
        it.fusion_names = names;
    }
    if let Some(names) = names(at, "remom") {
        it.remom_names = names;
    }
    if let Some(flow) = at.get("flow") {
        it.flow_state = flow_state::read(&flow);
    }
    if let Some(names) = names(at, "flow") {
        it.flow_names = names;
    }
}

fn names(looper: &Cursor<'_>, kind: &str) -> Option<Vec<String>> {
    let at = looper.get(kind)?;
    at.get("model_names").map(|names| names.texts())
}

fn catalog(at: &Cursor<'_>, it: &mut Global) {
    if let Some(config) = at.dig(&["embeddings", "semantic", "embedding_config"]) {
        prototypes::read(&config, &mut it.embedding_prototypes);
        if let Some(top_k) = config.integer_in("top_k", 0, i64::from(u32::MAX)) {
            it.embedding_top_k = usize::try_from(top_k).unwrap_or(it.embedding_top_k);
        }
        let threshold = config.float_in("min_score_threshold", 0.0, 1.0).or(it.embedding_soft_threshold);
        it.embedding_soft_threshold =
            threshold.filter(|_| config.boolean("enable_soft_matching").unwrap_or(true));
        it.encoder = config.string("model_type").filter(|name| !name.trim().is_empty());
    }
    if let Some(complexity) = at.dig(&["modules", "complexity"]) {
        prototypes::read(&complexity, &mut it.complexity_prototypes);
    }
    if let Some(detector) = at.dig(&["modules", "modality_detector"]) {
        it.modality_method = detector.word("method", &MODALITY_METHODS).unwrap_or_default();
    }
    let thresholds: [(&[&str], &mut f64); 5] = [
        (&["classifier", "domain"], &mut it.domain_threshold),
        (&["classifier", "pii"], &mut it.pii_threshold),
        (&["prompt_guard"], &mut it.prompt_guard_threshold),
        (&["hallucination_mitigation", "fact_check"], &mut it.fact_check_threshold),
        (&["feedback_detector"], &mut it.feedback_threshold),
    ];
    for (module, threshold) in thresholds {
        let module = at.get("modules").and_then(|modules| modules.dig(module));
        *threshold = module.and_then(|at| at.float_in("threshold", 0.0, 1.0)).unwrap_or(*threshold);
    }
}

/// A file that names identity headers, or a provider that injects headers, says that a proxy sets them.
fn identity(at: &Cursor<'_>) -> Identity {
    const PROVIDERS: [(&str, bool); 3] =
        [("header-injection", true), ("static-config", false), ("jwt", false)];
    let provider = |it: &Cursor<'_>| {
        it.needed("type")?;
        it.word("type", &PROVIDERS)
    };
    let providers: Vec<bool> = at.items("providers").iter().filter_map(provider).collect();
    let written = at.get("identity");
    let header = |key: &str, default: String| {
        let name = written.as_ref().and_then(|it| it.get(key)).and_then(|at| headers::header_name(&at));
        name.map_or(default, |name| name.to_ascii_lowercase())
    };
    let default = Identity::default();
    Identity {
        user_id_header: header("user_id_header", default.user_id_header),
        user_groups_header: header("user_groups_header", default.user_groups_header),
        trusted: written.is_some() || providers.contains(&true),
        fail_open: at.boolean("fail_open").unwrap_or(false),
    }
}

/// Every name that leads elsewhere than to a model; two owners of one name are an error.
pub(super) fn reserve(root: &Cursor<'_>, global: &Global) -> Reserved {
    let mut reserved = Reserved::default();
    let looper = ["global", "integrations", "looper"];
    let owners = [
        (&global.auto_names, Lead::Recipe("default".to_owned()), ""),
        (&global.fusion_names, Lead::Looper(LooperKind::Fusion), "fusion"),
        (&global.remom_names, Lead::Looper(LooperKind::ReMoM), "remom"),
        (&global.flow_names, Lead::Looper(LooperKind::Workflows), "flow"),
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
