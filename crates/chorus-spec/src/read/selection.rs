//! `global.router.model_selection` and `global.router.learning`: what all decisions' selectors share.
//!
//! It knows no decision. **Invariant:** a conversation is protected only where the file switches that on.

use super::cursor::Cursor;
use super::headers::header_name;
use super::selectors::{automix, hybrid, learned, path, router_dc};
use crate::diagnostic::code;
use crate::{AdaptationSettings, LearnedSettings, SelectionSettings, SessionSettings};
use std::time::Duration;

/// `model_selection`.
pub(super) fn defaults(at: &Cursor<'_>) -> SelectionSettings {
    let ml = at.get("ml");
    let folder = ml.as_ref().and_then(|at| at.string("models_path")).filter(|path| !path.trim().is_empty());
    let within = |path: String| match &folder {
        Some(folder) if !path.starts_with('/') => format!("{}/{path}", folder.trim_end_matches('/')),
        _ => path,
    };
    let of = |kind: &str| {
        let settings = ml.as_ref().and_then(|at| at.get(kind)).map(|at| learned(&at)).unwrap_or_default();
        LearnedSettings { path: settings.path.map(within), ..settings }
    };
    SelectionSettings {
        knn: of("knn"),
        kmeans: of("kmeans"),
        svm: of("svm"),
        mlp: of("mlp"),
        elo_path: ml.as_ref().and_then(|at| path(&at.get("elo")?)).map(within),
        router_dc: at.get("router_dc").map(|at| router_dc(Some(&at), None)),
        automix: at.get("automix").map(|at| automix(Some(&at), None)),
        hybrid: at.get("hybrid").map(|at| hybrid(Some(&at), None)),
    }
}

/// `learning`, as far as it moves choices.
pub(super) fn adaptation(learning: &Cursor<'_>) -> AdaptationSettings {
    let Some(at) = learning.get("adaptation") else { return AdaptationSettings::default() };
    at.word("strategy", &[("routing_sampling", ())]);
    candidate_set(&at);
    let on = |at: &Cursor<'_>, default| at.boolean("enabled").unwrap_or(default);
    AdaptationSettings { enabled: on(learning, false) && on(&at, true) }
}

/// `candidate_set`: the candidates of the decision are all that may be chosen from here.
pub(super) fn candidate_set(at: &Cursor<'_>) {
    const SETS: [(&str, bool); 3] = [("decision", true), ("tier", false), ("global", false)];
    if let Some(wider) = at.get("candidate_set").filter(|_| at.word("candidate_set", &SETS) == Some(false)) {
        let message =
            "candidates of other decisions are known, not supported yet: those of the decision are compared";
        wider.warn(code::NOT_SUPPORTED_YET, message);
    }
}

/// `learning`, as far as it protects conversations.
pub(super) fn sessions(learning: &Cursor<'_>) -> SessionSettings {
    const SCOPES: [(&str, bool); 2] = [("session", false), ("conversation", true)];
    let default = SessionSettings::default();
    let Some(at) = learning.get("protection") else { return default };
    let tuning = at.get("tuning");
    let number = |key: &str, least: i64| {
        let written = tuning.as_ref()?.integer_in(key, least, i64::from(u32::MAX))?;
        u32::try_from(written).ok()
    };
    let weight = |key: &str| tuning.as_ref()?.float_in(key, 0.0, f64::MAX);
    let headers = at.dig(&["identity", "headers"]);
    let header = |key: &str, default: String| {
        let name = headers.as_ref().and_then(|it| it.get(key)).and_then(|at| header_name(&at));
        name.map_or(default, |name| name.to_ascii_lowercase())
    };
    SessionSettings {
        enabled: learning.boolean("enabled").unwrap_or(false) && at.boolean("enabled").unwrap_or(true),
        session_header: header("session", default.session_header),
        conversation_header: header("conversation", default.conversation_header),
        by_conversation: at.word("scope", &SCOPES).unwrap_or(default.by_conversation),
        idle_timeout: number("idle_timeout_seconds", 1)
            .map_or(default.idle_timeout, |seconds| Duration::from_secs(u64::from(seconds))),
        min_turns_before_switch: number("min_turns_before_switch", 0)
            .unwrap_or(default.min_turns_before_switch),
        switch_margin: weight("switch_margin").unwrap_or(default.switch_margin),
        stability_weight: weight("stability_weight").unwrap_or(default.stability_weight),
    }
}
