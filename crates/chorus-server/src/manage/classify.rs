//! `/api/v1/classify/…`: one classifier at a time, apart from any policy.
//!
//! Thresholds are the file's, unless the request brings one. A classifier that could not run is an error, never "no".
//! Source: contract §4.2 and Appendix B (`services`).

use super::endpoint::{Endpoint, Field, Route};
use super::words::Answered;
use super::{intent, words};
use crate::door::Door;
use axum::body::Body;
use axum::extract::State;
use axum::routing::post;
use chorus_engine::classify::RuleFamily;
use chorus_engine::{Code, Fault, Mom, classify};
use chorus_policy::{AbsentReason, Evidence, Observation};
use chorus_spec::{Family, SignalKey};
use chorus_wire::{ChatRequest, Message, Role};
use serde::{Deserialize, Serialize};
use std::time::Instant;

const TEXT: Field = Field::needed("text", "string", "the text");
const OPTIONS: Field = Field::new("options", "object", "`confidence_threshold`, in place of the file's");

const LABELLED: &[Field] = &[TEXT, OPTIONS];

/// What can be classified.
pub(super) fn routes() -> Vec<Route> {
    let ask = |path, does, fields| Endpoint::new("POST", path, "classify.invoke", does).taking(fields);
    vec![
        Route::new(
            ask(
                "/api/v1/classify/intent",
                "the subject, and the decision that a request reaches",
                intent::FIELDS,
            ),
            post(intent::intent),
        ),
        Route::new(
            ask("/api/v1/classify/pii", "personal data and secrets, with their places", PII_FIELDS),
            post(pii),
        ),
        Route::new(
            ask("/api/v1/classify/security", "whether a text tries to take over the model", SECURITY_FIELDS),
            post(security),
        ),
        Route::new(
            ask("/api/v1/classify/fact-check", "whether a question needs checking", LABELLED),
            post(fact_check),
        ),
        Route::new(
            ask("/api/v1/classify/user-feedback", "what a user thinks of the answer before", LABELLED),
            post(user_feedback),
        ),
    ]
}

const PII_FIELDS: &[Field] = &[
    TEXT,
    Field::new(
        "options",
        "object",
        "`entity_types`, `confidence_threshold`, `return_positions`, `mask_entities`, `reveal_entity_text`",
    ),
];

