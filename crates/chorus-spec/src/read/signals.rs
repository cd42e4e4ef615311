//! Signal rules: every container under `signals`, one reader for the families that this version runs.
//!
//! It knows what can be asked, not who asks. **Invariant:** thresholds are in range and patterns compile, so that
//! extraction cannot fail for a reason that stands in the file.

use super::cursor::Cursor;
use super::names::{Answerers, CONTAINERS, Facts, unique};
use super::order::order;
use super::{rules, textual};
use crate::diagnostic::code;
use crate::{
    Aggregation, ComplexitySignal, ContextSignal, ConversationFeature, ConversationSignal,
    ConversationSource, DomainSignal, EmbeddingSignal, Family, FeatureKind, LanguageSignal, ModelId,
    ModelScore, Signal, SignalKind,
};
use std::collections::BTreeSet;

/// The categories of MMLU-Pro, which the domain head tells apart.
const CATEGORIES: [&str; 14] = [
    "biology",
    "business",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "health",
    "history",
    "law",
    "math",
    "other",
    "philosophy",
    "physics",
    "psychology",
];

/// Least confidence of a language when the rule names none (contract §1.4).
const LANGUAGE_THRESHOLD: f64 = 0.3;

/// Reads the `signals` of a `routing` block.
pub(super) fn read(routing: &Cursor<'_>, facts: &Facts, answerers: &Answerers<'_>) -> Vec<Signal> {
    let Some(signals) = routing.get("signals") else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (container, family) in CONTAINERS {
        let mut seen = BTreeSet::new();
        for rule in signals.items(container) {
            let Some(name) = rule.required("name") else {
                continue;
            };
            if unique(&mut seen, &rule, &format!("{family} rule"), &name) {
                let description = rule.string("description").unwrap_or_default();
                let kind = kind(family, &rule, &name, facts, answerers);
                all.extend(kind.map(|kind| Signal { name, description, kind, place: rule.place() }));
            }
        }
    }
    check_composers(&signals, &all);
    all
}

fn kind(
    family: Family,
    rule: &Cursor<'_>,
    name: &str,
    facts: &Facts,
    answerers: &Answerers<'_>,
) -> Option<SignalKind> {
    Some(match family {
        Family::Keyword => SignalKind::Keyword(textual::keyword(rule, name)?),
        Family::Structure => SignalKind::Structure(textual::structure(rule, name)?),
        Family::Context => SignalKind::Context(context(rule)?),
        Family::Language => SignalKind::Language(LanguageSignal {
            threshold: rule.float_in("threshold", 0.0, 1.0).unwrap_or(LANGUAGE_THRESHOLD),
        }),
        Family::Conversation => SignalKind::Conversation(conversation(rule)?),
        Family::Embedding => SignalKind::Embedding(embedding(rule)?),
        Family::Domain => SignalKind::Domain(domain(rule, name, answerers)),
        Family::Complexity => SignalKind::Complexity(complexity(rule, facts)?),
        other => SignalKind::Unsupported(other),
    })
}

fn context(rule: &Cursor<'_>) -> Option<ContextSignal> {
    let min_tokens = rule.tokens("min_tokens").unwrap_or(0);
    let max_tokens = rule.tokens("max_tokens").filter(|max| *max > 0);
    if max_tokens.is_some_and(|max| max < min_tokens) {
        rule.error(code::BAD_RANGE, "`max_tokens` is below `min_tokens`");
        return None;
    }
    Some(ContextSignal { min_tokens, max_tokens })
}

fn conversation(rule: &Cursor<'_>) -> Option<ConversationSignal> {
    const KINDS: [(&str, FeatureKind); 2] = [("exists", FeatureKind::Exists), ("count", FeatureKind::Count)];
    let feature = rule.needed("feature")?;
    let kind = feature.needed("type").and_then(|_| feature.word("type", &KINDS));
    let source = feature.needed("source").and_then(|source| conversation_source(&source));
    let predicate = rule.predicate();
    Some(ConversationSignal { feature: ConversationFeature { kind: kind?, source: source? }, predicate })
}

fn conversation_source(at: &Cursor<'_>) -> Option<ConversationSource> {
    const ROLES: [&str; 6] = ["user", "assistant", "system", "developer", "tool", "non_user"];
    const SOURCES: [(&str, usize); 6] = [
        ("message", 0),
        ("tool_definition", 1),
        ("assistant_tool_call", 2),
        ("assistant_tool_cycle", 3),
        ("active_tool_loop", 4),
        ("image_content", 5),
    ];
    at.needed("type")?;
    let role = at.word("role", &ROLES.map(|role| (role, role))).map(str::to_owned);
    Some(match at.word("type", &SOURCES)? {
        0 => ConversationSource::Message { role },
        1 => ConversationSource::ToolDefinition,
        2 => ConversationSource::AssistantToolCall,
        3 => ConversationSource::AssistantToolCycle,
        4 => ConversationSource::ActiveToolLoop,
        _ => ConversationSource::ImageContent,
    })
}

fn embedding(rule: &Cursor<'_>) -> Option<EmbeddingSignal> {
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

fn domain(rule: &Cursor<'_>, name: &str, answerers: &Answerers<'_>) -> DomainSignal {
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
    if !CATEGORIES.contains(&name) {
        let help = super::nearest::suggest(name, &CATEGORIES, "");
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

fn complexity(rule: &Cursor<'_>, facts: &Facts) -> Option<ComplexitySignal> {
    let threshold = rule.needed("threshold").and_then(|_| rule.float_in("threshold", 0.0, 1.0));
    let bank = |key| rule.needed(key).map(|at| at.some_strings("candidates")).unwrap_or_default();
    let (hard, easy) = (bank("hard"), bank("easy"));
    let composer = rules::optional(rule, "composer", facts);
    for key in composer.iter().flat_map(rules::facts_of).filter(|key| key.family == Family::Projection) {
        let message =
            format!("a composer is evaluated before projections, so it cannot ask for `{}`", key.name);
        rule.error(code::CYCLE, message);
    }
    Some(ComplexitySignal { threshold: threshold?, hard, easy, composer })
}

/// Composers may ask for other complexity rules, as long as none comes back to itself.
fn check_composers(signals: &Cursor<'_>, all: &[Signal]) {
    let rules: Vec<(&Signal, &ComplexitySignal)> = all
        .iter()
        .filter_map(|signal| match &signal.kind {
            SignalKind::Complexity(it) => Some((signal, it)),
            _ => None,
        })
        .collect();
    let needs: Vec<Vec<usize>> = rules
        .iter()
        .map(|(_, it)| {
            let asked: Vec<_> = it.composer.iter().flat_map(rules::facts_of).collect();
            let asks = |signal: &Signal| {
                asked.iter().any(|key| key.family == Family::Complexity && signal.emits().contains(&key.name))
            };
            (0..rules.len()).filter(|at| rules.get(*at).is_some_and(|(signal, _)| asks(signal))).collect()
        })
        .collect();
    if let Err(circle) = order(&needs) {
        let names: Vec<&str> =
            circle.iter().filter_map(|at| rules.get(*at)).map(|(s, _)| s.name.as_str()).collect();
        let place = signals
            .items("complexity")
            .into_iter()
            .find(|at| at.string("name").as_deref() == names.first().copied());
        place
            .unwrap_or_else(|| signals.clone())
            .error(code::CYCLE, format!("composers ask for each other: {}", names.join(" → ")));
    }
}
