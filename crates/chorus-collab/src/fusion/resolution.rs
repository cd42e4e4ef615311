//! What the final answer did about the panel's disagreements and gaps, told from its words alone.
//!
//! It asks no model. **Invariant:** a stance counts as followed only where the answer holds more of the words that are
//! the stance's own than of any other's; where words do not tell, nobody is named.

use super::analysis::{Finding, Findings};
use super::grounding::terms;
use serde::Serialize;
use std::collections::BTreeSet;

/// Share of a stance's own words from which the answer takes it up.
const TAKEN_UP_FROM: f64 = 0.5;

/// The diagnostics of one run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Resolution {
    /// One a contradiction.
    pub disagreements: Vec<Disagreement>,
    /// What no member covers.
    pub gaps: Vec<Gap>,
}

/// One contradiction between members.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Disagreement {
    /// About what.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub topic: String,
    /// Who holds what.
    pub stances: Vec<StanceFate>,
    /// The stance that the answer follows, from 0; absent where its words do not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub followed: Option<usize>,
}

/// One position, and what became of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StanceFate {
    /// Whose; absent when the judge did not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it holds.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stance: String,
    /// Share of its own words that the answer holds, in 0..=1; absent where it has no words of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub taken_up: Option<f64>,
}

/// A point that no member covers.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Gap {
    /// The point.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub point: String,
    /// Whether the answer has no word for most of it.
    pub remains: bool,
}

impl Resolution {
    /// The same without a word of any model's.
    pub(super) fn bare(&self) -> Self {
        let mut bare = self.clone();
        for disagreement in &mut bare.disagreements {
            disagreement.topic.clear();
            disagreement.stances.iter_mut().for_each(|fate| fate.stance.clear());
        }
        bare.gaps.iter_mut().for_each(|gap| gap.point.clear());
        bare
    }

    /// What `answer` did about `findings`.
    pub(super) fn of(findings: &Findings, answer: &str) -> Self {
        let said = terms(answer);
        let disagreements = findings.contradictions.iter().filter_map(|finding| disagreement(finding, &said));
        let gaps = findings.blind_spots.iter().filter_map(|finding| match finding {
            Finding::Text(point) | Finding::Coverage { point, .. } => {
                let taken_up = share(&terms(point), &said).unwrap_or_default();
                Some(Gap { point: point.clone(), remains: taken_up < TAKEN_UP_FROM })
            }
            Finding::Contradiction { .. } | Finding::Insight { .. } => None,
        });
        Self { disagreements: disagreements.collect(), gaps: gaps.collect() }
    }
}

fn disagreement(finding: &Finding, said: &BTreeSet<String>) -> Option<Disagreement> {
    let Finding::Contradiction { topic, stances } = finding else { return None };
    let words: Vec<BTreeSet<String>> = stances.iter().map(|stance| terms(&stance.stance)).collect();
    let fates: Vec<StanceFate> = stances
        .iter()
        .enumerate()
        .map(|(at, stance)| {
            let others = words.iter().enumerate().filter(|(other, _)| *other != at);
            let others: BTreeSet<&String> = others.flat_map(|(_, words)| words).collect();
            let own = words.get(at).into_iter().flatten().filter(|word| !others.contains(word)).cloned();
            let taken_up = share(&own.collect(), said);
            StanceFate { model: stance.model.clone(), stance: stance.stance.clone(), taken_up }
        })
        .collect();
    Some(Disagreement { topic: topic.clone(), followed: followed(&fates), stances: fates })
}

/// The only stance that is taken up most, if it is taken up at all.
fn followed(fates: &[StanceFate]) -> Option<usize> {
    let most = fates.iter().filter_map(|fate| fate.taken_up).reduce(f64::max)?;
    let mut best = fates.iter().enumerate().filter(|(_, fate)| fate.taken_up.is_some_and(|up| up >= most));
    let (at, _) = best.next()?;
    (most >= TAKEN_UP_FROM && best.next().is_none()).then_some(at)
}

fn share(words: &BTreeSet<String>, said: &BTreeSet<String>) -> Option<f64> {
    (!words.is_empty()).then(|| words.intersection(said).count() as f64 / words.len() as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::analysis::Stance;

    fn findings() -> Findings {
        let stance =
            |model: &str, stance: &str| Stance { model: Some(model.to_owned()), stance: stance.to_owned() };
        let stances = vec![stance("A", "It was opened in 1932."), stance("B", "It was opened in 1950.")];
        Findings {
            contradictions: vec![Finding::Contradiction { topic: "year".to_owned(), stances }],
            blind_spots: vec![Finding::Text("Who paid the builders".to_owned())],
            ..Findings::default()
        }
    }

    #[test]
    fn the_answer_s_words_tell_whom_it_follows() {
        for (answer, want) in [
            ("The bridge was opened in 1932.", Some(0)),
            ("The bridge was opened in 1950.", Some(1)),
            ("Sources differ between 1932 and 1950.", None),
            ("Nobody knows the year.", None),
        ] {
            let resolution = Resolution::of(&findings(), answer);
            assert_eq!(resolution.disagreements[0].followed, want, "{answer}");
            assert!(resolution.gaps[0].remains);
        }
    }

    #[test]
    fn a_gap_that_is_spoken_of_is_closed() {
        let resolution = Resolution::of(&findings(), "The state paid the builders.");
        assert!(!resolution.gaps[0].remains);
    }
}
