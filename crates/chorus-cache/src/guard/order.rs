//! Which word asks, and which of two things goes to which.
//!
//! It knows a few words of a direction. **Invariant:** what it cannot read says nothing.

use super::words::{Kind, Words};
use std::collections::BTreeSet;

/// Words that ask, each with what it asks for.
const ASKING: [(&str, &str); 14] = [
    ("who", "who"),
    ("whom", "who"),
    ("when", "when"),
    ("where", "where"),
    ("why", "why"),
    ("wer", "who"),
    ("wann", "when"),
    ("wo", "where"),
    ("warum", "why"),
    ("qui", "who"),
    ("quand", "when"),
    ("où", "where"),
    ("pourquoi", "why"),
    ("dónde", "where"),
];

/// Several words that ask, those first that hold others.
const RUNS: [(&[&str], &str); 15] = [
    (&["what", "time"], "when"),
    (&["what", "year"], "when"),
    (&["what", "date"], "when"),
    (&["how", "much", "time"], "how long"),
    (&["how", "many", "minutes"], "how long"),
    (&["how", "many", "hours"], "how long"),
    (&["how", "many", "days"], "how long"),
    (&["how", "many", "weeks"], "how long"),
    (&["how", "many", "months"], "how long"),
    (&["how", "many", "years"], "how long"),
    (&["how", "long"], "how long"),
    (&["how", "many"], "how many"),
    (&["how", "much"], "how much"),
    (&["how", "come"], "why"),
    (&["how", "often"], "how often"),
];

/// Words between two things of which one goes to the other, or is measured by it.
const WAYS: [&str; 5] = ["to", "into", "than", "versus", "from"];

/// What a text asks for.
pub(super) fn asks(words: &Words) -> BTreeSet<&'static str> {
    let single = words.all().iter().filter_map(|word| ASKING.iter().find(|(asks, _)| *asks == word.folded));
    // The longest expression tells what is asked for.
    let run = RUNS.iter().find(|(run, _)| words.holds(run));
    single.map(|(_, what)| *what).chain(run.map(|(_, what)| *what)).collect()
}

/// Pairs of things with a way between them, as (from, to): the nearest word of meaning on either side.
pub(super) fn ways(words: &Words) -> BTreeSet<(String, String)> {
    let all = words.all();
    let mut found = BTreeSet::new();
    for (at, word) in all.iter().enumerate() {
        if !WAYS.contains(&word.folded.as_str()) {
            continue;
        }
        let before = all.get(..at).unwrap_or_default().iter().rev().find(|it| it.kind == Kind::Content);
        let after = all.get(at + 1..).unwrap_or_default().iter().find(|it| it.kind == Kind::Content);
        if let (Some(before), Some(after)) = (before, after) {
            let pair = (before.stem.clone(), after.stem.clone());
            found.insert(if word.folded == "from" { (pair.1, pair.0) } else { pair });
        }
    }
    if let (Some(first), Some(last)) = (compared(all), all.iter().rev().find(|it| it.kind == Kind::Content))
        && words.holds(&["than"])
    {
        found.insert((first, last.stem.clone()));
    }
    found
}

/// Whether one text has a way that the other has only the other way round; a way there and back says nothing.
pub(super) fn are_reversed(a: &BTreeSet<(String, String)>, b: &BTreeSet<(String, String)>) -> bool {
    a.iter().any(|way| {
        let back = (way.1.clone(), way.0.clone());
        b.contains(&back) && !b.contains(way) && !a.contains(&back)
    })
}

/// The first word of meaning, which `than` measures.
fn compared(all: &[super::words::Word]) -> Option<String> {
    all.iter().find(|word| word.kind == Kind::Content).map(|word| word.stem.clone())
}
