//! A cascade: who is asked in which step, how votes are weighed, and what the thresholds are.
//!
//! It knows how a rule is learned, not which rules are tried. **Invariant:** thresholds come from questions that the
//! weights have not seen.

use super::fit::{self, Fitted};
use super::prices::Prices;
use super::record::{ALTERNATIVES, FOLDS, Row};
use super::tune::{self, Thresholds};
use super::{plans, score};
use crate::fault::LabFault;
use chorus_collab::poll::{PollPolicy, PollStep, VoteWeights};
use std::collections::BTreeMap;

/// Who is asked, step by step; the last step answers in any case.
pub(super) type Shape = Vec<Vec<String>>;

/// How votes are weighed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Weighing {
    /// All alike: an answer counts by how many agree.
    Agreement,
    /// By each voter's log-odds of being right.
    Rated,
    /// By a conditional logit, for each topic and manner.
    Learned,
}

impl Weighing {
    pub(super) const ALL: [Self; 3] = [Self::Agreement, Self::Rated, Self::Learned];

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Agreement => "agreement",
            Self::Rated => "rating-weighted",
            Self::Learned => "learned by topic",
        }
    }
}

/// A cascade as it is described.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rule {
    pub(super) shape: Shape,
    pub(super) weighing: Weighing,
}

impl Rule {
    /// What it is, in a line.
    pub(super) fn told(&self) -> String {
        let steps: Vec<String> = self.shape.iter().map(|step| step.join(" + ")).collect();
        format!("{}, {}", steps.join(" → "), self.weighing.word())
    }

    /// The models of the first steps, in order of their names.
    fn asked(&self, steps: usize) -> Vec<String> {
        let mut asked: Vec<String> = self.shape.iter().take(steps).flatten().cloned().collect();
        asked.sort_unstable();
        asked
    }

    /// Its policy with those weights after each step.
    fn policy(&self, weights: &[Fitted], thresholds: Thresholds) -> PollPolicy {
        let last = self.shape.len().saturating_sub(1);
        let accept = |at: usize| match thresholds.get(at) {
            Some(threshold) if at < last => *threshold,
            _ => 0.0,
        };
        let steps = |topic: Option<&str>| -> Vec<PollStep> {
            let steps = self.shape.iter().zip(weights).enumerate();
            steps
                .map(|(at, (models, fitted))| PollStep {
                    models: models.clone(),
                    weights: fitted.of(topic).clone(),
                    accept: accept(at),
                    hopeless: None,
                })
                .collect()
        };
        let topics = weights.first().into_iter().flat_map(|fitted| fitted.topics.keys());
        PollPolicy {
            alternatives: ALTERNATIVES,
            topics: topics.map(|topic| (topic.clone(), steps(Some(topic)))).collect(),
            otherwise: steps(None),
        }
    }
}

/// The training half, and all weights that were fitted on parts of it.
pub(super) struct Workshop<'a> {
    training: &'a [&'a Row],
    prices: &'a Prices,
    /// By the fold that is left out (all are used: `FOLDS`), and the voters.
    fitted: BTreeMap<(u8, Vec<String>), Fitted>,
}

impl<'a> Workshop<'a> {
    pub(super) fn new(training: &'a [&'a Row], prices: &'a Prices) -> Self {
        Self { training, prices, fitted: BTreeMap::new() }
    }

    /// Every training question's path through the rule, with weights from the other folds.
    pub(super) fn paths(&mut self, rule: &Rule) -> Result<Vec<tune::Path>, LabFault> {
        let prices: Vec<f64> =
            rule.shape.iter().map(|step| step.iter().map(|model| self.prices.of(model)).sum()).collect();
        let mut paths = Vec::new();
        for fold in 0..FOLDS {
            let unseen: Vec<&Row> = self.training.iter().copied().filter(|row| row.fold() == fold).collect();
            // Nothing reaches the threshold of 1 but an answer without any doubt: every step is taken and seen.
            let policy = rule.policy(&self.weights(rule, fold), [1.0; 2]);
            let scored = score::run(&policy, &unseen, self.prices)?;
            let seen = scored.iter().zip(&unseen);
            paths.extend(seen.map(|(run, row)| tune::path(run, &prices, |letter| row.is_right(letter))));
        }
        Ok(paths)
    }

    /// The rule with weights from the whole training half.
    pub(super) fn finished(&mut self, rule: &Rule, thresholds: Thresholds) -> PollPolicy {
        let weights = self.weights(rule, FOLDS);
        rule.policy(&weights, thresholds)
    }

    /// What votes weigh after each step, learned without that fold.
    fn weights(&mut self, rule: &Rule, without: u8) -> Vec<Fitted> {
        let rows: Vec<&Row> = self.training.iter().copied().filter(|row| row.fold() != without).collect();
        let steps = 1..=rule.shape.len();
        steps
            .map(|steps| {
                let voters = rule.asked(steps);
                let names: Vec<&str> = voters.iter().map(String::as_str).collect();
                match rule.weighing {
                    Weighing::Agreement => even(names.iter().map(|model| (*model, 1.0))),
                    Weighing::Rated => even(names.iter().map(|model| (*model, rated(model, &rows)))),
                    Weighing::Learned => {
                        let fitted = || fit::weights(&names, &rows);
                        self.fitted.entry((without, voters.clone())).or_insert_with(fitted).clone()
                    }
                }
            })
            .collect()
    }
}

fn even<'m>(weights: impl Iterator<Item = (&'m str, f64)>) -> Fitted {
    Fitted { topics: BTreeMap::new(), otherwise: VoteWeights::even(weights) }
}

fn rated(model: &str, rows: &[&Row]) -> f64 {
    let right = rows.iter().filter(|row| row.is_right(row.chosen(model))).count();
    plans::log_odds(right as f64 / rows.len().max(1) as f64)
}
