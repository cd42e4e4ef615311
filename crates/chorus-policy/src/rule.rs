//! A compiled rule against the facts.
//!
//! Knows nothing of where facts come from. **Invariant:** a rule never reads anything but its leaves, so its belief
//! depends on the facts alone.

use crate::belief::Belief;
use crate::facts::{Facts, State};
use crate::program::{Rule, TestStep};
use chorus_spec::OnAbsent;

impl Rule {
    /// What can still become of it.
    pub(crate) fn belief(&self, facts: &Facts) -> Belief {
        match self {
            Self::Leaf(slot) => facts.state(*slot).belief(),
            Self::Tested(test) => test.state(facts).belief(),
            Self::All(parts) => Belief::all(parts.iter().map(|p| p.belief(facts))),
            Self::Any(parts) => Belief::any(parts.iter().map(|p| p.belief(facts))),
            Self::Not(part) => part.belief(facts).not(),
        }
    }
}

impl TestStep {
    /// What the slot counts as under this test.
    ///
    /// A probability is judged by its bounds whether or not the label matched, and is itself the confidence
    /// (case D12). What was said to count as a match without being measured holds with confidence 1, as the contract
    /// counts every match without a confidence of its own (contract v0.3 §1.4).
    pub(crate) fn state(&self, facts: &Facts) -> State {
        let state = match (facts.state(self.slot), self.predicate) {
            (_, Some(_)) if !matches!(facts.exact(self.slot), State::Matched(_) | State::Unmatched) => {
                facts.exact(self.slot)
            }
            (state @ (State::Matched(_) | State::Unmatched), Some(predicate)) => {
                match (facts.raw(self.slot), state) {
                    (Some(raw), _) if !predicate.holds(raw) => State::Unmatched,
                    (Some(_), State::Matched(confidence)) => State::Matched(confidence),
                    (Some(raw), _) => State::matched(raw),
                    (None, _) => State::Failed,
                }
            }
            (state, _) => state,
        };
        match (state, self.on_absent) {
            (State::Failed | State::Unsupported, OnAbsent::NoMatch) => State::Unmatched,
            (State::Failed | State::Unsupported, OnAbsent::Match) => State::Matched(1.0),
            (state, _) => state,
        }
    }
}
