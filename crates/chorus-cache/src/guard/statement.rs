//! A sentence as a statement: what it says, and how far it only supposes it.
//!
//! It knows short lists of words that suppose, count or bound. **Invariant:** it judges nothing by itself; two statements are
//! compared by [`entailment`](super::entailment).

use super::numbers::Bound;
use super::words::{Kind, Word, lines};
use super::{Reading, numbers, polarity};
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// Words that suppose, plan or report, rather than state.
const SUPPOSING: [&str; 38] = [
    "may",
    "might",
    "could",
    "perhaps",
    "maybe",
    "possibly",
    "probably",
    "likely",
    "will",
    "shall",
    "would",
    "should",
    "plan",
    "plans",
    "planned",
    "hope",
    "hopes",
    "hoped",
    "want",
    "wants",
    "wanted",
    "intend",
    "intends",
    "intended",
    "expect",
    "expects",
    "expected",
    "consider",
    "considers",
    "believe",
    "believes",
    "think",
    "thinks",
    "claim",
    "claims",
    "rumoured",
    "allegedly",
    "supposedly",
];
/// Words that make a sentence hold only in a case.
const CONDITIONS: [&str; 4] = ["if", "unless", "whether", "should"];
/// Words that speak of all.
const ALL: [&str; 6] = ["all", "every", "each", "always", "everyone", "everybody"];
/// Where a sentence goes on with something else.
const BREAKS: [&str; 9] =
    ["but", "although", "though", "because", "while", "whereas", "which", "who", "however"];
/// Expressions that bound a number from below, and from above.
const ABOVE: [&[&str]; 5] = [&["more", "than"], &["over"], &["at", "least"], &["above"], &["exceeds"]];
const BELOW: [&[&str]; 6] =
    [&["less", "than"], &["fewer", "than"], &["under"], &["at", "most"], &["below"], &["up", "to"]];
/// Words of those expressions, which are no words of meaning.
const BOUNDING: [&str; 10] =
    ["more", "less", "fewer", "least", "most", "over", "above", "under", "below", "exceeds"];
/// Words of which a thing has one at a time, a kind a line.
const VALUES: &str = include_str!("one_of_a_kind.txt");

/// A sentence taken apart.
#[derive(Debug, Clone)]
pub(super) struct Statement {
    pub(super) reading: Reading,
    content: BTreeSet<String>,
}

impl Statement {
    pub(super) fn of(text: &str) -> Self {
        let reading = Reading::of(text, None);
        let words = reading.words.all().iter();
        let meant = words.filter(|word| word.kind == Kind::Content && !numbers::is_part(&word.folded));
        let meant = meant.filter(|word| !polarity::is_negation(&word.folded) && !is_listed(word));
        let content = meant.map(|word| word.stem.clone()).collect();
        Self { content, reading }
    }

    /// Whether there is a word of meaning or a number in it.
    pub(super) fn says_something(&self) -> bool {
        !self.content.is_empty()
    }

    /// How many of its words and numbers a text has.
    pub(super) fn shared(&self, text: &Reading) -> usize {
        let numbers =
            self.reading.numbers.iter().filter(|it| text.numbers.iter().any(|other| it.fits(other)));
        self.content.iter().filter(|stem| text.words.means(stem)).count() + numbers.count()
    }

    /// The share of its words, besides some, that a text has, in 0..=1: the word itself, or one of the same pole. 1 where
    /// there is no other word.
    pub(super) fn covered(&self, text: &Reading, besides: &[&str]) -> f64 {
        let said = polarity::shared(&self.reading.poles, &text.poles);
        let asked = self.content.iter().filter(|stem| !besides.contains(&stem.as_str()));
        let (count, held) = asked.fold((0_usize, 0_usize), |(count, held), stem| {
            let has = text.words.means(stem) || said.contains(stem.as_str());
            (count + 1, held + usize::from(has))
        });
        if count == 0 { 1.0 } else { held as f64 / count as f64 }
    }

    /// Whether it supposes what another one states. What could not be is stated.
    pub(super) fn supposes(&self, other: &Self) -> bool {
        let is_negated = self.reading.negations > 0;
        let supposing = |word: &str| SUPPOSING.contains(&word) && !(is_negated && word == "could");
        self.folded().any(supposing) && !other.folded().any(supposing)
    }

