//! A compiled rule against the facts.
//!
//! Knows nothing of where facts come from. **Invariant:** a rule never reads anything but its leaves, so its belief
//! depends on the facts alone.

use crate::belief::Belief;
use crate::facts::Facts;
use crate::program::Rule;

impl Rule {
    /// What can still become of it.
    pub(crate) fn belief(&self, facts: &Facts) -> Belief {
        match self {
            Self::Leaf(slot) => facts.state(*slot).belief(),
            Self::All(parts) => Belief::all(parts.iter().map(|p| p.belief(facts))),
            Self::Any(parts) => Belief::any(parts.iter().map(|p| p.belief(facts))),
            Self::Not(part) => part.belief(facts).not(),
        }
    }
}
