//! Settings of the selectors of a decision.
//!
//! It knows the models by name, not how they are scored. **Invariant:** what a decision does not say comes from
//! `global.router.model_selection`, and what that does not say is the contract's default.

use super::cursor::Cursor;
use super::measures::{seconds, size};
use super::names::{Answerers, Asker};
use crate::diagnostic::code;
use crate::{
    AutomixSettings, EloSettings, HybridSettings, LatencyAwareSettings, LearnedSettings, MultiFactorSettings,
    OnError, OnNoCandidates, PromptSettings, RouterDcSettings, SelectorMethod, SelectorSettings,
    ThompsonSettings,
};

const ON_NO_CANDIDATES: [(&str, OnNoCandidates); 3] = [
    ("cheapest", OnNoCandidates::Cheapest),
    ("first", OnNoCandidates::First),
    ("fail", OnNoCandidates::Fail),
];

/// The selector of that type word; `None` when it is none.
pub(super) fn read(
    algorithm: &Cursor<'_>,
    kind: &str,
    on_error: Option<OnError>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Option<SelectorSettings> {
    let at = algorithm.get(kind);
    let base = answerers.selection;
    let learned = || at.as_ref().map(learned).unwrap_or_default();
    let method = match kind {
        "router_dc" => SelectorMethod::RouterDc(router_dc(at.as_ref(), base.router_dc)),
        "hybrid" => SelectorMethod::Hybrid(hybrid(at.as_ref(), base.hybrid)),
        "latency_aware" => SelectorMethod::LatencyAware(at.as_ref().map(latency_aware).unwrap_or_default()),
        "multi_factor" => SelectorMethod::MultiFactor(at.as_ref().map(multi_factor).unwrap_or_default()),
        "automix" => SelectorMethod::Automix(automix(at.as_ref(), base.automix)),
        "prompt" => SelectorMethod::Prompt(at.map(|at| prompt(&at, answerers, asker)).unwrap_or_default()),
        "knn" => SelectorMethod::Knn(learned().over(&base.knn)),
        "kmeans" => SelectorMethod::Kmeans(learned().over(&base.kmeans)),
        "svm" => SelectorMethod::Svm(learned().over(&base.svm)),
        "mlp" => SelectorMethod::Mlp(learned().over(&base.mlp)),
        "elo" => SelectorMethod::Elo(elo(at.as_ref(), base.elo_path.clone())),
        "thompson" => SelectorMethod::Thompson(thompson(at.as_ref(), base.elo_path.clone())),
        _ => return None,
    };
    check_path(algorithm, &method);
    Some(SelectorSettings { method, on_error: on_error.unwrap_or_default() })
}

/// A learned selector without its artifact never chooses: `on_error` decides each time.
fn check_path(algorithm: &Cursor<'_>, method: &SelectorMethod) {
    let path = match method {
        SelectorMethod::Knn(it)
        | SelectorMethod::Kmeans(it)
        | SelectorMethod::Svm(it)
        | SelectorMethod::Mlp(it) => it.path.as_deref(),
        SelectorMethod::Elo(it) => it.path.as_deref(),
        _ => return,
    };
    if path.is_some() {
        return;
    }
    let kind = method.as_str();
    let named = algorithm.get("type").unwrap_or_else(|| algorithm.clone());
    let help = format!(
        "write `{kind}: {{ pretrained_path: FILE }}` beside it, or below `global.router.model_selection.ml`; \
         `chorus lab train-selector {kind}` makes the file"
    );
    let message =
        format!("`{kind}` has no trained artifact, so `on_error` decides: the first candidate, or a refusal");
    named.warn_help(code::UNUSED, message, help);
}

/// `router_dc`, over `base`.
pub(super) fn router_dc(at: Option<&Cursor<'_>>, base: Option<RouterDcSettings>) -> RouterDcSettings {
    let base = base.unwrap_or_default();
    let Some(at) = at else { return base };
    RouterDcSettings {
        temperature: at.positive("temperature").unwrap_or(base.temperature),
        min_similarity: share(at, "min_similarity", base.min_similarity),
        require_descriptions: at.boolean("require_descriptions").unwrap_or(base.require_descriptions),
        use_capabilities: at.boolean("use_capabilities").unwrap_or(base.use_capabilities),
    }
}

/// `automix`, over `base`.
pub(super) fn automix(at: Option<&Cursor<'_>>, base: Option<AutomixSettings>) -> AutomixSettings {
    let base = base.unwrap_or_default();
    let Some(at) = at else { return base };
    let escalations = at.integer_in("max_escalations", 0, i64::from(u32::MAX));
    AutomixSettings {
        verification_threshold: share(at, "verification_threshold", base.verification_threshold),
        max_escalations: escalations.and_then(|n| u32::try_from(n).ok()).unwrap_or(base.max_escalations),
        cost_aware_routing: at.boolean("cost_aware_routing").unwrap_or(base.cost_aware_routing),
        cost_quality_tradeoff: share(at, "cost_quality_tradeoff", base.cost_quality_tradeoff),
        discount_factor: share(at, "discount_factor", base.discount_factor),
    }
}

/// `hybrid`, over `base`; at least one weight must be above 0.
pub(super) fn hybrid(at: Option<&Cursor<'_>>, base: Option<HybridSettings>) -> HybridSettings {
    let base = base.unwrap_or_default();
    let Some(at) = at else { return base };
    let it = HybridSettings {
        experience_weight: weight(at, "experience_weight", base.experience_weight),
        router_dc_weight: weight(at, "router_dc_weight", base.router_dc_weight),
        automix_weight: weight(at, "automix_weight", base.automix_weight),
        cost_weight: weight(at, "cost_weight", base.cost_weight),
        quality_gap_threshold: share(at, "quality_gap_threshold", base.quality_gap_threshold),
        normalize_scores: at.boolean("normalize_scores").unwrap_or(base.normalize_scores),
    };
    some_weight(at, it.experience_weight + it.router_dc_weight + it.automix_weight + it.cost_weight);
    it
}

fn latency_aware(at: &Cursor<'_>) -> LatencyAwareSettings {
    let it = LatencyAwareSettings {
        tpot_percentile: percentile(at, "tpot_percentile"),
        ttft_percentile: percentile(at, "ttft_percentile"),
    };
    if it.tpot_percentile.is_none() && it.ttft_percentile.is_none() {
        return LatencyAwareSettings::default();
    }
    it
}

fn multi_factor(at: &Cursor<'_>) -> MultiFactorSettings {
    let default = MultiFactorSettings::default();
    let weights = at.get("weights");
    let slo = at.get("slo");
    // A block of weights that names some of them means 0 for the others (case D19: no second set of defaults).
    let of = |key: &str, default: f64| weights.as_ref().map_or(default, |at| weight(at, key, 0.0));
    let most = |key: &str| slo.as_ref().and_then(|at| at.positive(key));
    let inflight = slo.as_ref().and_then(|at| at.integer_in("max_inflight", 1, i64::from(u32::MAX)));
    let it = MultiFactorSettings {
        quality_weight: of("quality", default.quality_weight),
        latency_weight: of("latency", default.latency_weight),
        cost_weight: of("cost", default.cost_weight),
        load_weight: of("load", default.load_weight),
        max_tpot_ms: most("max_tpot_ms"),
        max_ttft_ms: most("max_ttft_ms"),
        max_cost_per_1m: most("max_cost_per_1m"),
        max_inflight: inflight.and_then(|n| u32::try_from(n).ok()),
        latency_percentile: percentile(at, "latency_percentile").unwrap_or(default.latency_percentile),
        on_no_candidates: at.word("on_no_candidates", &ON_NO_CANDIDATES).unwrap_or_default(),
    };
    let named = weights.unwrap_or_else(|| at.clone());
    some_weight(&named, it.quality_weight + it.latency_weight + it.cost_weight + it.load_weight);
    it
}

fn prompt(at: &Cursor<'_>, answerers: &Answerers<'_>, asker: Asker<'_>) -> PromptSettings {
    let default = PromptSettings::default();
    let named = at.get("model").filter(|name| name.node().text() != Some(""));
    PromptSettings {
        model: named.and_then(|name| answerers.model(&name, Asker { role: "selector", ..asker })),
        instructions: at.string("instructions").filter(|text| !text.trim().is_empty()),
        timeout: seconds(at, "timeout_seconds").unwrap_or(default.timeout),
    }
}

/// What a learned selector is told, in a decision or below `ml`.
pub(super) fn learned(at: &Cursor<'_>) -> LearnedSettings {
    LearnedSettings {
        path: path(at),
        k: size(at, "k"),
        efficiency_weight: at.float_in("efficiency_weight", 0.0, 1.0),
        guard: at.boolean("guard"),
    }
}

fn elo(at: Option<&Cursor<'_>>, base: Option<String>) -> EloSettings {
    let default = EloSettings { path: base, ..EloSettings::default() };
    let Some(at) = at else { return default };
    EloSettings {
        path: path(at).or(default.path),
        initial_rating: at.float("initial_rating").unwrap_or(default.initial_rating),
        min_comparisons: at
            .integer_in("min_comparisons", 0, i64::MAX)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(default.min_comparisons),
        category_weighted: at.boolean("category_weighted").unwrap_or(default.category_weighted),
        cost_scaling_factor: weight(at, "cost_scaling_factor", default.cost_scaling_factor),
    }
}

fn thompson(at: Option<&Cursor<'_>>, base: Option<String>) -> ThompsonSettings {
    let default = ThompsonSettings { path: base, ..ThompsonSettings::default() };
    let Some(at) = at else { return default };
    ThompsonSettings {
        path: path(at).or(default.path),
        explore: at.boolean("explore").unwrap_or(default.explore),
        prior_strength: weight(at, "prior_strength", default.prior_strength),
        cost_weight: share(at, "cost_weight", default.cost_weight),
    }
}

/// The file of an artifact.
pub(super) fn path(at: &Cursor<'_>) -> Option<String> {
    at.string("pretrained_path").filter(|path| !path.trim().is_empty())
}

fn share(at: &Cursor<'_>, key: &str, default: f64) -> f64 {
    at.float_in(key, 0.0, 1.0).unwrap_or(default)
}

fn weight(at: &Cursor<'_>, key: &str, default: f64) -> f64 {
    at.float_in(key, 0.0, f64::MAX).unwrap_or(default)
}

fn percentile(at: &Cursor<'_>, key: &str) -> Option<u8> {
    at.integer_in(key, 1, 100).and_then(|n| u8::try_from(n).ok())
}

fn some_weight(at: &Cursor<'_>, sum: f64) {
    if sum <= 0.0 {
        at.error(code::BAD_RANGE, "all weights are 0, so nothing would decide; give one of them a weight");
    }
}
