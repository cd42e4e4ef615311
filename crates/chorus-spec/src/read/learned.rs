//! Signal rules that compare meaning: prototype banks and heads over the encoder.
//!
//! It knows which labels the heads can give and which knowledge bases there are, not what is in their files.

use super::cursor::Cursor;
use super::names::{Answerers, Asker, Facts};
use super::nearest::suggest;
use super::rules;
use crate::diagnostic::code;
use crate::{
    Aggregation, ClassifierKind, ClassifierSignal, ComplexitySignal, Condition, DomainSignal,
    EmbeddingSignal, FactCheckSignal, Family, KbMatch, KbSignal, KbTarget, MMLU_CATEGORIES, ModalitySignal,
    ModelId, ModelScore, PreferenceSignal, ReaskSignal, UserFeedbackSignal,
};
use std::collections::BTreeSet;

/// Default least similarity of a repeated question (contract §1.4).
const REASK_THRESHOLD: f64 = 0.8;

/// Reads one rule of `embeddings`.
pub(super) fn embedding(rule: &Cursor<'_>) -> Option<EmbeddingSignal> {
    const AGGREGATIONS: [(&str, Aggregation); 3] =
        [("mean", Aggregation::Mean), ("max", Aggregation::Max), ("any", Aggregation::Any)];
    const MODALITIES: [(&str, &str); 3] = [("text", "text"), ("image", "image"), ("audio", "audio")];
    let query_modality = rule.word("query_modality", &MODALITIES).unwrap_or("text");
    if query_modality != "text" {
        let message =
            format!("`query_modality: {query_modality}` is known, not supported yet: only text is compared");
        rule.warn(code::NOT_SUPPORTED_YET, message);
    }
    let threshold = rule.needed("threshold").and_then(|_| rule.float_in("threshold", 0.0, 1.0));
    let candidates = rule.some_strings("candidates");
    let aggregation = rule.word("aggregation_method", &AGGREGATIONS).unwrap_or_default();
    Some(EmbeddingSignal {
        threshold: threshold?,
        candidates,
        aggregation,
        query_modality: query_modality.to_owned(),
    })
}

/// Reads one rule of `domains`.
pub(super) fn domain(rule: &Cursor<'_>, name: &str, answerers: &Answerers<'_>) -> DomainSignal {
    let mmlu_categories = rule.strings("mmlu_categories");
    if mmlu_categories.is_empty() {
        check_category(rule, name);
    }
    for category in rule.get("mmlu_categories").map(|at| at.elements()).unwrap_or_default() {
        if let Some(text) = category.node().text() {
            check_category(&category, text);
        }
    }
    let scores = rule.items("model_scores");
    DomainSignal {
        mmlu_categories,
        model_scores: scores.iter().filter_map(|at| model_score(at, answerers)).collect(),
    }
}

fn check_category(at: &Cursor<'_>, name: &str) {
    if !MMLU_CATEGORIES.contains(&name) {
        let help = suggest(name, &MMLU_CATEGORIES, "");
        at.warn_help(
            code::NEVER_MATCHES,
            format!("`{name}` is not a category of MMLU-Pro, so nothing is classified as it"),
            help,
        );
    }
}

fn model_score(at: &Cursor<'_>, answerers: &Answerers<'_>) -> Option<ModelScore> {
    let model = at.required("model")?;
    if !answerers.models.contains_key(&ModelId::new(model.as_str())) {
        at.warn(code::UNUSED, format!("no model is named `{model}`, so its score is never used"));
    }
    let score = at.needed("score").and_then(|_| at.float_in("score", 0.0, 1.0))?;
    Some(ModelScore { model, score, use_reasoning: at.boolean("use_reasoning") })
}

/// Reads one rule of `complexity`.
pub(super) fn complexity(rule: &Cursor<'_>, facts: &Facts<'_>) -> Option<ComplexitySignal> {
    let threshold = rule.needed("threshold").and_then(|_| rule.float_in("threshold", 0.0, 1.0));
    let bank = |key| rule.needed(key).map(|at| at.some_strings("candidates")).unwrap_or_default();
    let (hard, easy) = (bank("hard"), bank("easy"));
    let composer = rules::optional(rule, "composer", facts);
    for key in composer.iter().flat_map(Condition::keys).filter(|key| key.family == Family::Projection) {
        let message =
            format!("a composer is evaluated before projections, so it cannot ask for `{}`", key.name());
        rule.error(code::CYCLE, message);
    }
    let easy_certainty =
        rule.float_in("easy_certainty", 0.0, 1.0).unwrap_or(ComplexitySignal::EASY_CERTAINTY);
    Some(ComplexitySignal { threshold: threshold?, easy_certainty, hard, easy, composer })
}

/// Reads one rule of `fact_check`; its name is a label.
pub(super) fn fact_check(rule: &Cursor<'_>) -> Option<FactCheckSignal> {
    label(
        rule,
        &[
            ("needs_fact_check", FactCheckSignal::Needed),
            ("no_fact_check_needed", FactCheckSignal::NotNeeded),
        ],
    )
}

