//! What an undecided rule waits for.
//!
//! Walks from a rule through everything that feeds it (partitions, composers, scores) to the observations it needs,
//! leaving out whatever can no longer change the result. Knows nothing of costs or of ranking.
//!
//! **Invariant:** a rule whose truth is open and that waits for nothing in this walk stays as it is for good.

use crate::facts::{Facts, State};
use crate::program::{InputFrom, Program, Rule, SlotId, Source, TestStep};

/// A walk for observations that are in one state: pending (what must be asked) or unsupported (what is missing).
#[derive(Debug)]
pub(crate) struct Reach<'a> {
    program: &'a Program,
    facts: &'a Facts,
    wanted: State,
    seen: Vec<bool>,
    seen_scores: Vec<bool>,
    found: Vec<bool>,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(program: &'a Program, facts: &'a Facts, wanted: State) -> Self {
        let none = || vec![false; program.slots.len()];
        let seen_scores = vec![false; program.scores.len()];
        Self { program, facts, wanted, seen: none(), seen_scores, found: none() }
    }

    /// The slots found, sorted.
    pub(crate) fn found(&self) -> impl Iterator<Item = SlotId> + '_ {
        self.found.iter().enumerate().filter_map(|(slot, found)| found.then_some(slot))
    }

    /// What may still change whether `rule` holds.
    pub(crate) fn truth(&mut self, rule: &Rule) {
        if rule.belief(self.facts).can.is_settled() {
            return;
        }
        match rule {
            Rule::Leaf(slot) | Rule::Tested(TestStep { slot, .. }) => self.slot(*slot),
            Rule::All(parts) | Rule::Any(parts) => parts.iter().for_each(|part| self.truth(part)),
            Rule::Not(part) => self.truth(part),
        }
    }

    /// What may still change how confident `rule` is, or whether it holds.
    pub(crate) fn confidence(&mut self, rule: &Rule) {
        let belief = rule.belief(self.facts);
        if !belief.can.may_hold() {
            return;
        }
        match rule {
            Rule::Leaf(slot) | Rule::Tested(TestStep { slot, .. }) => self.slot(*slot),
            Rule::All(parts) => parts.iter().for_each(|part| self.confidence(part)),
            Rule::Any(parts) => {
                for part in parts {
                    let chance = part.belief(self.facts);
                    // What cannot beat the best that holds for certain adds nothing.
                    if !belief.holds() || chance.can.may_hold() && chance.high > belief.low {
                        self.confidence(part);
                    }
                }
            }
            Rule::Not(part) => self.truth(part),
        }
    }

    fn slot(&mut self, id: SlotId) {
        if !is_first(&mut self.seen, id) || self.facts.exact(id) != self.wanted {
            return;
        }
        let program = self.program;
        let Some(slot) = program.slots.get(id) else { return };
        if let Source::Score(score) = slot.source {
            self.score(score);
            return;
        }
        if self.facts.observed(id) == self.wanted
            && let Some(found) = self.found.get_mut(id)
        {
            *found = true;
        }
        let partitions = slot.partitions.iter().filter_map(|p| program.partitions.get(*p));
        partitions.flat_map(|p| &p.members).for_each(|member| self.slot(*member));
        if let Some(gate) = slot.gate.and_then(|g| program.gates.get(g)) {
            self.truth(&gate.rule);
        }
    }

    fn score(&mut self, index: usize) {
        if !is_first(&mut self.seen_scores, index) {
            return;
        }
        let program = self.program;
        for input in program.scores.get(index).into_iter().flat_map(|s| &s.inputs) {
            match input.from {
                InputFrom::Slot(slot) => self.slot(slot),
                InputFrom::Score(score) => self.score(score),
            }
        }
    }
}

/// Marks `index`, and says whether it was unmarked.
fn is_first(seen: &mut [bool], index: usize) -> bool {
    seen.get_mut(index).is_some_and(|seen| !std::mem::replace(seen, true))
}
