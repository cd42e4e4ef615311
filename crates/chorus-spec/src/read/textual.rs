//! Signal rules over words, patterns and counts: `keywords`, `structure`, `context`, `language`, `conversation`.
//!
//! It knows the options of each, not how a text is looked at.

use super::cursor::Cursor;
use super::patterns;
use crate::diagnostic::code;
use crate::{
    ContextSignal, ConversationFeature, ConversationSignal, ConversationSource, FeatureKind, KeywordMethod,
    KeywordOperator, KeywordSignal, LanguageSignal, StructureFeature, StructureSignal, StructureSource,
};

/// Default least BM25 score (contract §1.4).
const BM25_THRESHOLD: f64 = 0.1;
/// Default least n-gram similarity (contract §1.4).
const NGRAM_THRESHOLD: f64 = 0.4;
/// Default characters a gram (contract §1.4).
const NGRAM_ARITY: i64 = 3;
/// Longest gram that means anything for single words.
const NGRAM_ARITY_MOST: i64 = 10;
/// Default greatest edit distance (contract §1.4).
const FUZZY_DISTANCE: i64 = 2;
/// Greatest edit distance: a greater `fuzzy_threshold` is a percentage, from files of another age.
const FUZZY_DISTANCE_MOST: i64 = 20;
/// Least confidence of a language when the rule names none (contract §1.4).
const LANGUAGE_THRESHOLD: f64 = 0.3;

/// Most keywords of one rule.
const KEYWORDS_MOST: usize = 10_000;

/// Reads one rule of `keywords`.
pub(super) fn keyword(rule: &Cursor<'_>, name: &str) -> Option<KeywordSignal> {
    const OPERATORS: [(&str, KeywordOperator); 3] =
        [("OR", KeywordOperator::Or), ("AND", KeywordOperator::And), ("NOR", KeywordOperator::Nor)];
    let operator = rule.word("operator", &OPERATORS).unwrap_or_default();
    let case_sensitive = rule.boolean("case_sensitive").unwrap_or(false);
    let method = keyword_method(rule)?;
    let keywords = rule.some_strings("keywords");
    for word in rule.items("keywords") {
        if word.node().text().is_some_and(|text| text.trim().is_empty()) {
            word.warn(code::NEVER_MATCHES, format!("a blank keyword of `{name}` can never match"));
        }
    }
    if let Some(list) = rule.get("keywords").filter(|_| method == KeywordMethod::Regex) {
        patterns::check(&list.elements(), &format!("keyword rule `{name}`"), case_sensitive);
    }
    if keywords.len() > KEYWORDS_MOST {
        let message = format!("`{name}` has {} keywords; {KEYWORDS_MOST} are the most", keywords.len());
        rule.error(code::BAD_RANGE, message);
    }
    Some(KeywordSignal { operator, keywords, case_sensitive, method })
}

fn keyword_method(rule: &Cursor<'_>) -> Option<KeywordMethod> {
    const METHODS: [&str; 4] = ["regex", "bm25", "ngram", "fuzzy"];
    let fuzzy_match = rule.boolean("fuzzy_match").unwrap_or(false);
    let method = match rule.get("method") {
        Some(_) => rule.word("method", &METHODS.map(|word| (word, word)))?,
        None if fuzzy_match => "fuzzy",
        None => "literal",
    };
    if fuzzy_match && method != "fuzzy" {
        rule.warn(code::UNUSED, format!("`fuzzy_match` has no effect beside `method: {method}`"));
    }
    Some(match method {
        "regex" => KeywordMethod::Regex,
        "bm25" => KeywordMethod::Bm25 {
            threshold: rule.float_in("bm25_threshold", 0.0, f64::MAX).unwrap_or(BM25_THRESHOLD),
        },
        "ngram" => KeywordMethod::Ngram {
            threshold: rule.float_in("ngram_threshold", 0.0, 1.0).unwrap_or(NGRAM_THRESHOLD),
            arity: to_usize(rule.integer_in("ngram_arity", 1, NGRAM_ARITY_MOST).unwrap_or(NGRAM_ARITY)),
        },
        "fuzzy" => KeywordMethod::Fuzzy { max_distance: fuzzy_distance(rule) },
        _ => KeywordMethod::Literal,
    })
}

