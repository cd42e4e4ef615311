//! How often the rules of entailment judge as a reader does.
//!
//! Three kinds of pairs: statements about texts of our own, drawn from a list of pairs; the statements that the check of
//! grounded answers is measured by; and questions in other words and their near misses, by which the response cache is. The
//! judge is the one that serves. **Invariant:** the same pairs on every machine, and no text of a dataset among them.

use crate::cache_pairs::{Half, Relation, pairs};
use crate::fault::LabFault;
use crate::halu;
use chorus_cache::guard::{Verdict, entailment};
use chorus_engine::entail::Alike;
use chorus_infer::TextEncoder;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

const NAME: &str = "nli_pairs.tsv";
const PAIRS: &str = include_str!("../data/nli_pairs.tsv");
/// Values of each list that a pair is drawn with.
const DRAWS: usize = 10;

/// A measurement of the judge.
#[derive(Debug, Clone, Copy, Default)]
pub struct EvalNli;

/// A text, a statement, and what a reader says.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    expected: Verdict,
    premise: String,
    hypothesis: String,
}

/// Verdicts of one set, by what was expected and what was said.
type Counts = BTreeMap<(Verdict, Verdict), usize>;

/// What was measured.
#[derive(Debug, Clone, PartialEq)]
pub struct NliReport {
    /// Sets, each with what the judge said by words alone and with the encoder.
    sets: Vec<(&'static str, Counts, Option<Counts>)>,
}

impl EvalNli {
    /// Measures by words alone, and with an encoder where one is given.
    ///
    /// # Errors
    /// [`LabFault`] for a line of a file that is not of its form.
    pub fn run(self, encoder: Option<&dyn TextEncoder>) -> Result<NliReport, LabFault> {
        let mut sets = Vec::new();
        for (name, pairs) in all()? {
            let words = count(&pairs, |_| None);
            let meaning = encoder
                .map(|encoder| count(&pairs, |pair| Alike::read(encoder, &pair.premise, &pair.hypothesis)));
            sets.push((name, words, meaning));
        }
        Ok(NliReport { sets })
    }
}

fn count(pairs: &BTreeSet<Pair>, alike: impl Fn(&Pair) -> Option<Alike>) -> Counts {
    let mut counts = Counts::new();
    for pair in pairs {
        let alike = alike(pair);
        let likeness = |one: &str, other: &str| alike.as_ref().map_or(0.0, |it| it.likeness(one, other));
        let said = entailment(&pair.premise, &pair.hypothesis, &likeness).verdict;
        *counts.entry((pair.expected, said)).or_default() += 1;
    }
    counts
}

fn all() -> Result<Vec<(&'static str, BTreeSet<Pair>)>, LabFault> {
    let (chosen_on, reported) = own()?;
    let asked: Vec<_> = [pairs(Half::Chosen)?, pairs(Half::Reported)?].concat();
    let asked = asked.into_iter().filter_map(|pair| {
        let expected = match pair.relation {
            Relation::Paraphrase => Verdict::Entailment,
            Relation::Negated | Relation::Number | Relation::Entity => Verdict::Contradiction,
            _ => return None,
        };
        Some(Pair { expected, premise: pair.kept, hypothesis: pair.asked })
    });
    let grounded = halu::cases().into_iter().filter_map(|case| {
        Some(Pair { expected: expected(case.kind)?, premise: case.material, hypothesis: case.answer })
    });
    Ok(vec![
        ("own pairs, the half that the rules were written by", chosen_on),
        ("own pairs, the other half", reported),
        ("statements about records", grounded.collect()),
        ("questions in other words, and near misses", asked.collect()),
    ])
}

/// What a reader says of a kind of answer, besides its records; none where it is no one thing.
fn expected(kind: &str) -> Option<Verdict> {
    Some(match kind {
        "another number"
        | "another unit's number"
        | "a negation"
        | "another value"
        | "another thing's number"
        | "another thing's owner" => Verdict::Contradiction,
        "an invention" | "an addition" | "something else" | "an opinion" => Verdict::Neutral,
        "a bare yes" | "a true one and a false one" => return None,
        _ => Verdict::Entailment,
    })
}

/// Our own pairs, alternate lines in one half and the other.
fn own() -> Result<(BTreeSet<Pair>, BTreeSet<Pair>), LabFault> {
    let mut lists: Vec<(&str, Vec<&str>)> = Vec::new();
    let (mut halves, mut number) = ((BTreeSet::new(), BTreeSet::new()), 0);
    let lines = PAIRS.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    for (at, line) in lines {
        let fields: Vec<&str> = line.split('\t').collect();
        match fields.as_slice() {
            [list, values] if list.starts_with('@') => {
                lists.push((list.trim_start_matches('@'), values.split('|').collect()));
            }
            [verdict, premise, hypothesis] => {
                let expected = Verdict::ALL.into_iter().find(|it| it.as_str() == *verdict);
                let expected =
                    expected.ok_or_else(|| LabFault::content(Path::new(NAME), at + 1, &"no such verdict"))?;
                let half = if number % 2 == 0 { &mut halves.0 } else { &mut halves.1 };
                half.extend((0..DRAWS).map(|draw| {
                    let fill = |text: &str| filled(text, &lists, draw + number);
                    Pair { expected, premise: fill(premise), hypothesis: fill(hypothesis) }
                }));
                number += 1;
            }
            _ => return Err(LabFault::content(Path::new(NAME), at + 1, &"expected three fields")),
        }
    }
    Ok(halves)
}

/// The text with a value in every place; `[name2]` is the one after that of `[name]`. Lists go round at different paces.
fn filled(text: &str, lists: &[(&str, Vec<&str>)], draw: usize) -> String {
    let mut text = text.to_owned();
    for (place, (name, values)) in lists.iter().enumerate() {
        let at = draw * (1 + place % 3) + draw / 6 + place;
        for (suffix, at) in [("2", at + 1), ("", at)] {
            if let Some(value) = values.get(at % values.len().max(1)) {
                text = text.replace(&format!("[{name}{suffix}]"), value);
            }
        }
    }
    text
}

/// The share of pairs that were judged as expected.
fn accuracy(counts: &Counts) -> f64 {
    let right: usize = counts.iter().filter(|((want, said), _)| want == said).map(|(_, count)| count).sum();
    right as f64 / counts.values().sum::<usize>().max(1) as f64
}

impl fmt::Display for NliReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, words, meaning) in &self.sets {
            for (how, counts) in [("words alone", Some(words)), ("with the encoder", meaning.as_ref())] {
                if let Some(counts) = counts {
                    table(f, name, how, counts)?;
                }
            }
        }
        Ok(())
    }
}

