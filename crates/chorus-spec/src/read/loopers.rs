//! Settings of the loopers Confidence, Ratings and `ReMoM`.
//!
//! It knows the models by name, not how they are called. **Invariant:** a written 0 is a 0 wherever 0 is a value, and
//! "not set" wherever the contract counts with it (sizes, caps, times).

use super::budgets;
use super::cursor::Cursor;
use super::measures::{ON_ERROR, TEMPERATURE_MOST, seconds, size, template};
use super::names::{Answerers, Asker};
use crate::diagnostic::code;
use crate::{
    Aggregate, ConfidenceMethod, ConfidenceSettings, Distribution, EscalationOrder, ModelId, ModelRef,
    OnError, Raters, RatingsSettings, RemomSettings, TokenFilter,
};

/// Most calls of one `ReMoM` run, the last one included.
pub(super) const REMOM_CALLS_MOST: u64 = 256;
/// Most samples of the `agreement` method.
const SAMPLES_MOST: i64 = 32;
/// How far the two weights of `hybrid` may miss their sum of 1.
const WEIGHT_SLACK: f64 = 1e-6;

pub(super) const METHODS: [(&str, ConfidenceMethod); 8] = [
    ("avg_logprob", ConfidenceMethod::AvgLogprob),
    ("margin", ConfidenceMethod::Margin),
    ("hybrid", ConfidenceMethod::Hybrid),
    ("self_verify", ConfidenceMethod::SelfVerify),
    ("automix_entailment", ConfidenceMethod::AutomixEntailment),
    ("quantile_logprob", ConfidenceMethod::QuantileLogprob),
    ("agreement", ConfidenceMethod::Agreement),
    ("learned", ConfidenceMethod::Learned),
];

pub(super) const ORDERS: [(&str, EscalationOrder); 5] = [
    ("size", EscalationOrder::Size),
    ("small_to_large", EscalationOrder::Size),
    ("declared", EscalationOrder::Declared),
    ("cost", EscalationOrder::Cost),
    ("automix", EscalationOrder::Automix),
];

pub(super) const FILTERS: [(&str, TokenFilter); 2] =
    [("all", TokenFilter::All), ("tool_call_args", TokenFilter::ToolCallArgs)];

pub(super) const RATERS: [(&str, Raters); 6] = [
    ("none", Raters::None),
    ("peers", Raters::Peers),
    ("judge", Raters::Judge),
    ("components", Raters::Components),
    ("verifier", Raters::Verifier),
    ("scorer", Raters::Scorer),
];

pub(super) const AGGREGATES: [(&str, Aggregate); 3] =
    [("choices", Aggregate::Choices), ("best", Aggregate::Best), ("vote", Aggregate::Vote)];

pub(super) const DISTRIBUTIONS: [(&str, Distribution); 4] = [
    ("weighted", Distribution::Weighted),
    ("equal", Distribution::Equal),
    ("round_robin", Distribution::RoundRobin),
    ("first_only", Distribution::FirstOnly),
];

/// `algorithm.confidence`.
pub(super) fn confidence(algorithm: &Cursor<'_>, on_error: Option<OnError>) -> ConfidenceSettings {
    let defaults =
        ConfidenceSettings { on_error: on_error.unwrap_or_default(), ..ConfidenceSettings::default() };
    let Some(at) = algorithm.get("confidence") else {
        return defaults;
    };
    let method = at.word("confidence_method", &METHODS).unwrap_or_default();
    check_threshold_kind(&at, method);
    let own = |key: &str, wanted: ConfidenceMethod| only_for(&at, key, method == wanted, "confidence_method");
    own("hybrid_weights", ConfidenceMethod::Hybrid);
    own("samples", ConfidenceMethod::Agreement);
    own("quantile", ConfidenceMethod::QuantileLogprob);
    own("verifier_server_url", ConfidenceMethod::AutomixEntailment);
    own("scorer", ConfidenceMethod::Learned);
    let scorer = scorer(&at, method == ConfidenceMethod::Learned);
    let settings = ConfidenceSettings {
        method,
        threshold: at.float_in("threshold", 0.0, 1.0),
        hopeless: at.float_in("hopeless_threshold", 0.0, 1.0),
        hybrid_weights: hybrid_weights(&at).unwrap_or(defaults.hybrid_weights),
        order: at.word("escalation_order", &ORDERS).unwrap_or_default(),
        cost_quality_tradeoff: at
            .float_in("cost_quality_tradeoff", 0.0, 1.0)
            .unwrap_or(defaults.cost_quality_tradeoff),
        token_filter: at.word("token_filter", &FILTERS).unwrap_or_default(),
        samples: at
            .integer_in("samples", 2, SAMPLES_MOST)
            .and_then(|n| usize::try_from(n).ok())
            .unwrap_or(defaults.samples),
        quantile: at.float_in("quantile", 0.0, 1.0).unwrap_or(defaults.quantile),
        verifier_url: verifier(&at),
        verifier_timeout: seconds(&at, "verifier_timeout_seconds").unwrap_or(defaults.verifier_timeout),
        scorer,
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        budget: budgets::read(&at),
    };
    check_thresholds(&at, &settings);
    settings
}

