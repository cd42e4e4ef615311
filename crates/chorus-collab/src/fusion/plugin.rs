//! Reads the request plugin `{"id": "fusion", …}`.
//!
//! **Invariant:** a key that it does not know is an error, and so is a known one that cannot be served.
//! Source: contract Appendix A (`FusionRequestConfig`); `preset`, `max_tool_calls` and `tools` as `OpenRouter` has them.

use super::fault::PlanFault;
use super::overlay::FusionOverlay;
use super::plan::MAX_PANEL;
use chorus_spec::{
    FusionOverride, FusionPreset, GroundingPolicy, GroundingReference, GroundingScorer, GroundingSettings,
    ModelId, OnError,
};
use chorus_wire::{ChatRequest, RawObject};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;

/// The ids of the plugin.
const IDS: [&str; 2] = ["fusion", "openrouter:fusion"];
/// Every field of the plugin.
const FIELDS: [&str; 20] = [
    "id",
    "enabled",
    "model",
    "analysis_models",
    "analysis_overrides",
    "max_concurrent",
    "max_completion_tokens",
    "round_timeout_seconds",
    "min_successful_responses",
    "temperature",
    "include_analysis",
    "include_intermediate_responses",
    "on_error",
    "analysis_template",
    "synthesis_template",
    "judge_prompt_version",
    "grounding",
    "preset",
    "max_tool_calls",
    "tools",
];
/// Longest round, in seconds: a day.
const MAX_ROUND_SECONDS: f64 = 86_400.0;

/// `analysis_overrides[]` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OverrideWire {
    model: String,
    temperature: Option<f64>,
    max_completion_tokens: Option<u64>,
}

impl FusionOverlay {
    /// Whether that plugin id means Fusion.
    #[must_use]
    pub fn is_id(id: &str) -> bool {
        IDS.contains(&id)
    }

    /// The fusion plugin of a request, if it has one.
    ///
    /// # Errors
    /// A plugin that cannot be read, or several.
    pub fn of_request(ask: &ChatRequest) -> Result<Option<Self>, PlanFault> {
        let plugins = ask.body().read::<Option<Vec<Box<RawValue>>>>("plugins").ok().flatten().flatten();
        let mut found = None;
        for raw in plugins.unwrap_or_default() {
            if !has_fusion_id(&raw) {
                continue;
            }
            if found.is_some() {
                return Err(PlanFault::Twice);
            }
            found = Some(Self::parse(raw.get())?);
        }
        Ok(found)
    }

    /// Reads one plugin object.
    ///
    /// # Errors
    /// The first [`PlanFault`].
    pub fn parse(raw: &str) -> Result<Self, PlanFault> {
        let object =
            RawObject::parse(raw.as_bytes()).map_err(|fault| PlanFault::NotAnObject(fault.to_string()))?;
        check_keys(&object)?;
        check_support(&object)?;
        let at_least_1 = |field, n: Option<u64>| match n {
            Some(0) => Err(wrong(field, "must be at least 1")),
            n => Ok(n),
        };
        Ok(Self {
            enabled: field(&object, "enabled", "a boolean")?.unwrap_or(true),
            preset: preset(&object)?,
            grounding: grounding(&object)?,
            judge: name(&object)?,
            panel: panel(&object)?,
            overrides: overrides(&object)?,
            max_concurrent: field(&object, "max_concurrent", "a whole number")?,
            max_completion_tokens: at_least_1(
                "max_completion_tokens",
                field(&object, "max_completion_tokens", "a whole number")?,
            )?,
            round_timeout: round_timeout(&object)?,
            min_successful_responses: at_least_1(
                "min_successful_responses",
                field(&object, "min_successful_responses", "a whole number")?,
            )?
            .map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            temperature: temperature("temperature", field(&object, "temperature", "a number")?)?,
            include_analysis: field(&object, "include_analysis", "a boolean")?,
            include_intermediate_responses: field(&object, "include_intermediate_responses", "a boolean")?,
            on_error: field(&object, "on_error", "`skip` or `fail`")?,
            analysis_template: field(&object, "analysis_template", "a string")?,
            synthesis_template: field(&object, "synthesis_template", "a string")?,
            judge_prompt_version: field(&object, "judge_prompt_version", "a string")?,
        })
    }
}

/// `grounding` as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GroundingWire {
    #[serde(default)]
    enabled: bool,
    reference: Option<GroundingReference>,
    policy: Option<GroundingPolicy>,
    min_score: Option<f64>,
    min_keep: Option<usize>,
    nli_contradiction_penalty: Option<f64>,
    scorer: Option<GroundingScorer>,
    on_error: Option<OnError>,
}