/// Reads one rule of `user_feedbacks`; its name is a label.
pub(super) fn user_feedback(rule: &Cursor<'_>) -> Option<UserFeedbackSignal> {
    label(
        rule,
        &[
            ("satisfied", UserFeedbackSignal::Satisfied),
            ("need_clarification", UserFeedbackSignal::NeedClarification),
            ("wrong_answer", UserFeedbackSignal::WrongAnswer),
            ("want_different", UserFeedbackSignal::WantDifferent),
        ],
    )
}

/// Reads one rule of `modality`; its name is a label.
pub(super) fn modality(rule: &Cursor<'_>) -> Option<ModalitySignal> {
    label(
        rule,
        &[("AR", ModalitySignal::Text), ("DIFFUSION", ModalitySignal::Image), ("BOTH", ModalitySignal::Both)],
    )
}

/// The label that a rule's name stands for. Rules refer to it by that name, so its case counts.
fn label<T: Copy>(rule: &Cursor<'_>, labels: &[(&str, T)]) -> Option<T> {
    let at = rule.get("name")?;
    let name = at.text()?;
    let found = labels.iter().find(|(label, _)| *label == name);
    if found.is_none() {
        let known: Vec<&str> = labels.iter().map(|(label, _)| *label).collect();
        at.error_help(
            code::UNKNOWN_LABEL,
            format!("no head gives the label `{name}`, so this rule could never match"),
            suggest(&name, &known, ""),
        );
    }
    found.map(|(_, label)| *label)
}

/// Reads one rule of `reasks`.
pub(super) fn reask(rule: &Cursor<'_>) -> ReaskSignal {
    let lookback = rule.integer_in("lookback_turns", 0, i64::from(u16::MAX)).unwrap_or(0);
    ReaskSignal {
        threshold: rule.float_in("threshold", 0.0, 1.0).unwrap_or(REASK_THRESHOLD),
        // The contract writes an unset number as 0.
        lookback_turns: usize::try_from(lookback).unwrap_or(1).max(1),
    }
}

/// Reads one rule of `preferences`.
pub(super) fn preference(rule: &Cursor<'_>) -> Option<PreferenceSignal> {
    let description = rule.string("description").unwrap_or_default();
    let examples = rule.strings("examples");
    if description.trim().is_empty() && examples.is_empty() {
        let help = "write a `description`, some `examples`, or both".to_owned();
        rule.error_help(code::MISSING_KEY, "there is nothing that a request could be compared with", help);
        return None;
    }
    let threshold = rule.float_in("threshold", 0.0, 1.0).filter(|least| *least > 0.0);
    Some(PreferenceSignal { description, examples, threshold })
}

/// Reads one rule of `kb`.
pub(super) fn kb(rule: &Cursor<'_>, facts: &Facts<'_>) -> Option<KbSignal> {
    const MATCHES: [(&str, KbMatch); 2] = [("threshold", KbMatch::Threshold), ("best", KbMatch::Best)];
    const KINDS: [(&str, bool); 2] = [("label", false), ("group", true)];
    let kb = rule.required("kb");
    let base = rule.get("kb").and_then(|at| facts.knowledge_base(&at));
    let matching = rule.word("match", &MATCHES).unwrap_or_default();
    let target = rule.needed("target")?;
    let is_group = target.needed("kind").and_then(|_| target.word("kind", &KINDS));
    let value = target.required("value")?;
    if let (Some(base), Some(true)) = (base, is_group) {
        let groups: Vec<&str> = base.groups.iter().map(|(name, _)| name.as_str()).collect();
        if !groups.contains(&value.as_str()) {
            let at = target.get("value").unwrap_or_else(|| target.clone());
            let message = format!("`{}` has no group `{value}`", base.name);
            at.error_help(code::UNKNOWN_REFERENCE, message, suggest(&value, &groups, "it has no groups"));
        }
    }
    let target = if is_group? { KbTarget::Group(value) } else { KbTarget::Label(value) };
    Some(KbSignal { kb: kb?, target, matching })
}

/// Reads one rule of `classifiers`.
pub(super) fn classifier(
    rule: &Cursor<'_>,
    answerers: &Answerers<'_>,
    asker: Asker<'_>,
) -> Option<ClassifierSignal> {
    let labels = rule.some_strings("labels");
    let mut seen = BTreeSet::new();
    for (at, label) in rule.items("labels").iter().zip(&labels) {
        if !seen.insert(label) {
            at.error(code::DUPLICATE_NAME, format!("a second label is named `{label}`"));
        }
    }
    let is_llm = rule.needed("type").and_then(|_| rule.word("type", &[("local", false), ("llm", true)]))?;
    let kind = if is_llm {
        rule.required("model")?;
        let model = answerers.model(&rule.get("model")?, asker)?;
        ClassifierKind::Llm { model, instructions: rule.string("instructions").unwrap_or_default() }
    } else {
        let key = if rule.get("model_path").is_some() || rule.get("model").is_none() {
            "model_path"
        } else {
            "model"
        };
        ClassifierKind::Local { path: rule.required(key)? }
    };
    (!labels.is_empty()).then_some(ClassifierSignal { kind, labels })
}