/// A threshold that was found for one scale means nothing on another (case G22).
fn check_threshold_kind(at: &Cursor<'_>, method: ConfidenceMethod) {
    let kind = at.word("threshold_kind", &METHODS);
    let Some(named) = at.get("threshold_kind").filter(|_| kind.is_some_and(|kind| kind != method)) else {
        return;
    };
    let word = |it| METHODS.iter().find(|(_, method)| *method == it).map_or("", |(word, _)| *word);
    let (kind, method) = (kind.map(word).unwrap_or_default(), word(method));
    let message = format!("the threshold is of `{kind}`, and answers are measured by `{method}`");
    let help = format!("scores of different kinds do not compare: find a threshold for `{method}`");
    named.error_help(code::BAD_VALUE, message, help);
}

fn check_thresholds(at: &Cursor<'_>, settings: &ConfidenceSettings) {
    if let (Some(accept), Some(hopeless)) = (settings.threshold, settings.hopeless)
        && hopeless >= accept
        && let Some(named) = at.get("hopeless_threshold")
    {
        let message =
            format!("`hopeless_threshold` is {hopeless}; it must be below `threshold`, which is {accept}");
        named.error(code::BAD_RANGE, message);
    }
}

fn hybrid_weights(at: &Cursor<'_>) -> Option<(f64, f64)> {
    let weights = at.get("hybrid_weights")?;
    let logprob = weights.float_in("logprob_weight", 0.0, 1.0);
    let margin = weights.float_in("margin_weight", 0.0, 1.0);
    let (logprob, margin) = match (logprob, margin) {
        (Some(logprob), Some(margin)) => (logprob, margin),
        (Some(logprob), None) => (logprob, 1.0 - logprob),
        (None, Some(margin)) => (1.0 - margin, margin),
        (None, None) => return None,
    };
    if (logprob + margin - 1.0).abs() > WEIGHT_SLACK {
        let message =
            format!("`logprob_weight` {logprob} and `margin_weight` {margin} must come to 1 together");
        weights.error(code::BAD_RANGE, message);
        return None;
    }
    Some((logprob, margin))
}

fn verifier(at: &Cursor<'_>) -> Option<String> {
    let url = at.string("verifier_server_url").filter(|url| !url.trim().is_empty())?;
    if url.starts_with("http://") || url.starts_with("https://") || url.starts_with("${") {
        return Some(url);
    }
    let named = at.get("verifier_server_url")?;
    let help = "write `http://host:port`; `/verify` is appended".to_owned();
    named.error_help(code::BAD_VALUE, format!("`{url}` is not an HTTP address"), help);
    None
}

/// The file of a trained rule; who measures by one must name it.
fn scorer(at: &Cursor<'_>, is_read: bool) -> Option<String> {
    if is_read {
        at.needed("scorer")?;
    }
    at.string("scorer").filter(|file| is_read && !file.trim().is_empty())
}

