//! Pairs of what people asked an assistant and a bank, from public sets of intents.
//!
//! An intent is not an equality: most gather questions about many dates, places and accounts, and some a wish together with
//! its contrary. So paraphrases come from a few intents that have no such slot, where nearly any answer to one question is
//! an answer to all, and near misses from questions of different intents that share the most words. It knows no encoder.
//! **Invariant:** the same files give the same pairs, and no question stands in two near misses.

use crate::cache_pairs::{Asked, Relation};
use crate::corpus::{self, Part};
use crate::fault::LabFault;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Intents of CLINC150 whose questions have no slot. Chosen by reading their questions, before anything was measured.
const WITHOUT_SLOTS: [&str; 10] = [
    "are_you_a_bot",
    "find_phone",
    "how_old_are_you",
    "meaning_of_life",
    "reset_settings",
    "user_name",
    "what_are_your_hobbies",
    "what_is_your_name",
    "what_song",
    "who_made_you",
];

/// Pairs of each such intent, at most.
const PARAPHRASES: usize = 50;

/// Near misses of each set, at most.
const NEAR_MISSES: usize = 500;

/// Questions of each intent among which near misses are looked for.
const QUESTIONS: usize = 30;

/// The pairs of one part of both sets.
///
/// # Errors
/// [`LabFault`]: a file is absent or broken.
pub(crate) fn pairs(data: &Path, part: Part) -> Result<Vec<Asked>, LabFault> {
    let (clinc, banking) = (corpus::clinc(data, part)?, corpus::banking(data, part)?);
    let mut all = paraphrases(&by_intent(&clinc));
    all.extend(near_misses(&by_intent(&clinc), Relation::OtherIntent));
    all.extend(near_misses(&by_intent(&banking), Relation::OtherBankingIntent));
    Ok(all)
}

/// Questions by intent, in the order of the file.
fn by_intent(rows: &[(String, String)]) -> BTreeMap<&str, Vec<&str>> {
    let mut all: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (text, intent) in rows {
        all.entry(intent).or_default().push(text.trim());
    }
    all
}

/// Each question of the first half of an intent, and one of the second.
fn paraphrases(intents: &BTreeMap<&str, Vec<&str>>) -> Vec<Asked> {
    let of = |name: &&str| {
        let questions = intents.get(*name).map(Vec::as_slice).unwrap_or_default();
        let (first, second) = questions.split_at(questions.len() / 2);
        first
            .iter()
            .zip(second)
            .filter(|(a, b)| a != b)
            .take(PARAPHRASES)
            .map(|(a, b)| asked(Relation::SameIntent, a, b))
    };
    WITHOUT_SLOTS.iter().flat_map(of).collect()
}

/// The questions of different intents that share the most words, each question once.
fn near_misses(intents: &BTreeMap<&str, Vec<&str>>, relation: Relation) -> Vec<Asked> {
    let questions: Vec<(&str, &str, BTreeSet<&str>)> = intents
        .iter()
        .flat_map(|(intent, texts)| texts.iter().take(QUESTIONS).map(|text| (*intent, *text, words(text))))
        .collect();
    let mut found: Vec<(f64, usize, usize)> = Vec::new();
    for (at, (intent, _, own)) in questions.iter().enumerate() {
        let others = questions.iter().enumerate().skip(at + 1).filter(|(_, it)| it.0 != *intent);
        let nearest = others.map(|(other, it)| (overlap(own, &it.2), at, other));
        found.extend(nearest.max_by(|a, b| a.0.total_cmp(&b.0).then(b.2.cmp(&a.2))));
    }
    found.sort_by(|a, b| b.0.total_cmp(&a.0).then((a.1, a.2).cmp(&(b.1, b.2))));
    let mut taken = BTreeSet::new();
    let mut pairs = Vec::new();
    for (_, a, b) in found {
        if pairs.len() < NEAR_MISSES
            && !taken.contains(&a)
            && !taken.contains(&b)
            && let (Some(kept), Some(other)) = (questions.get(a), questions.get(b))
        {
            taken.extend([a, b]);
            pairs.push(asked(relation, kept.1, other.1));
        }
    }
    pairs
}

fn asked(relation: Relation, kept: &str, asked: &str) -> Asked {
    Asked { relation, kept: kept.to_owned(), asked: asked.to_owned() }
}

fn words(text: &str) -> BTreeSet<&str> {
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
}

/// The words that both have, as a share of all words of either.
fn overlap(a: &BTreeSet<&str>, b: &BTreeSet<&str>) -> f64 {
    let shared = a.intersection(b).count() as f64;
    shared / (a.len() as f64 + b.len() as f64 - shared).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[(&str, &str)]) -> Vec<(String, String)> {
        rows.iter().map(|(text, intent)| ((*text).to_owned(), (*intent).to_owned())).collect()
    }

    #[test]
    fn near_misses_share_words_and_no_intent_and_each_question_stands_once() {
        let rows = rows(&[
            ("turn the light on", "on"),
            ("turn the light off", "off"),
            ("turn the radio off", "off"),
            ("what is the weather", "weather"),
        ]);
        let found = near_misses(&by_intent(&rows), Relation::OtherIntent);
        let pair = |it: &Asked| [it.kept.clone(), it.asked.clone()];
        assert_eq!(pair(&found[0]), ["turn the light off", "turn the light on"]);
        let all: Vec<String> = found.iter().flat_map(pair).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len(), "{all:?}");
    }

    #[test]
    fn paraphrases_come_from_intents_without_slots_only() {
        let rows = rows(&[
            ("who made you", "who_made_you"),
            ("who built you", "who_made_you"),
            ("fly me to rome", "book_flight"),
            ("fly me to oslo", "book_flight"),
        ]);
        let found = paraphrases(&by_intent(&rows));
        assert_eq!(found, [asked(Relation::SameIntent, "who made you", "who built you")]);
    }
}
