//! Support by shared words: no model, weak evidence.
//!
//! A sentence is supported as far as one sentence of the reference holds its content words, and contradicted where that
//! sentence holds at least half of them but other numbers, or a negation that it lacks. It sees neither synonyms nor
//! other languages, and languages without spaces only as whole runs of characters.

use super::sentences;
use super::{Support, SupportScorer};
use std::collections::{BTreeMap, BTreeSet};

/// Shorter words carry grammar, mostly.
const CONTENT_CHARS: usize = 4;
/// Share of content words from which two sentences speak of the same thing.
pub(super) const SAME_SUBJECT: f64 = 0.5;
/// Words that turn a sentence round, in the languages people ask in most.
const NEGATIONS: [&str; 19] = [
    "not", "no", "never", "none", "cannot", "without", "nicht", "kein", "keine", "nie", "ohne", "pas",
    "jamais", "sans", "nunca", "sin", "não", "non", "не",
];

/// The scorer.
#[derive(Debug, Clone, Copy, Default)]
pub struct OverlapScorer;

impl SupportScorer for OverlapScorer {
    fn support(&self, sentence: &str, reference: &str) -> Option<Support> {
        Some(KnownText::of(reference).support(sentence))
    }
}

/// A reference taken apart once, for many sentences that are held against it.
#[derive(Debug, Clone, Default)]
pub struct KnownText {
    sentences: Vec<Words>,
    /// The sentences that hold a content word or number.
    holders: BTreeMap<String, Vec<usize>>,
}

impl KnownText {
    /// That text.
    #[must_use]
    pub fn of(reference: &str) -> Self {
        let sentences = sentences::of(reference, usize::MAX, usize::MAX);
        let sentences: Vec<Words> = sentences.into_iter().map(Words::of).collect();
        let mut holders: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, words) in sentences.iter().enumerate() {
            for term in words.terms() {
                holders.entry(term.clone()).or_default().push(at);
            }
        }
        Self { sentences, holders }
    }

    /// How far it supports a sentence, as [`OverlapScorer`] says it.
    #[must_use]
    pub fn support(&self, sentence: &str) -> Support {
        let claim = Words::of(sentence);
        let mut held: BTreeMap<usize, usize> = BTreeMap::new();
        for at in claim.terms().filter_map(|term| self.holders.get(term)).flatten() {
            *held.entry(*at).or_default() += 1;
        }
        let closest = held.into_iter().max_by_key(|(_, count)| *count);
        let Some(known) = closest.and_then(|(at, _)| self.sentences.get(at)) else {
            return Support { entailed: 0.0, contradicted: 0.0 };
        };
        let recall = claim.recall(known);
        if recall >= SAME_SUBJECT && claim.conflicts(known) {
            Support { entailed: 0.0, contradicted: recall }
        } else {
            Support { entailed: recall, contradicted: 0.0 }
        }
    }
}

/// Content words and numbers of a text, folded.
pub(in crate::fusion) fn terms(text: &str) -> BTreeSet<String> {
    let Words { mut content, numbers, .. } = Words::of(text);
    content.extend(numbers);
    content
}

/// What a sentence is made of.
#[derive(Debug, Clone)]
pub(super) struct Words {
    content: BTreeSet<String>,
    numbers: BTreeSet<String>,
    negated: bool,
}

impl Words {
    pub(super) fn of(sentence: &str) -> Self {
        let folded = sentence.to_lowercase();
        let mut words =
            Self { content: BTreeSet::new(), numbers: BTreeSet::new(), negated: folded.contains("n't") };
        let apart = |c: char| !c.is_alphanumeric() && c != '.' && c != ',';
        for word in folded.split(apart).map(|word| word.trim_matches(['.', ','])).filter(|w| !w.is_empty()) {
            if word.starts_with(|c: char| c.is_ascii_digit()) {
                words.numbers.insert(word.replace(',', ""));
            } else if NEGATIONS.contains(&word) {
                words.negated = !words.negated;
            } else if word.chars().count() >= CONTENT_CHARS || !word.is_ascii() {
                words.content.insert(word.to_owned());
            }
        }
        words
    }

    fn terms(&self) -> impl Iterator<Item = &String> {
        self.content.iter().chain(&self.numbers)
    }

    /// The share of its content words and numbers that the other one holds; 0 where it has none.
    pub(super) fn recall(&self, other: &Self) -> f64 {
        let held = self.content.intersection(&other.content).count()
            + self.numbers.intersection(&other.numbers).count();
        held as f64 / (self.content.len() + self.numbers.len()).max(1) as f64
    }

    /// One says no where the other says yes, or both count and disagree.
    pub(super) fn conflicts(&self, other: &Self) -> bool {
        let both_count = !self.numbers.is_empty() && !other.numbers.is_empty();
        self.negated != other.negated || (both_count && self.numbers.is_disjoint(&other.numbers))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_numbers_and_negation_must_agree() {
        let known = "The bridge was opened in 1932. It spans the harbour of Sydney.";
        for (sentence, entailed, contradicted) in [
            ("The bridge was opened in 1932.", true, false),
            ("The bridge was opened in 1950.", false, true),
            ("The bridge was not opened in 1932.", false, true),
            ("It does not span the harbour of Sydney.", false, true),
            ("Penguins live in Antarctica.", false, false),
        ] {
            let support = OverlapScorer.support(sentence, known).unwrap();
            assert_eq!(
                (support.entailed >= 0.5, support.contradicted >= 0.5),
                (entailed, contradicted),
                "{sentence}"
            );
        }
    }
}