/// `algorithm.ratings`.
pub(super) fn ratings(
    algorithm: &Cursor<'_>,
    refs: &[ModelRef],
    on_error: Option<OnError>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> RatingsSettings {
    let defaults = RatingsSettings { on_error: on_error.unwrap_or_default(), ..RatingsSettings::default() };
    let Some(at) = algorithm.get("ratings") else {
        return defaults;
    };
    let raters = at.word("raters", &RATERS).unwrap_or_default();
    let aggregate = at.word("aggregate", &AGGREGATES).unwrap_or_default();
    for key in ["judge", "rubric"] {
        only_for(&at, key, raters == Raters::Judge, "raters");
    }
    only_for(&at, "scorer", raters == Raters::Scorer, "raters");
    only_for(&at, "verifier_server_url", raters == Raters::Verifier, "raters");
    if raters == Raters::Verifier {
        at.needed("verifier_server_url");
    }
    if aggregate == Aggregate::Best && raters == Raters::None {
        let named = at.get("aggregate").unwrap_or_else(|| at.clone());
        let help = "write `raters: peers`, `judge`, `components`, `verifier` or `scorer`".to_owned();
        named.error_help(code::BAD_VALUE, "`aggregate: best` needs somebody who rates", help);
    }
    let judge = at.get("judge").and_then(|name| answerers.model(&name, Asker { role: "judge", ..asker }));
    // A judge that was refused is one error, not two.
    if judge.is_some() == at.get("judge").is_some() {
        check_raters(&at, raters, judge.as_ref(), refs);
    }
    RatingsSettings {
        max_concurrent: size(&at, "max_concurrent"),
        raters,
        aggregate,
        judge,
        rubric: at.string("rubric").filter(|text| !text.trim().is_empty()),
        verifier_url: verifier(&at),
        verifier_timeout: seconds(&at, "verifier_timeout_seconds").unwrap_or(defaults.verifier_timeout),
        scorer: scorer(&at, raters == Raters::Scorer),
        round_timeout: seconds(&at, "round_timeout_seconds"),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        budget: budgets::read(&at),
    }
}

/// Nobody rates their own answer, so that two answers with another author each must remain.
fn check_raters(at: &Cursor<'_>, raters: Raters, judge: Option<&ModelId>, refs: &[ModelRef]) {
    let judges = |it: &&ModelRef| judge.is_none_or(|judge| it.model == *judge);
    let message = match raters {
        Raters::Peers if refs.len() < 3 => "`raters: peers` needs at least three `modelRefs`",
        Raters::Judge if refs.len() < 3 && refs.iter().any(|it| judges(&it)) => {
            "the judge is one of the `modelRefs`, and fewer than two others remain to be rated"
        }
        _ => return,
    };
    let named = at.get("raters").unwrap_or_else(|| at.clone());
    named.error_help(code::BAD_VALUE, message, "name more candidates".to_owned());
}

/// `algorithm.remom`.
pub(super) fn remom(
    algorithm: &Cursor<'_>,
    refs: &[ModelRef],
    on_error: Option<OnError>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> RemomSettings {
    let defaults = RemomSettings { on_error: on_error.unwrap_or_default(), ..RemomSettings::default() };
    let Some(at) = algorithm.get("remom") else {
        return defaults;
    };
    RemomSettings {
        breadth_schedule: breadth_schedule(&at).unwrap_or(defaults.breadth_schedule),
        distribution: at.word("model_distribution", &DISTRIBUTIONS).unwrap_or_default(),
        temperature: at.float_in("temperature", 0.0, TEMPERATURE_MOST).unwrap_or(defaults.temperature),
        include_reasoning: at.boolean("include_reasoning").unwrap_or(defaults.include_reasoning),
        compaction_tokens: compaction(&at),
        synthesis_template: template(&at, "synthesis_template", &["{{original}}", "{{references}}"]),
        synthesis_model: synthesis_model(&at, refs, answerers, asker),
        max_concurrent: size(&at, "max_concurrent"),
        max_completion_tokens: at.count("max_completion_tokens"),
        round_timeout: seconds(&at, "round_timeout_seconds"),
        min_successful_responses: size(&at, "min_successful_responses"),
        max_responses_per_round: size(&at, "max_responses_per_round"),
        shuffle_seed: at
            .integer_in("shuffle_seed", 0, i64::MAX)
            .and_then(|n| u64::try_from(n).ok())
            .unwrap_or(defaults.shuffle_seed),
        include_intermediate_responses: at
            .boolean("include_intermediate_responses")
            .unwrap_or(defaults.include_intermediate_responses),
        stop_when_certain: at.float_in("stop_when_certain", 0.5, 1.0),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        budget: budgets::read(&at),
    }
}

/// Rounds of at least one call, all of them with the last one within [`REMOM_CALLS_MOST`].
fn breadth_schedule(at: &Cursor<'_>) -> Option<Vec<usize>> {
    let written = at.get("breadth_schedule")?;
    let rounds: Vec<u64> = written.whole_numbers(1)?;
    if rounds.is_empty() {
        written.error(code::BAD_RANGE, "`breadth_schedule` is empty; name the calls of each round");
        return None;
    }
    let calls = rounds.iter().fold(1_u64, |sum, n| sum.saturating_add(*n));
    if calls > REMOM_CALLS_MOST {
        let message = format!(
            "`breadth_schedule` makes {calls} calls, the last round included; {REMOM_CALLS_MOST} are the most"
        );
        written.error(code::BAD_RANGE, message);
        return None;
    }
    rounds.into_iter().map(|n| usize::try_from(n).ok()).collect()
}

/// Tokens kept of a reference; 1000 where the strategy cuts and says no number. Source: contract §1.8.
fn compaction(at: &Cursor<'_>) -> Option<usize> {
    const DEFAULT_TOKENS: usize = 1000;
    let cuts = at.word("compaction_strategy", &[("full", false), ("last_n_tokens", true)]).unwrap_or(false);
    only_for(at, "compaction_tokens", cuts, "compaction_strategy");
    let tokens = size(at, "compaction_tokens").unwrap_or(DEFAULT_TOKENS);
    cuts.then_some(tokens)
}

fn synthesis_model(
    at: &Cursor<'_>,
    refs: &[ModelRef],
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Option<ModelId> {
    let named = at.get("synthesis_model").filter(|name| name.node().text() != Some(""))?;
    let model = answerers.model(&named, Asker { role: "writer", ..asker })?;
    if refs.iter().any(|candidate| candidate.model == model) {
        return Some(model);
    }
    let known: Vec<&str> = refs.iter().map(|candidate| candidate.model.as_str()).collect();
    let help = super::nearest::suggest(model.as_str(), &known, "list it under `modelRefs`");
    named.error_help(code::BAD_VALUE, format!("`{model}` is not one of the decision's candidates"), help);
    None
}

/// Remarks upon a key that only another choice of `chooser` would read.
fn only_for(at: &Cursor<'_>, key: &str, is_read: bool, chooser: &str) {
    if let Some(written) = at.get(key).filter(|_| !is_read) {
        written.warn(code::UNUSED, format!("`{key}` has no effect with this `{chooser}`"));
    }
}