    /// Whether it says the same of two things the other way round: its words are those of a sentence but for two that have
    /// changed places. Things that stand side by side, and who something is done by, may.
    pub(super) fn is_turned(&self, sentence: &Self) -> bool {
        let joins = |it: &Self, words: &[&str]| it.folded().any(|word| words.contains(&word));
        let passive = joins(self, &["by"]) != joins(sentence, &["by"]);
        if passive || joins(self, &["and", "or", "with"]) {
            return false;
        }
        let (ours, theirs) = (self.in_order(), sentence.in_order());
        let moved: Vec<(&&str, &&str)> = ours.iter().zip(&theirs).filter(|(a, b)| a != b).collect();
        ours.len() == theirs.len() && matches!(moved.as_slice(), [(a, b), (c, d)] if a == d && b == c)
    }

    /// Whether it joins two parts.
    pub(super) fn joins(&self) -> bool {
        self.folded().any(|word| word == "and")
    }

    /// Whether it begins with another of the things that a sentence speaks of, and both speak of both.
    pub(super) fn begins_elsewhere(&self, sentence: &Self) -> bool {
        let (ours, theirs) = (self.in_order(), sentence.in_order());
        let (Some(ours), Some(theirs)) = (ours.first(), theirs.first()) else { return false };
        ours != theirs && self.reading.words.means(theirs) && sentence.reading.words.means(ours)
    }

    /// The word of meaning that it ends on.
    pub(super) fn end(&self) -> Option<&str> {
        self.in_order().last().copied()
    }

    /// Its words of meaning in the order of the sentence.
    fn in_order(&self) -> Vec<&str> {
        let words = self.reading.words.all().iter().map(|word| word.stem.as_str());
        words.filter(|stem| self.content.contains(*stem)).collect()
    }

    /// Whether it holds only in a case that another one does not name.
    pub(super) fn is_conditional(&self, other: &Self) -> bool {
        let holds = |it: &Self| it.folded().any(|word| CONDITIONS.contains(&word));
        holds(self) && !holds(other)
    }

    /// How its number is bounded.
    pub(super) fn bound(&self) -> Option<Bound> {
        let holds = |runs: &[&[&str]]| runs.iter().any(|run| self.reading.words.holds(run));
        match (holds(&ABOVE), holds(&BELOW)) {
            (true, false) => Some(Bound::Above),
            (false, true) => Some(Bound::Below),
            _ => None,
        }
    }

    /// What it says beyond the words of a text: of all where the text speaks of some, of nothing else, or of a number that the
    /// text does not have.
    pub(super) fn exceeds(&self, sentence: &Self, text: &Reading) -> Option<&'static str> {
        let of_all = |it: &Self| it.folded().any(|word| ALL.contains(&word));
        let only = |it: &Self| it.folded().any(|word| matches!(word, "only" | "just"));
        let numbers = &self.reading.numbers;
        let unknown = numbers.iter().any(|it| !text.numbers.iter().any(|other| it.fits(other)));
        let bounded = self.bound().is_some() && !text.numbers.is_empty();
        if of_all(self) && !of_all(sentence) {
            Some("the text does not speak of all")
        } else if only(self) && !only(sentence) {
            Some("the text leaves room for more")
        } else if unknown && !bounded {
            Some("the text does not have the number")
        } else {
            None
        }
    }

    /// The word of it that stands where a sentence has another one of the same kind, or another name; and which of the two.
    pub(super) fn replaced(&self, sentence: &Self) -> Option<(&str, &'static str)> {
        let missing = || self.content.iter().filter(|stem| !sentence.reading.words.means(stem));
        let value = missing().find(|stem| {
            let mut kinds = kinds().iter().filter(|kind| kind.contains(stem.as_str()));
            kinds.any(|kind| {
                sentence
                    .content
                    .iter()
                    .any(|other| kind.contains(other.as_str()) && !self.content.contains(other))
            })
        });
        if let Some(value) = value {
            return Some((value, "another value of its kind"));
        }
        let name = missing().find(|stem| {
            self.is_name(stem)
                && sentence.content.iter().any(|other| {
                    sentence.is_name(other)
                        && !self.reading.words.means(other)
                        && self.reading.words.stands_like(stem, &sentence.reading.words, other)
                })
        });
        name.map(|name| (name.as_str(), "another name"))
    }

    /// Whether a word of it is a name that opens no sentence: who does something may be one of several.
    fn is_name(&self, stem: &str) -> bool {
        let mut words = self.reading.words.all().iter().filter(|word| word.stem == *stem && !word.first);
        words.any(|word| word.written.chars().next().is_some_and(char::is_uppercase))
    }

    fn folded(&self) -> impl Iterator<Item = &str> {
        self.reading.words.all().iter().map(|word| word.folded.as_str())
    }
}

