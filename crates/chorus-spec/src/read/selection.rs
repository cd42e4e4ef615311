//! `global.router.model_selection` and `global.router.learning`: what all decisions' selectors share.
//!
//! It knows no decision. **Invariant:** a conversation is protected only where the file switches that on.

use super::cursor::Cursor;
use super::headers::header_name;
use super::selectors::{automix, hybrid, learned, path, router_dc};
use crate::diagnostic::code;
use crate::{
    AdaptationSettings, CandidateSet, LearnedSettings, MomentumSettings, SelectionSettings, SessionSettings,
};
use std::time::Duration;

/// The selectors that a file may name for decisions without an algorithm.
const METHODS: [(&str, &str); 13] = [
    ("static", "static"),
    ("router_dc", "router_dc"),
    ("hybrid", "hybrid"),
    ("latency_aware", "latency_aware"),
    ("multi_factor", "multi_factor"),
    ("automix", "automix"),
    ("prompt", "prompt"),
    ("knn", "knn"),
    ("kmeans", "kmeans"),
    ("svm", "svm"),
    ("mlp", "mlp"),
    ("elo", "elo"),
    ("thompson", "thompson"),
];

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
    let settings = SelectionSettings {
        knn: of("knn"),
        kmeans: of("kmeans"),
        svm: of("svm"),
        mlp: of("mlp"),
        elo_path: ml.as_ref().and_then(|at| path(&at.get("elo")?)).map(within),
        router_dc: at.get("router_dc").map(|at| router_dc(Some(&at), None)),
        automix: at.get("automix").map(|at| automix(Some(&at), None)),
        hybrid: at.get("hybrid").map(|at| hybrid(Some(&at), None)),
        method: None,
        momentum: at.get("momentum").and_then(|at| momentum(&at)),
    };
    let on = at.boolean("enabled").unwrap_or(true);
    SelectionSettings { method: method(at, &settings).filter(|_| on), ..settings }
}

/// `method`, unless it is a learned selector without its artifact: files of the contract carry `method: knn` whether or
/// not anything was trained.
fn method(at: &Cursor<'_>, settings: &SelectionSettings) -> Option<&'static str> {
    let kind = at.word("method", &METHODS)?;
    let trained = match kind {
        "knn" => settings.knn.path.is_some(),
        "kmeans" => settings.kmeans.path.is_some(),
        "svm" => settings.svm.path.is_some(),
        "mlp" => settings.mlp.path.is_some(),
        "elo" => settings.elo_path.is_some(),
        _ => true,
    };
    if let Some(named) = at.get("method").filter(|_| !trained) {
        let message = format!(
            "`{kind}` has no trained artifact, so a decision without an algorithm takes its first candidate"
        );
        let help = format!(
            "write `ml: {{ {kind}: {{ pretrained_path: FILE }} }}` beside it; `chorus lab train-selector {kind}` makes the file"
        );
        named.warn_help(code::UNUSED, message, help);
    }
    Some(kind).filter(|kind| trained && *kind != "static")
}

/// `momentum`, where it is switched on.
fn momentum(at: &Cursor<'_>) -> Option<MomentumSettings> {
    let default = MomentumSettings::default();
    let share = |key: &str, default: f64| at.float_in(key, 0.0, 1.0).unwrap_or(default);
    let it = MomentumSettings {
        attack: share("attack", default.attack),
        release: share("release", default.release),
        threshold: share("threshold", default.threshold),
    };
    at.boolean("enabled").unwrap_or(false).then_some(it)
}

/// `learning`, as far as it moves choices.
pub(super) fn adaptation(learning: &Cursor<'_>) -> AdaptationSettings {
    let Some(at) = learning.get("adaptation") else { return AdaptationSettings::default() };
    at.word("strategy", &[("routing_sampling", ())]);
    let on = |at: &Cursor<'_>, default| at.boolean("enabled").unwrap_or(default);
    AdaptationSettings {
        enabled: on(learning, false) && on(&at, true),
        candidates: at.word("candidate_set", &CandidateSet::WORDS).unwrap_or_default(),
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