fn table(f: &mut fmt::Formatter<'_>, name: &str, how: &str, counts: &Counts) -> fmt::Result {
    writeln!(f, "{name}, {how}: accuracy {:.3}\n", accuracy(counts))?;
    writeln!(f, "| | pairs | entailment | neutral | contradiction | recall | precision |")?;
    writeln!(f, "|---|---|---|---|---|---|---|")?;
    for want in Verdict::ALL {
        let of = |said| counts.get(&(want, said)).copied().unwrap_or_default();
        let pairs: usize = Verdict::ALL.into_iter().map(of).sum();
        let said: usize = Verdict::ALL.into_iter().filter_map(|it| counts.get(&(it, want))).sum();
        let share = |of_all: usize| {
            if of_all == 0 { "–".to_owned() } else { format!("{:.3}", of(want) as f64 / of_all as f64) }
        };
        let [entailment, neutral, contradiction] = Verdict::ALL.map(of);
        writeln!(
            f,
            "| {} | {pairs} | {entailment} | {neutral} | {contradiction} | {} | {} |",
            want.as_str(),
            share(pairs),
            share(said)
        )?;
    }
    writeln!(f)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_whole_and_of_every_verdict() {
        let (chosen_on, reported) = own().unwrap();
        assert!(chosen_on.is_disjoint(&reported));
        for verdict in Verdict::ALL {
            let of = |half: &BTreeSet<Pair>| half.iter().filter(|pair| pair.expected == verdict).count();
            let count = of(&chosen_on) + of(&reported);
            assert!(count >= 150 && of(&reported) >= 75, "{verdict:?}: {count}");
        }
        let texts = chosen_on.iter().chain(&reported).flat_map(|pair| [&pair.premise, &pair.hypothesis]);
        assert!(texts.into_iter().all(|text| !text.contains(['[', ']'])));
    }

    #[test]
    fn words_alone_judge_most_pairs_as_a_reader_does() {
        let report = EvalNli.run(None).unwrap();
        assert_eq!(report, EvalNli.run(None).unwrap());
        for (name, words, _) in &report.sets[..3] {
            assert!(accuracy(words) > 0.8, "{name}: {words:?}");
        }
    }
}
