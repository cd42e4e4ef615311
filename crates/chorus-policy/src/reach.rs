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
    slots: Vec<Mark>,
    seen_scores: Vec<bool>,
}

/// What a walk has made of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    Seen,
    Found,
}

impl<'a> Reach<'a> {
    pub(crate) fn new(program: &'a Program, facts: &'a Facts, wanted: State) -> Self {
        let seen_scores = vec![false; program.scores.len()];
        Self { program, facts, wanted, slots: vec![Mark::New; program.slots.len()], seen_scores }
    }

    /// The slots found, sorted.
    pub(crate) fn found(&self) -> impl Iterator<Item = SlotId> + '_ {
        let found = self.slots.iter().enumerate().filter(|(_, mark)| **mark == Mark::Found);
        found.map(|(slot, _)| slot)
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
        match self.slots.get_mut(id) {
            Some(mark @ Mark::New) => *mark = Mark::Seen,
            _ => return,
        }
        if self.facts.exact(id) != self.wanted {
            return;
        }
        let program = self.program;
        let Some(slot) = program.slots.get(id) else { return };
        if let Source::Score(score) = slot.source {
            self.score(score);
            return;
        }
        if self.facts.observed(id) == self.wanted
            && let Some(mark) = self.slots.get_mut(id)
        {
            *mark = Mark::Found;
        }
        let partitions = slot.partitions.iter().filter_map(|p| program.partitions.get(*p));
        partitions.flat_map(|p| &p.members).for_each(|member| self.slot(*member));
        if let Some(gate) = slot.gate.and_then(|g| program.gates.get(g)) {
            self.truth(&gate.rule);
        }
    }

    fn score(&mut self, index: usize) {
        if self.seen_scores.get_mut(index).is_none_or(|seen| std::mem::replace(seen, true)) {
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