const SECURITY_FIELDS: &[Field] =
    &[TEXT, Field::new("options", "object", "`detection_types` (only `jailbreak`), `include_reasoning`")];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TextRequest {
    text: String,
    #[serde(default)]
    options: ThresholdOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct ThresholdOptions {
    confidence_threshold: Option<f64>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PiiRequest {
    text: String,
    #[serde(default)]
    options: PiiOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct PiiOptions {
    entity_types: Vec<String>,
    confidence_threshold: Option<f64>,
    return_positions: bool,
    mask_entities: bool,
    reveal_entity_text: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SecurityRequest {
    text: String,
    #[serde(default)]
    options: SecurityOptions,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SecurityOptions {
    detection_types: Vec<String>,
    include_reasoning: bool,
}

/// Personal data of a text.
#[derive(Debug, Serialize)]
pub(super) struct PiiAnswer {
    has_pii: bool,
    entities: Vec<EntityShape>,
    #[serde(skip_serializing_if = "Option::is_none")]
    masked_text: Option<String>,
    security_recommendation: &'static str,
    processing_time_ms: u64,
}

#[derive(Debug, Serialize)]
struct EntityShape {
    #[serde(rename = "type")]
    kind: &'static str,
    /// The text itself only where the request says so.
    value: String,
    confidence: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    end_position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    masked_value: Option<String>,
}

/// Whether a text attacks.
#[derive(Debug, Serialize)]
pub(super) struct SecurityAnswer {
    is_jailbreak: bool,
    risk_score: f64,
    detection_types: Vec<&'static str>,
    confidence: f64,
    recommendation: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<String>,
    /// Families of attempts that are told by words; none where only the head says so.
    patterns_detected: Vec<&'static str>,
    processing_time_ms: u64,
}

/// Whether a text needs checking.
#[derive(Debug, Serialize)]
pub(super) struct FactCheckAnswer {
    needs_fact_check: bool,
    label: &'static str,
    confidence: f64,
    processing_time_ms: u64,
}

/// What a user thinks.
#[derive(Debug, Serialize)]
pub(super) struct FeedbackAnswer {
    feedback_type: &'static str,
    label: &'static str,
    confidence: f64,
    processing_time_ms: u64,
}

async fn pii(State(door): State<Door>, body: Body) -> Answered {
    let asked: PiiRequest = words::read(&door, body).await?;
    Ok(words::answer(pii_of(&door.engine.serving(), asked.text, asked.options).await))
}

async fn security(State(door): State<Door>, body: Body) -> Answered {
    let asked: SecurityRequest = words::read(&door, body).await?;
    if let Some(other) = asked.options.detection_types.iter().find(|kind| *kind != classify::JAILBREAK) {
        let shown: String = other.chars().take(80).collect();
        let text = format!("`{shown}` is not looked for; `{}` is", classify::JAILBREAK);
        return Err(words::fault(&words::invalid(text).at("options.detection_types")).into());
    }
    let mom = door.engine.serving();
    Ok(words::answer(security_of(&mom, &asked.text, asked.options.include_reasoning).await))
}

async fn fact_check(State(door): State<Door>, body: Body) -> Answered {
    let asked: TextRequest = words::read(&door, body).await?;
    let threshold = asked.options.confidence_threshold;
    Ok(words::answer(fact_check_of(&door.engine.serving(), &asked.text, threshold).await))
}

async fn user_feedback(State(door): State<Door>, body: Body) -> Answered {
    let asked: TextRequest = words::read(&door, body).await?;
    let threshold = asked.options.confidence_threshold;
    Ok(words::answer(feedback_of(&door.engine.serving(), &asked.text, threshold).await))
}

pub(super) async fn pii_of(mom: &Mom, text: String, options: PiiOptions) -> Result<PiiAnswer, Fault> {
    let started = Instant::now();
    let least = options.confidence_threshold.unwrap_or(mom.spec.global.pii_threshold);
    let characters: Vec<char> = if options.reveal_entity_text { text.chars().collect() } else { Vec::new() };
    let (found, redacted) = mom.classifiers.personal_data(text, least, options.entity_types).await?;
    let entities = found.iter().map(|finding| {
        let kind = finding.entity.name();
        let revealed = characters.get(finding.start..finding.end).map(|shown| shown.iter().collect());
        EntityShape {
            kind,
            value: revealed.unwrap_or_else(|| format!("<{kind}>")),
            confidence: finding.score,
            start_position: options.return_positions.then_some(finding.start),
            end_position: options.return_positions.then_some(finding.end),
            masked_value: options.mask_entities.then(|| format!("<{kind}>")),
        }
    });
    Ok(PiiAnswer {
        has_pii: !found.is_empty(),
        entities: entities.collect(),
        masked_text: options.mask_entities.then_some(redacted.text),
        security_recommendation: if found.is_empty() { "allow" } else { "block" },
        processing_time_ms: words::millis(started),
    })
}

pub(super) async fn security_of(mom: &Mom, text: &str, reasoning: bool) -> Result<SecurityAnswer, Fault> {
    let started = Instant::now();
    let evidence = mom.classifiers.observe(&[Family::Jailbreak], user(text)).await?;
    let seen = Seen::of(&evidence, Family::Jailbreak, classify::JAILBREAK)?;
    let families = mom.classifiers.attempts(user(text)).await?;
    let reasoning = reasoning.then(|| {
        let least = mom.spec.global.prompt_guard_threshold;
        format!("the score is {:.4}; at {least} and above a text counts as an attempt", seen.score)
    });
    Ok(SecurityAnswer {
        is_jailbreak: seen.matched,
        risk_score: seen.score,
        detection_types: if seen.matched { vec![classify::JAILBREAK] } else { Vec::new() },
        confidence: if seen.matched { seen.score } else { 1.0 - seen.score },
        recommendation: if seen.matched { "block" } else { "allow" },
        reasoning,
        patterns_detected: families.into_iter().map(RuleFamily::as_str).collect(),
        processing_time_ms: words::millis(started),
    })
}

pub(super) async fn fact_check_of(
    mom: &Mom,
    text: &str,
    threshold: Option<f64>,
) -> Result<FactCheckAnswer, Fault> {
    const LABELS: [&str; 2] = ["needs_fact_check", "no_fact_check_needed"];
    let started = Instant::now();
    let evidence = mom.classifiers.observe(&[Family::FactCheck], user(text)).await?;
    let [needed, not] = LABELS.map(|label| Seen::of(&evidence, Family::FactCheck, label));
    let (needed, not) = (needed?, not?);
    let needs = threshold.map_or(needed.matched, |least| needed.score >= least);
    let (label, seen) = if needs { (LABELS[0], needed) } else { (LABELS[1], not) };
    Ok(FactCheckAnswer {
        needs_fact_check: needs,
        label,
        confidence: seen.score,
        processing_time_ms: words::millis(started),
    })
}

pub(super) async fn feedback_of(
    mom: &Mom,
    text: &str,
    threshold: Option<f64>,
) -> Result<FeedbackAnswer, Fault> {
    const LABELS: [&str; 4] = ["satisfied", "need_clarification", "wrong_answer", "want_different"];
    let started = Instant::now();
    // Feedback is about an answer; which one does not matter to the classifier.
    let turns = [(Role::User, "A question."), (Role::Assistant, "An answer."), (Role::User, text)];
    let request = ChatRequest::new("", turns.map(|(role, text)| Message::new(role, text)).to_vec());
    let evidence = mom.classifiers.observe(&[Family::UserFeedback], request).await?;
    let mut best: Option<(&'static str, Seen)> = None;
    for label in LABELS {
        let seen = Seen::of(&evidence, Family::UserFeedback, label)?;
        if best.is_none_or(|(_, other)| seen.score > other.score) {
            best = Some((label, seen));
        }
    }
    let (label, seen) = best.unwrap_or(("none", Seen { matched: false, score: 0.0 }));
    let counts = threshold.map_or(seen.matched, |least| seen.score >= least);
    let label = if counts { label } else { "none" };
    Ok(FeedbackAnswer {
        feedback_type: label,
        label,
        confidence: seen.score,
        processing_time_ms: words::millis(started),
    })
}

/// What a classifier says of one label.
#[derive(Debug, Clone, Copy)]
struct Seen {
    matched: bool,
    /// In 0..=1.
    score: f64,
}

impl Seen {
    /// # Errors
    /// Why nothing is known.
    fn of(evidence: &Evidence, family: Family, name: &str) -> Result<Self, Fault> {
        match evidence.get(&SignalKey::new(family, name)) {
            Some(Observation::Matched { confidence, raw }) => {
                Ok(Self { matched: true, score: raw.unwrap_or(*confidence) })
            }
            Some(Observation::Unmatched { raw }) => {
                Ok(Self { matched: false, score: raw.unwrap_or_default() })
            }
            Some(Observation::Absent(AbsentReason::Failed(why))) => {
                Err(Fault::new(Code::NotLoaded, format!("`{family}` could not be evaluated: {why}")))
            }
            Some(Observation::Absent(AbsentReason::Unsupported)) | None => {
                Err(Fault::new(Code::NotSupported, format!("this version does not evaluate `{family}`")))
            }
        }
    }
}

fn user(text: &str) -> ChatRequest {
    ChatRequest::new("", vec![Message::new(Role::User, text)])
}