fn fuzzy_distance(rule: &Cursor<'_>) -> usize {
    let written = rule.integer_in("fuzzy_threshold", 0, i64::MAX).unwrap_or(FUZZY_DISTANCE);
    if written <= FUZZY_DISTANCE_MOST {
        return to_usize(written);
    }
    if let Some(at) = rule.get("fuzzy_threshold") {
        let help = format!("write the greatest edit distance; {FUZZY_DISTANCE} is used");
        at.warn_help(code::BAD_RANGE, format!("`fuzzy_threshold: {written}` looks like a percentage"), help);
    }
    to_usize(FUZZY_DISTANCE)
}

fn to_usize(number: i64) -> usize {
    usize::try_from(number).unwrap_or(0)
}

/// Reads one rule of `structure`.
pub(super) fn structure(rule: &Cursor<'_>, name: &str) -> Option<StructureSignal> {
    const KINDS: [(&str, FeatureKind); 4] = [
        ("exists", FeatureKind::Exists),
        ("count", FeatureKind::Count),
        ("density", FeatureKind::Density),
        ("sequence", FeatureKind::Sequence),
    ];
    let feature = rule.needed("feature")?;
    let kind = feature.needed("type").and_then(|_| feature.word("type", &KINDS));
    let source = feature.needed("source").and_then(|source| structure_source(&source, name));
    let predicate = rule.predicate();
    let (kind, source) = (kind?, source?);
    if kind == FeatureKind::Sequence && !matches!(source, StructureSource::Sequence { .. }) {
        feature.error(code::BAD_VALUE, "a `sequence` feature needs a source of type `sequence`");
        return None;
    }
    Some(StructureSignal { feature: StructureFeature { kind, source }, predicate })
}

fn structure_source(at: &Cursor<'_>, name: &str) -> Option<StructureSource> {
    const SOURCES: [&str; 4] = ["regex", "keyword_set", "sequence", "text_bytes"];
    at.needed("type")?;
    let case_sensitive = at.boolean("case_sensitive").unwrap_or(false);
    Some(match at.word("type", &SOURCES.map(|word| (word, word)))? {
        "regex" => {
            let pattern = at.required("pattern")?;
            patterns::check(&[at.get("pattern")?], &format!("structure rule `{name}`"), case_sensitive);
            StructureSource::Regex { pattern, case_sensitive }
        }
        "keyword_set" => {
            StructureSource::KeywordSet { keywords: at.some_strings("keywords"), case_sensitive }
        }
        "sequence" => StructureSource::Sequence { sequences: sequences(at)?, case_sensitive },
        _ => StructureSource::TextBytes,
    })
}

fn sequences(at: &Cursor<'_>) -> Option<Vec<Vec<String>>> {
    let list = at.needed("sequences")?;
    let sequences: Vec<Vec<String>> = list.elements().iter().map(Cursor::texts).collect();
    if sequences.is_empty() || sequences.iter().any(Vec::is_empty) {
        list.error(code::MISSING_KEY, "`sequences` is a list of lists of phrases, none of them empty");
        return None;
    }
    Some(sequences)
}

/// Reads one rule of `context`.
pub(super) fn context(rule: &Cursor<'_>) -> Option<ContextSignal> {
    let min_tokens = rule.tokens("min_tokens").unwrap_or(0);
    let max_tokens = rule.tokens("max_tokens").filter(|max| *max > 0);
    if max_tokens.is_some_and(|max| max < min_tokens) {
        rule.error(code::BAD_RANGE, "`max_tokens` is below `min_tokens`");
        return None;
    }
    Some(ContextSignal { min_tokens, max_tokens })
}

/// Reads one rule of `language`; its name is the code.
pub(super) fn language(rule: &Cursor<'_>) -> LanguageSignal {
    LanguageSignal { threshold: rule.float_in("threshold", 0.0, 1.0).unwrap_or(LANGUAGE_THRESHOLD) }
}

/// Reads one rule of `conversation`.
pub(super) fn conversation(rule: &Cursor<'_>) -> Option<ConversationSignal> {
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
