//! The algorithm of a decision, and the settings of Fusion.
//!
//! It knows the models, not how they are called. **Invariant:** a panel and its judge are models; nothing that leads
//! back to a router or a looper gets in.

use super::cursor::Cursor;
use super::measures::{ON_ERROR, TEMPERATURE_MOST, size, template};
use super::names::{Answerers, Asker};
use super::nearest::suggest;
use super::{budgets, loopers, poll, selectors, workflows};
use crate::diagnostic::code;
use crate::{
    Algorithm, Backend, Endpoint, FusionOverride, FusionPreset, FusionSettings, GroundingPolicy,
    GroundingReference, GroundingScorer, GroundingSettings, ModelId, ModelRef, OnError, PanelCadence,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// The type words of the contract.
const TYPES: [&str; 19] = [
    "static",
    "fusion",
    "confidence",
    "ratings",
    "remom",
    "workflows",
    "poll",
    "router_dc",
    "hybrid",
    "latency_aware",
    "multi_factor",
    "automix",
    "knn",
    "kmeans",
    "svm",
    "mlp",
    "prompt",
    "elo",
    "thompson",
];

/// Reads the `algorithm` of a decision; `static` when absent.
pub(super) fn read(
    decision: &Cursor<'_>,
    refs: &[ModelRef],
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Algorithm {
    let Some(at) = decision.get("algorithm") else {
        return unnamed(decision, refs, answerers, asker);
    };
    let Some(written) = at.required("type") else {
        return Algorithm::Static;
    };
    let known = TYPES.iter().find(|word| word.eq_ignore_ascii_case(written.trim()));
    let Some(kind) = known.copied() else {
        let named = at.get("type").unwrap_or_else(|| at.clone());
        named.error_help(
            code::BAD_VALUE,
            format!("`{written}` is not an algorithm"),
            suggest(&written, &TYPES, ""),
        );
        return Algorithm::Static;
    };
    report_idle_blocks(&at, kind);
    let on_error = at.word("on_error", &ON_ERROR);
    match kind {
        "static" => Algorithm::Static,
        "fusion" => Algorithm::Fusion(Box::new(fusion(&at, refs, on_error, answerers, asker))),
        "confidence" => Algorithm::Confidence(Box::new(loopers::confidence(&at, on_error))),
        "ratings" => Algorithm::Ratings(Box::new(loopers::ratings(&at, refs, on_error, answerers, asker))),
        "remom" => Algorithm::Remom(Box::new(loopers::remom(&at, refs, on_error, answerers, asker))),
        "workflows" => Algorithm::Workflows(Box::new(workflows::read(&at, on_error, answerers, asker))),
        "poll" => Algorithm::Poll(Box::new(poll::read(&at, refs, on_error))),
        selector => match selectors::read(&at, selector, on_error, answerers, asker) {
            Some(settings) => Algorithm::Selector(Box::new(settings)),
            None => Algorithm::Static,
        },
    }
}

/// The algorithm of a decision that names none: the file's `model_selection.method`, where there is a choice to be made.
fn unnamed(
    decision: &Cursor<'_>,
    refs: &[ModelRef],
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Algorithm {
    let method = answerers.selection.method.filter(|_| refs.len() > 1);
    let settings = method.and_then(|kind| selectors::read(decision, kind, None, answerers, asker));
    settings.map_or(Algorithm::Static, |it| Algorithm::Selector(Box::new(it)))
}

fn report_idle_blocks(at: &Cursor<'_>, kind: &str) {
    for (key, place, value) in at.entries() {
        if key != kind && TYPES.contains(&key) {
            let message = format!("the block `{key}` has no effect beside `type: {kind}`");
            value.say(crate::Severity::Warning, code::UNUSED, place, message, None);
        }
    }
}

fn fusion(
    algorithm: &Cursor<'_>,
    refs: &[ModelRef],
    on_error: Option<OnError>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> FusionSettings {
    let defaults = FusionSettings { on_error: on_error.unwrap_or_default(), ..FusionSettings::default() };
    let Some(at) = algorithm.get("fusion") else {
        check_panel(algorithm, &defaults, refs, answerers);
        return defaults;
    };
    let member = Asker { role: "panel", ..asker };
    let panel_written = at.items("analysis_models");
    let settings = FusionSettings {
        judge: at.get("model").and_then(|name| answerers.model(&name, Asker { role: "judge", ..asker })),
        panel: panel_written.iter().filter_map(|name| answerers.model(name, member)).collect(),
        preset: at.word("preset", &FusionPreset::WORDS),
        overrides: at
            .items("analysis_overrides")
            .iter()
            .filter_map(|it| panel_override(it, answerers, member))
            .collect(),
        max_concurrent: size(&at, "max_concurrent"),
        max_completion_tokens: at.count("max_completion_tokens"),
        round_timeout: at.count("round_timeout_seconds").map(Duration::from_secs),
        min_successful_responses: size(&at, "min_successful_responses"),
        temperature: at.float_in("temperature", 0.0, TEMPERATURE_MOST),
        include_analysis: at.boolean("include_analysis").unwrap_or(defaults.include_analysis),
        include_intermediate_responses: at
            .boolean("include_intermediate_responses")
            .unwrap_or(defaults.include_intermediate_responses),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
        analysis_template: template(&at, "analysis_template", &["{{original}}", "{{responses}}"]),
        synthesis_template: template(
            &at,
            "synthesis_template",
            &["{{original}}", "{{responses}}", "{{analysis}}"],
        ),
        judge_prompt_version: at.string("judge_prompt_version").unwrap_or(defaults.judge_prompt_version),
        single_answer_passthrough: at
            .boolean("single_answer_passthrough")
            .unwrap_or(defaults.single_answer_passthrough),
        cadence: at.word("panel_cadence", &CADENCES).unwrap_or_default(),
        grounding: grounding(&at),
        budget: budgets::read(&at),
    };
    // A panel that already has an error of its own would only bring on followers.
    if settings.panel.len() == panel_written.len() {
        check_panel(&at, &settings, refs, answerers);
    }
    settings
}

pub(super) const CADENCES: [(&str, PanelCadence); 2] =
    [("user_turn", PanelCadence::UserTurn), ("every_turn", PanelCadence::EveryTurn)];

/// Grounding is off unless it is switched on. Source: contract §1.8.
fn grounding(fusion: &Cursor<'_>) -> Option<GroundingSettings> {
    const REFERENCES: [(&str, GroundingReference); 3] = [
        ("hybrid", GroundingReference::Hybrid),
        ("context", GroundingReference::Context),
        ("panel", GroundingReference::Panel),
    ];
    const POLICIES: [(&str, GroundingPolicy); 3] = [
        ("weight", GroundingPolicy::Weight),
        ("annotate", GroundingPolicy::Annotate),
        ("filter", GroundingPolicy::Filter),
    ];
    const SCORERS: [(&str, GroundingScorer); 2] =
        [("words", GroundingScorer::Words), ("meaning", GroundingScorer::Meaning)];
    let at = fusion.get("grounding")?;
    let defaults = GroundingSettings::default();
    let settings = GroundingSettings {
        reference: at.word("reference", &REFERENCES).unwrap_or_default(),
        policy: at.word("policy", &POLICIES).unwrap_or_default(),
        min_score: at.float_in("min_score", 0.0, 1.0).unwrap_or(defaults.min_score),
        min_keep: size(&at, "min_keep").unwrap_or(defaults.min_keep),
        contradiction_penalty: at
            .float_in("nli_contradiction_penalty", 0.0, f64::MAX)
            .unwrap_or(defaults.contradiction_penalty),
        scorer: at.word("scorer", &SCORERS).unwrap_or_default(),
        on_error: at.word("on_error", &ON_ERROR).unwrap_or(defaults.on_error),
    };
    at.boolean("enabled").unwrap_or(false).then_some(settings)
}

fn panel_override(at: &Cursor<'_>, answerers: &Answerers<'_>, asker: Asker<'_>) -> Option<FusionOverride> {
    at.required("model")?;
    Some(FusionOverride {
        model: answerers.model(&at.get("model")?, asker)?,
        temperature: at.float_in("temperature", 0.0, TEMPERATURE_MOST),
        max_completion_tokens: at.count("max_completion_tokens"),
    })
}

fn check_panel(at: &Cursor<'_>, settings: &FusionSettings, refs: &[ModelRef], answerers: &Answerers<'_>) {
    let panel: Vec<&ModelId> = if settings.panel.is_empty() {
        refs.iter().map(|r| &r.model).collect()
    } else {
        settings.panel.iter().collect()
    };
    if let Some(quorum) =
        settings.min_successful_responses.filter(|quorum| !panel.is_empty() && *quorum > panel.len())
    {
        let named = at.get("min_successful_responses").unwrap_or_else(|| at.clone());
        let message = format!("`min_successful_responses` is {quorum}, and the panel has {}", panel.len());
        named.error(code::BAD_RANGE, message);
    }
    if let Some(judge) = settings.judge.as_ref().filter(|judge| panel.contains(judge)) {
        let named = at.get("model").unwrap_or_else(|| at.clone());
        let help = "a judge of another family is less kind to that answer".to_owned();
        named.warn_help(code::JUDGE_IS_MEMBER, format!("`{judge}` judges a panel that it sits on"), help);
    }
    for (index, it) in settings.overrides.iter().enumerate().filter(|(_, it)| !panel.contains(&&it.model)) {
        let place = at.items("analysis_overrides").into_iter().nth(index).unwrap_or_else(|| at.clone());
        place
            .warn(code::UNUSED, format!("`{}` is not on the panel, so its override is never used", it.model));
    }
    report_twins(at, &panel, answerers);
}

/// Two names of one backend and one upstream name are one voice counted twice; one name twice is a self-panel.
fn report_twins(at: &Cursor<'_>, panel: &[&ModelId], answerers: &Answerers<'_>) {
    let mut voices: BTreeMap<String, &ModelId> = BTreeMap::new();
    for id in panel {
        let Some(model) = answerers.models.get(*id) else {
            continue;
        };
        let Some(backend) = model.backends.first() else {
            continue;
        };
        let voice = voice(backend, &model.upstream_name);
        match voices.get(&voice) {
            Some(other) if other != id => {
                let named = at.get("analysis_models").unwrap_or_else(|| at.clone());
                let message = format!("`{other}` and `{id}` are one model under two names");
                named.warn(code::SAME_MODEL_TWICE, message);
            }
            _ => drop(voices.insert(voice, id)),
        }
    }
}

fn voice(backend: &Backend, upstream_name: &str) -> String {
    match &backend.endpoint {
        Endpoint::Http { base_url, .. } => format!("{} {upstream_name}", base_url.as_written()),
        Endpoint::Local { model } => format!("local {model}"),
    }
}
