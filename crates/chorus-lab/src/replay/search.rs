//! Finds the cascades: rules are built up step by step, and judged by cross-validation on the training half alone.
//!
//! It knows no question of the held-out half. The search is a beam: first steps of one or two cheap models are closed
//! with the best fixed model; the best of them are tried again with another model between. **Invariant:** the same
//! training half gives the same rules.

use super::cascade::{Rule, Shape, Weighing, Workshop};
use super::prices::Prices;
use super::record::Row;
use super::tune;
use crate::fault::LabFault;
use chorus_collab::poll::PollPolicy;

/// A model may stand before the last step when it costs at most this share of the best fixed one.
const CHEAP: f64 = 0.25;
/// Cheap models that are tried, the most accurate ones.
const POOL: usize = 6;
/// Of them, those that are also tried in pairs.
const PAIRED: usize = 4;
/// First steps that are tried again with a step between.
const BEAM: usize = 3;

/// What the search chose for one cap.
#[derive(Debug, Clone)]
pub(super) struct Found {
    /// The rule, in a line.
    pub(super) told: String,
    /// Its share of right answers on training questions that its weights have not seen.
    pub(super) accuracy: f64,
    pub(super) policy: PollPolicy,
}

/// What a search is given.
pub(super) struct Search<'a> {
    pub(super) training: &'a [&'a Row],
    pub(super) prices: &'a Prices,
    pub(super) best_fixed: &'a str,
    /// All models with their share of right answers on the training half.
    pub(super) strengths: &'a [(String, f64)],
}

/// One rule that was tried, and its right answers under each cap; 0 where it does not stay below it.
struct Tried {
    rule: Rule,
    right: Vec<usize>,
    thresholds: Vec<tune::Thresholds>,
}

impl Tried {
    fn total(&self) -> usize {
        self.right.iter().sum()
    }
}

impl Search<'_> {
    /// The best rule under each cap, a share of the best fixed model's cost; and how many rules were tried.
    ///
    /// # Errors
    /// When a rule makes no plan, or none stays below a cap.
    pub(super) fn run(
        &self,
        caps: &[f64],
        note: &mut dyn FnMut(&str),
    ) -> Result<(Vec<Found>, usize), LabFault> {
        let pool = self.pool();
        let mut workshop = Workshop::new(self.training, self.prices);
        let mut tried = Vec::new();
        for first in first_steps(&pool) {
            let shape = vec![first, vec![self.best_fixed.to_owned()]];
            self.try_all(&mut workshop, &shape, caps, &mut tried)?;
        }
        note(&format!("{} cascades of two steps tried", tried.len()));
        for first in best_first_steps(&mut tried) {
            for between in pool.iter().filter(|model| !first.contains(model)) {
                let last = vec![self.best_fixed.to_owned()];
                let shape = vec![first.clone(), vec![between.clone()], last];
                self.try_all(&mut workshop, &shape, caps, &mut tried)?;
            }
        }
        note(&format!("{} cascades tried", tried.len()));
        let found = (0..caps.len()).map(|at| self.best(&mut workshop, &tried, at));
        Ok((found.collect::<Result<_, _>>()?, tried.len()))
    }

    /// The most accurate cheap models.
    fn pool(&self) -> Vec<String> {
        let bound = CHEAP * self.prices.of(self.best_fixed);
        let mut cheap: Vec<&(String, f64)> =
            self.strengths.iter().filter(|(model, _)| self.prices.of(model) <= bound).collect();
        cheap.sort_by(|one, other| other.1.total_cmp(&one.1));
        cheap.into_iter().take(POOL).map(|(model, _)| model.clone()).collect()
    }

    fn try_all(
        &self,
        workshop: &mut Workshop<'_>,
        shape: &Shape,
        caps: &[f64],
        tried: &mut Vec<Tried>,
    ) -> Result<(), LabFault> {
        for weighing in Weighing::ALL {
            let rule = Rule { shape: shape.clone(), weighing };
            let paths = workshop.paths(&rule)?;
            let price = self.prices.of(self.best_fixed);
            let outcome = |cap: &f64| tune::thresholds(&paths, cap * price).unwrap_or_default();
            let (thresholds, right) = caps.iter().map(outcome).unzip();
            tried.push(Tried { rule, right, thresholds });
        }
        Ok(())
    }

    /// The most accurate rule under the cap at that place.
    fn best(&self, workshop: &mut Workshop<'_>, tried: &[Tried], at: usize) -> Result<Found, LabFault> {
        let right = |tried: &Tried| tried.right.get(at).copied().unwrap_or_default();
        // Of equal ones the first: it has fewer steps.
        let best = tried.iter().rev().max_by_key(|tried| right(tried)).filter(|tried| right(tried) > 0);
        let best = best.ok_or_else(|| super::plans::unusable(&"no cascade stays below the cap"))?;
        let thresholds = best.thresholds.get(at).copied().unwrap_or_default();
        Ok(Found {
            told: best.rule.told(),
            accuracy: right(best) as f64 / self.training.len().max(1) as f64,
            policy: workshop.finished(&best.rule, thresholds),
        })
    }
}

/// Every model of the pool alone, and the pairs of its first ones.
fn first_steps(pool: &[String]) -> Vec<Vec<String>> {
    let mut steps: Vec<Vec<String>> = pool.iter().map(|model| vec![model.clone()]).collect();
    let paired: Vec<&String> = pool.iter().take(PAIRED).collect();
    for (at, one) in paired.iter().enumerate() {
        let others = paired.iter().skip(at + 1);
        steps.extend(others.map(|other| vec![(*one).clone(), (*other).clone()]));
    }
    steps
}

/// The first steps of the best rules so far.
fn best_first_steps(tried: &mut [Tried]) -> Vec<Vec<String>> {
    tried.sort_by_key(|tried| std::cmp::Reverse(tried.total()));
    let mut steps: Vec<Vec<String>> = Vec::new();
    for first in tried.iter().filter_map(|tried| tried.rule.shape.first()) {
        if steps.len() < BEAM && !steps.contains(first) {
            steps.push(first.clone());
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_steps_are_singles_and_pairs() {
        let pool = ["a", "b", "c"].map(str::to_owned);
        let steps: Vec<String> = first_steps(&pool).iter().map(|step| step.join("+")).collect();
        assert_eq!(steps, ["a", "b", "c", "a+b", "a+c", "b+c"]);
    }

    #[test]
    fn the_beam_keeps_different_first_steps_best_first() {
        let rule = |first: &str, right: usize| Tried {
            rule: Rule { shape: vec![vec![first.to_owned()]], weighing: Weighing::Agreement },
            right: vec![right],
            thresholds: vec![[0.5; 2]],
        };
        let mut tried = vec![rule("a", 3), rule("b", 9), rule("b", 7), rule("c", 5)];
        assert_eq!(best_first_steps(&mut tried), [["b"], ["c"], ["a"]]);
    }
}
