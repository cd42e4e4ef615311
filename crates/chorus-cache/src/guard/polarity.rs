//! "Not", and words of which one is the opposite of the other.
//!
//! It knows lists of words. **Invariant:** two texts are opposite only where one holds a pole that the other lacks, and
//! lacks the other one.

use super::words::{Words, lines, stem};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

/// Words that turn a sentence into its contrary.
const NEGATIONS: [&str; 30] = [
    "avoid",
    "avoids",
    "avoiding",
    "avoided",
    "impossible",
    "unable",
    "not",
    "no",
    "never",
    "without",
    "none",
    "nobody",
    "nothing",
    "neither",
    "nor",
    "cannot",
    "except",
    "unless",
    "nicht",
    "kein",
    "keine",
    "keinen",
    "ohne",
    "nie",
    "pas",
    "jamais",
    "sans",
    "nunca",
    "sin",
    "non",
];

/// One axis a line: the words of one pole, a bar, the words of the other; words joined by `+` stand side by side, those
/// joined by `*` at most four words apart; `!` before an axis says that it restricts.
const AXES: &str = include_str!("opposites.txt");

/// Words that negate what follows; `neither … nor` is one.
pub(super) fn negations(words: &Words) -> usize {
    let is_second = |folded: &str| folded == "nor" && words.holds(&["neither"]);
    words.all().iter().filter(|word| is_negation(&word.folded) && !is_second(&word.folded)).count()
}

/// Whether a word negates what follows.
pub(super) fn is_negation(folded: &str) -> bool {
    NEGATIONS.contains(&folded)
}

/// The poles that a text speaks of, each an axis and whether it is the first of it, with the stems of the words that do.
pub(super) type Poles = BTreeMap<(usize, bool), BTreeSet<String>>;

/// The poles that a text speaks of.
pub(super) fn poles(words: &Words) -> Poles {
    let axes = axes();
    let mut found = Poles::new();
    for word in words.all() {
        let poles = axes.words.get(word.folded.as_str()).or_else(|| axes.words.get(word.stem.as_str()));
        for pole in poles.into_iter().flatten() {
            found.entry(*pole).or_default().insert(word.stem.clone());
        }
    }
    for (run, pole) in axes.runs.iter().filter(|(run, _)| words.holds(run)) {
        found.entry(*pole).or_default().extend(run.iter().map(|word| stem(word)));
    }
    for ((first, last), pole) in axes.apart.iter().filter(|((first, last), _)| words.holds_apart(first, last))
    {
        found.entry(*pole).or_default().extend([stem(first), stem(last)]);
    }
    found
}

/// Whether one speaks, in a word of meaning, of an axis that the other does not speak of: a restriction that only one has.
pub(super) fn restricts(a: &Poles, b: &Poles, words: &Words) -> bool {
    let is_meant = |stems: &BTreeSet<String>| stems.iter().any(|stem| words.means(stem));
    let all = axes();
    a.iter().any(|(&(axis, pole), stems)| {
        all.restricting.contains(&axis)
            && !b.contains_key(&(axis, pole))
            && !b.contains_key(&(axis, !pole))
            && is_meant(stems)
    })
}

/// Whether one speaks of one pole of an axis and the other of the other.
pub(super) fn are_opposite(a: &Poles, b: &Poles) -> bool {
    let only =
        |here: &Poles, axis, pole| here.contains_key(&(axis, pole)) && !here.contains_key(&(axis, !pole));
    a.keys().any(|&(axis, pole)| only(a, axis, pole) && only(b, axis, !pole))
}

/// The words of one text that say the opposite of what the other says.
pub(super) fn opposed<'a>(a: &'a Poles, b: &Poles) -> BTreeSet<&'a str> {
    let against = a.iter().filter(|((axis, pole), _)| b.contains_key(&(*axis, !pole)));
    against.flat_map(|(_, words)| words).map(String::as_str).collect()
}

/// The words of one text that say what the other says with words of the same pole.
pub(super) fn shared<'a>(a: &'a Poles, b: &Poles) -> BTreeSet<&'a str> {
    let both = a.iter().filter(|(pole, _)| b.contains_key(pole));
    both.flat_map(|(_, words)| words).map(String::as_str).collect()
}

/// An axis, and whether it is its first pole.
type Pole = (usize, bool);
/// The first and the last word of an expression.
type Ends = (&'static str, &'static str);

#[derive(Default)]
struct Axes {
    words: BTreeMap<&'static str, Vec<Pole>>,
    runs: Vec<(Vec<&'static str>, Pole)>,
    apart: Vec<(Ends, Pole)>,
    restricting: BTreeSet<usize>,
}

fn axes() -> &'static Axes {
    static AXES_READ: OnceLock<Axes> = OnceLock::new();
    AXES_READ.get_or_init(|| {
        let mut axes = Axes::default();
        for (axis, line) in lines(AXES).enumerate() {
            let line = match line.strip_prefix('!') {
                Some(line) => {
                    axes.restricting.insert(axis);
                    line
                }
                None => line,
            };
            let (first, second) = line.split_once('|').unwrap_or((line, ""));
            for (words, pole) in [(first, true), (second, false)] {
                for word in words.split_whitespace() {
                    if word.contains('+') {
                        axes.runs.push((word.split('+').collect(), (axis, pole)));
                    } else if let Some(ends) = word.split_once('*') {
                        axes.apart.push((ends, (axis, pole)));
                    } else {
                        axes.words.entry(word).or_default().push((axis, pole));
                    }
                }
            }
        }
        axes
    })
}