fn grounding(object: &RawObject) -> Result<Option<Option<GroundingSettings>>, PlanFault> {
    const FIELD: &str = "grounding";
    let Some(wire) = field::<GroundingWire>(object, FIELD, "an object of grounding settings")? else {
        return Ok(None);
    };
    let defaults = GroundingSettings::default();
    let settings = GroundingSettings {
        reference: wire.reference.unwrap_or(defaults.reference),
        policy: wire.policy.unwrap_or(defaults.policy),
        min_score: wire.min_score.unwrap_or(defaults.min_score),
        min_keep: wire.min_keep.unwrap_or(defaults.min_keep),
        contradiction_penalty: wire.nli_contradiction_penalty.unwrap_or(defaults.contradiction_penalty),
        scorer: wire.scorer.unwrap_or(defaults.scorer),
        on_error: wire.on_error.unwrap_or(defaults.on_error),
    };
    if !(0.0..=1.0).contains(&settings.min_score) {
        return Err(wrong(FIELD, "has a `min_score` that is not from 0 to 1"));
    }
    if settings.contradiction_penalty < 0.0 {
        return Err(wrong(FIELD, "has a `nli_contradiction_penalty` below 0"));
    }
    Ok(Some(wire.enabled.then_some(settings)))
}

fn preset(object: &RawObject) -> Result<Option<FusionPreset>, PlanFault> {
    let Some(word) = field::<String>(object, "preset", "a string")? else { return Ok(None) };
    let known = FusionPreset::WORDS.map(|(word, _)| format!("`{word}`")).join(", ");
    FusionPreset::of_word(&word).map(Some).ok_or_else(|| wrong("preset", &format!("must be one of {known}")))
}

fn has_fusion_id(raw: &RawValue) -> bool {
    #[derive(Deserialize)]
    struct Id {
        id: String,
    }
    serde_json::from_str::<Id>(raw.get()).is_ok_and(|it| FusionOverlay::is_id(&it.id))
}

fn check_keys(object: &RawObject) -> Result<(), PlanFault> {
    if let Some((key, _)) = object.iter().find(|(key, _)| !FIELDS.contains(key)) {
        let score = |field: &&'static str| strsim::jaro_winkler(key, field);
        let nearest = FIELDS.into_iter().max_by(|a, b| score(a).total_cmp(&score(b)));
        return Err(PlanFault::UnknownKey {
            key: key.to_owned(),
            nearest: nearest.filter(|f| score(f) > 0.8),
        });
    }
    match field::<String>(object, "id", "a string")? {
        Some(id) if FusionOverlay::is_id(&id) => Ok(()),
        _ => Err(wrong("id", "must be `fusion`")),
    }
}

/// Refuses what cannot be served yet; values that ask for nothing pass.
fn check_support(object: &RawObject) -> Result<(), PlanFault> {
    let asks = |key: &'static str, nothing: &[&str]| match object.get(key) {
        Some(raw) if !nothing.contains(&raw.get().trim()) => Err(PlanFault::NotSupported(key)),
        _ => Ok(()),
    };
    if field::<Vec<serde_json::Value>>(object, "tools", "an array")?.is_some_and(|tools| !tools.is_empty()) {
        return Err(PlanFault::NotSupported("tools"));
    }
    asks("max_tool_calls", &["null", "0"])
}

fn wrong(field: &'static str, problem: &str) -> PlanFault {
    PlanFault::Field { field, problem: problem.to_owned() }
}

/// A field as `T`; `None` when it is absent or null.
fn field<T: DeserializeOwned>(
    object: &RawObject,
    key: &'static str,
    what: &str,
) -> Result<Option<T>, PlanFault> {
    let read = object.read::<Option<T>>(key).map(Option::flatten);
    read.map_err(|_| wrong(key, &format!("must be {what}")))
}

fn name(object: &RawObject) -> Result<Option<ModelId>, PlanFault> {
    match field::<String>(object, "model", "a string")? {
        Some(name) if name.trim().is_empty() => Err(wrong("model", "must not be empty")),
        name => Ok(name.map(ModelId::new)),
    }
}

fn panel(object: &RawObject) -> Result<Option<Vec<ModelId>>, PlanFault> {
    let Some(names) = field::<Vec<String>>(object, "analysis_models", "an array of strings")? else {
        return Ok(None);
    };
    if names.is_empty() || names.iter().any(|name| name.trim().is_empty()) {
        return Err(wrong("analysis_models", "must name at least one model, and no empty name"));
    }
    if names.len() > MAX_PANEL {
        return Err(PlanFault::PanelTooLarge { seats: names.len(), limit: MAX_PANEL });
    }
    Ok(Some(names.into_iter().map(ModelId::new).collect()))
}

fn overrides(object: &RawObject) -> Result<Option<Vec<FusionOverride>>, PlanFault> {
    const FIELD: &str = "analysis_overrides";
    let what = "an array of {model, temperature, max_completion_tokens}";
    let Some(wires) = field::<Vec<OverrideWire>>(object, FIELD, what)? else {
        return Ok(None);
    };
    let check = |wire: OverrideWire| {
        if wire.max_completion_tokens == Some(0) {
            return Err(wrong(FIELD, "has a `max_completion_tokens` of 0"));
        }
        Ok(FusionOverride {
            model: ModelId::new(wire.model),
            temperature: temperature(FIELD, wire.temperature)?,
            max_completion_tokens: wire.max_completion_tokens,
        })
    };
    wires.into_iter().map(check).collect::<Result<_, _>>().map(Some)
}

