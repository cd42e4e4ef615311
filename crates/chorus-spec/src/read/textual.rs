//! Signal rules over words and patterns: `keywords` and `structure`.
//!
//! It compiles patterns to check them and throws the result away: extraction compiles its own.

use super::cursor::Cursor;
use crate::diagnostic::code;
use crate::{
    FeatureKind, KeywordMethod, KeywordOperator, KeywordSignal, StructureFeature, StructureSignal,
    StructureSource,
};
use regex::RegexBuilder;

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
/// Above this a `fuzzy_threshold` is a percentage, from files of another age, not a distance.
const FUZZY_DISTANCE_MOST: i64 = 20;

/// Reads one rule of `keywords`.
pub(super) fn keyword(rule: &Cursor<'_>, name: &str) -> Option<KeywordSignal> {
    const OPERATORS: [(&str, KeywordOperator); 3] =
        [("OR", KeywordOperator::Or), ("AND", KeywordOperator::And), ("NOR", KeywordOperator::Nor)];
    let operator = rule.word("operator", &OPERATORS).unwrap_or_default();
    let case_sensitive = rule.boolean("case_sensitive").unwrap_or(false);
    let method = keyword_method(rule)?;
    let keywords = rule.some_strings("keywords");
    for word in rule.items("keywords") {
        let Some(text) = word.node().text() else { continue };
        if text.trim().is_empty() {
            word.warn(code::NEVER_MATCHES, format!("a blank keyword of `{name}` can never match"));
        } else if method == KeywordMethod::Regex {
            check_pattern(&word, &format!("keyword rule `{name}`"), text, case_sensitive);
        }
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
            check_pattern(&at.get("pattern")?, &format!("structure rule `{name}`"), &pattern, case_sensitive);
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

fn check_pattern(at: &Cursor<'_>, owner: &str, pattern: &str, case_sensitive: bool) {
    if let Err(error) = RegexBuilder::new(pattern).case_insensitive(!case_sensitive).build() {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
        at.error(code::BAD_PATTERN, format!("{owner}: the pattern `{pattern}` does not compile: {reason}"));
    }
}
