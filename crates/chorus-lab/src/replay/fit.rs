//! Learns what votes weigh: a conditional logit over the possible answers.
//!
//! The score of an answer is the sum of its voters' weights; weights maximise the likelihood of the right answers, with a
//! quadratic penalty on what differs by topic. Unlike log-odds of single models, this does not count twice what two
//! models always get wrong together. Source: McFadden (1974). Invariant: the same samples give the same weights.

use super::record::{ALTERNATIVES, Row};
use chorus_collab::poll::{Manner, VoteWeights};
use std::collections::BTreeMap;

/// Features of a model: one in every manner, and one for each.
const FEATURES: usize = 4;
/// Penalty on a topic's deviation, in samples.
const PENALTY: f64 = 30.0;
const ROUNDS: usize = 100;
const STEP: f64 = 0.6;
const MOMENTUM: f64 = 0.9;

/// One question as the fit sees it.
struct Sample {
    topic: usize,
    right: usize,
    /// Features of each vote, and the answer it is for.
    votes: Vec<([usize; 2], usize)>,
}

/// What was learned.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fitted {
    /// Weights by topic.
    pub(super) topics: BTreeMap<String, VoteWeights>,
    /// Weights of any other topic.
    pub(super) otherwise: VoteWeights,
}

impl Fitted {
    pub(super) fn of(&self, topic: Option<&str>) -> &VoteWeights {
        topic.and_then(|topic| self.topics.get(topic)).unwrap_or(&self.otherwise)
    }
}

/// The weights of those models.
pub(super) fn weights(models: &[&str], rows: &[&Row]) -> Fitted {
    let mut topics: Vec<&str> = rows.iter().map(|row| &*row.category).collect();
    topics.sort_unstable();
    topics.dedup();
    let samples: Vec<Sample> = rows.iter().filter_map(|row| sample(models, &topics, row)).collect();
    let logit = Logit::fitted(&samples, topics.len(), models.len() * FEATURES);
    let by_topic = topics.iter().zip(&logit.own).map(|(topic, own)| {
        let sums: Vec<f64> = logit.shared.iter().zip(own).map(|(shared, own)| shared + own).collect();
        ((*topic).to_owned(), named(models, &sums))
    });
    Fitted { topics: by_topic.collect(), otherwise: named(models, &logit.shared) }
}

fn sample(models: &[&str], topics: &[&str], row: &Row) -> Option<Sample> {
    let vote = |(at, model): (usize, &&str)| {
        let answer = index(row.chosen(model)?)?;
        let manner = 1 + Manner::of_chars(row.chars(model)) as usize;
        Some(([at * FEATURES, at * FEATURES + manner], answer))
    };
    Some(Sample {
        topic: topics.iter().position(|topic| *topic == row.category)?,
        right: index(&row.answer)?,
        votes: models.iter().enumerate().filter_map(vote).collect(),
    })
}

/// A is 0.
fn index(letter: &str) -> Option<usize> {
    let byte = letter.bytes().next()?;
    Some(usize::from(byte.checked_sub(b'A')?)).filter(|at| *at < ALTERNATIVES)
}

fn named(models: &[&str], features: &[f64]) -> VoteWeights {
    let mut weights = VoteWeights::default();
    for (model, own) in models.iter().zip(features.chunks_exact(FEATURES)) {
        if let [every, bare, worked, long] = own {
            weights.set(model, [every + bare, every + worked, every + long]);
        }
    }
    weights
}

/// Weights of features: shared by all topics, and each topic's own deviation.
struct Logit {
    shared: Vec<f64>,
    own: Vec<Vec<f64>>,
}

impl Logit {
    fn zero(topics: usize, features: usize) -> Self {
        Self { shared: vec![0.0; features], own: vec![vec![0.0; features]; topics] }
    }

    /// Gradient ascent with momentum over all samples; starts with equal votes.
    fn fitted(samples: &[Sample], topics: usize, features: usize) -> Self {
        let mut weights = Self { shared: vec![1.0; features], ..Self::zero(topics, features) };
        let mut speed = Self::zero(topics, features);
        let share = 1.0 / samples.len().max(1) as f64;
        for _ in 0..ROUNDS {
            let mut slope = Self::zero(topics, features);
            for sample in samples {
                weights.add_slope(sample, share, &mut slope);
            }
            for (slope, weights) in slope.own.iter_mut().zip(&weights.own) {
                slope.iter_mut().zip(weights).for_each(|(slope, weight)| *slope -= PENALTY * share * weight);
            }
            advance(&mut weights.shared, &mut speed.shared, &slope.shared);
            for ((weights, speed), slope) in weights.own.iter_mut().zip(&mut speed.own).zip(&slope.own) {
                advance(weights, speed, slope);
            }
        }
        weights
    }

    /// Adds the slope of one sample's log-likelihood.
    fn add_slope(&self, sample: &Sample, share: f64, slope: &mut Self) {
        let (Some(own), Some(slope_own)) = (self.own.get(sample.topic), slope.own.get_mut(sample.topic))
        else {
            return;
        };
        let weight = |at: &usize| {
            self.shared.get(*at).copied().unwrap_or_default() + own.get(*at).copied().unwrap_or_default()
        };
        let mut scores = [0.0; ALTERNATIVES];
        for (features, answer) in &sample.votes {
            if let Some(score) = scores.get_mut(*answer) {
                *score += features.iter().map(weight).sum::<f64>();
            }
        }
        let top = scores.iter().copied().fold(f64::MIN, f64::max);
        let all: f64 = scores.iter().map(|score| (score - top).exp()).sum();
        for (features, answer) in &sample.votes {
            let likely = scores.get(*answer).map_or(0.0, |score| (score - top).exp() / all);
            let surprise = share * (f64::from(*answer == sample.right) - likely);
            for at in features {
                for slope in [&mut slope.shared, &mut *slope_own] {
                    if let Some(slope) = slope.get_mut(*at) {
                        *slope += surprise;
                    }
                }
            }
        }
    }
}

fn advance(weights: &mut [f64], speed: &mut [f64], slope: &[f64]) {
    for ((weight, speed), slope) in weights.iter_mut().zip(speed).zip(slope) {
        *speed = MOMENTUM * *speed + slope;
        *weight += STEP * *speed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: u64, answer: &str, says: [(&str, &str); 3]) -> Row {
        let pred = says.iter().map(|(model, letter)| ((*model).to_owned(), Some((*letter).to_owned())));
        let chars = says.iter().map(|(model, _)| ((*model).to_owned(), 100));
        let (category, answer) = ("law".to_owned(), answer.to_owned());
        Row { id, category, answer, pred: pred.collect(), out_chars: chars.collect() }
    }

    #[test]
    fn an_echo_adds_little_and_whoever_is_right_weighs_most() {
        let rows: Vec<Row> = (0..200)
            .map(|id| {
                let (good, poor) =
                    (if id % 10 == 0 { "C" } else { "A" }, if id % 2 == 0 { "B" } else { "A" });
                row(id, "A", [("good", good), ("poor", poor), ("echo", poor)])
            })
            .collect();
        let rows: Vec<&Row> = rows.iter().collect();
        let of = |models: &[&str], model: &str| weights(models, &rows).of(None).of(model, Manner::Worked);
        let all = ["good", "poor", "echo"];
        assert!(of(&all, "good") > of(&all, "poor") + of(&all, "echo"));
        assert!(of(&all, "poor") < 0.75 * of(&["good", "poor"], "poor"));
        assert_eq!(weights(&all, &rows), weights(&all, &rows));
    }
}