fn round_timeout(object: &RawObject) -> Result<Option<Duration>, PlanFault> {
    const FIELD: &str = "round_timeout_seconds";
    match field::<f64>(object, FIELD, "a number of seconds")? {
        Some(seconds) if !(seconds > 0.0 && seconds <= MAX_ROUND_SECONDS) => {
            Err(wrong(FIELD, "must be above 0 and at most 86400"))
        }
        seconds => Ok(seconds.map(Duration::from_secs_f64)),
    }
}

fn temperature(field: &'static str, value: Option<f64>) -> Result<Option<f64>, PlanFault> {
    match value {
        Some(t) if !(0.0..=2.0).contains(&t) => Err(wrong(field, "must have a temperature from 0 to 2")),
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(fields: &str) -> Result<FusionOverlay, PlanFault> {
        FusionOverlay::parse(&format!("{{\"id\":\"fusion\"{fields}}}"))
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (fields, expect) in [
            (
                r#","analysis_model":["a"]"#,
                "the fusion plugin has no field `analysis_model`; did you mean `analysis_models`?",
            ),
            (r#","zzz":1"#, "the fusion plugin has no field `zzz`"),
            (r#","temperature":3"#, "fusion plugin field `temperature` must have a temperature from 0 to 2"),
            (r#","temperature":"x""#, "fusion plugin field `temperature` must be a number"),
            (
                r#","analysis_models":[]"#,
                "fusion plugin field `analysis_models` must name at least one model, and no empty name",
            ),
            (
                r#","analysis_models":"a""#,
                "fusion plugin field `analysis_models` must be an array of strings",
            ),
            (r#","model":" ""#, "fusion plugin field `model` must not be empty"),
            (
                r#","max_completion_tokens":0"#,
                "fusion plugin field `max_completion_tokens` must be at least 1",
            ),
            (
                r#","min_successful_responses":0"#,
                "fusion plugin field `min_successful_responses` must be at least 1",
            ),
            (r#","max_concurrent":-1"#, "fusion plugin field `max_concurrent` must be a whole number"),
            (
                r#","round_timeout_seconds":0"#,
                "fusion plugin field `round_timeout_seconds` must be above 0 and at most 86400",
            ),
            (r#","on_error":"maybe""#, "fusion plugin field `on_error` must be `skip` or `fail`"),
            (
                r#","analysis_overrides":[{"model":"a","temprature":1}]"#,
                "fusion plugin field `analysis_overrides` must be an array of {model, temperature, max_completion_tokens}",
            ),
            (
                r#","preset":"code-high""#,
                "fusion plugin field `preset` must be one of `general-high`, `general-low`, `self`",
            ),
            (r#","max_tool_calls":4"#, "fusion plugin field `max_tool_calls` is not supported yet"),
            (
                r#","tools":[{"type":"openrouter:web_search"}]"#,
                "fusion plugin field `tools` is not supported yet",
            ),
            (
                r#","grounding":{"enabled":true,"min_score":2}"#,
                "fusion plugin field `grounding` has a `min_score` that is not from 0 to 1",
            ),
            (
                r#","grounding":{"policy":"drop"}"#,
                "fusion plugin field `grounding` must be an object of grounding settings",
            ),
        ] {
            assert_eq!(parse(fields).unwrap_err().to_string(), expect);
        }
        let other = FusionOverlay::parse(r#"{"id":"web"}"#).unwrap_err().to_string();
        assert_eq!(other, "fusion plugin field `id` must be `fusion`");
        assert!(matches!(FusionOverlay::parse("[1]"), Err(PlanFault::NotAnObject(_))));
        assert!(matches!(parse(r#","model":"a","model":"b""#), Err(PlanFault::NotAnObject(_))));
    }

    #[test]
    fn a_request_can_bring_a_preset_and_its_own_grounding() {
        let own = parse(r#","preset":"self","grounding":{"enabled":true,"policy":"annotate"}"#).unwrap();
        assert_eq!(own.preset, Some(FusionPreset::SelfPanel));
        assert_eq!(own.grounding.unwrap().unwrap().policy, GroundingPolicy::Annotate);
        assert_eq!(parse(r#","grounding":{"enabled":false}"#).unwrap().grounding, Some(None));
        assert_eq!(parse("").unwrap().grounding, None);
    }

    #[test]
    fn what_asks_for_nothing_passes() {
        for fields in [
            "",
            r#","tools":[]"#,
            r#","grounding":{"enabled":false}"#,
            r#","max_tool_calls":0"#,
            r#","preset":null,"temperature":null"#,
        ] {
            assert!(parse(fields).unwrap().enabled, "{fields}");
        }
        assert!(FusionOverlay::parse(r#"{"id":"openrouter:fusion"}"#).is_ok());
    }
}