/// Words that are looked at by themselves, and therefore are no words of meaning here.
fn is_listed(word: &Word) -> bool {
    let word = word.folded.as_str();
    [&SUPPOSING[..], &ALL, &BREAKS, &BOUNDING].iter().any(|list| list.contains(&word))
}

/// The kinds of which a thing has one value at a time, as stems.
fn kinds() -> &'static [BTreeSet<String>] {
    static KINDS: OnceLock<Vec<BTreeSet<String>>> = OnceLock::new();
    KINDS.get_or_init(|| {
        lines(VALUES).map(|line| line.split_whitespace().map(super::words::stem).collect()).collect()
    })
}

/// The sentences of a text that state or ask something; a semicolon ends one too.
pub fn sentences(text: &str) -> Vec<&str> {
    sentences_by(text, &['.', '!', '?', ';'])
}

/// The sentences of a text that state or ask something, by the marks that end one where a blank follows. A line of marks
/// alone, such as a rule or a fence, is none.
pub fn sentences_by<'a>(text: &'a str, marks: &[char]) -> Vec<&'a str> {
    let mut found = Vec::new();
    for line in text.lines() {
        let mut rest = line.trim();
        while !rest.is_empty() {
            let (sentence, after) = rest.split_at(end_of_sentence(rest, marks));
            found.push(sentence.trim());
            rest = after.trim_start();
        }
    }
    found.retain(|sentence| sentence.chars().any(char::is_alphanumeric));
    found
}

/// After a mark that a blank follows, so that `3.5` and `e.g.x` stay whole; or the end.
fn end_of_sentence(text: &str, marks: &[char]) -> usize {
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let ends = marks.contains(&c) && chars.peek().is_none_or(|(_, next)| next.is_whitespace());
        if ends || matches!(c, '。' | '！' | '？') {
            return at + c.len_utf8();
        }
    }
    text.len()
}

/// The parts of a sentence between commas, and before words that go on with something else.
pub(super) fn clauses(sentence: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for part in sentence.split([',', ':', '–', '—', '(', ')']) {
        let mut start = 0;
        let mut at = 0;
        for piece in part.split_inclusive(' ') {
            let word = piece.trim().to_lowercase();
            if BREAKS.contains(&word.as_str()) {
                found.push(part.get(start..at).unwrap_or_default());
                start = at;
            }
            at += piece.len();
        }
        found.push(part.get(start..).unwrap_or_default());
    }
    found.retain(|clause| clause.chars().any(char::is_alphanumeric));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_comes_apart_at_its_joints() {
        let found = clauses("The shop, which is small, sells 3.5 kg but no bread.");
        let found: Vec<&str> = found.into_iter().map(str::trim).collect();
        assert_eq!(found, ["The shop", "which is small", "sells 3.5 kg", "but no bread."]);
        assert_eq!(sentences("It is 3.5 m. Is it?\n---\nYes!"), ["It is 3.5 m.", "Is it?", "Yes!"]);
    }

    #[test]
    fn kinds_are_kinds_of_stems() {
        for (one, other, are_of_a_kind) in [("green", "white", true), ("wooden", "green", false)] {
            let (one, other) = (super::super::words::stem(one), super::super::words::stem(other));
            assert_eq!(kinds().iter().any(|it| it.contains(&one) && it.contains(&other)), are_of_a_kind);
        }
    }

    #[test]
    fn bounds_are_read() {
        for (text, bound) in [
            ("It has more than 5 rooms.", Some(Bound::Above)),
            ("It has at most 5 rooms.", Some(Bound::Below)),
            ("It has 5 rooms.", None),
        ] {
            assert_eq!(Statement::of(text).bound(), bound, "{text}");
        }
    }
}
