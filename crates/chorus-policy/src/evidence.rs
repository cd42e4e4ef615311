//! What is known about a request so far.

use chorus_spec::SignalKey;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a signal said.
#[derive(Debug, Clone, PartialEq)]
pub enum Observation {
    /// It holds.
    Matched {
        /// In 0..=1.
        confidence: f64,
        /// The measured value before any threshold, if there is one.
        raw: Option<f64>,
    },
    /// It does not hold.
    Unmatched {
        /// The measured value before any threshold, if there is one.
        raw: Option<f64>,
    },
    /// It could not be said.
    Absent(AbsentReason),
}

/// Why a signal said nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AbsentReason {
    /// This version does not run the family.
    Unsupported,
    /// It could not run: a sentence for people.
    Failed(String),
}

/// All observations of one request; a key that is missing has not been asked for yet.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Evidence {
    observations: BTreeMap<SignalKey, Observation>,
}

impl Evidence {
    /// Records what a signal said.
    pub fn insert(&mut self, key: SignalKey, observation: Observation) {
        self.observations.insert(key, observation);
    }

    /// Whether nothing has been asked.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.observations.is_empty()
    }

    /// What a signal said, if it was asked.
    #[must_use]
    pub fn get(&self, key: &SignalKey) -> Option<&Observation> {
        self.observations.get(key)
    }

    /// Everything, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&SignalKey, &Observation)> {
        self.observations.iter()
    }
}

/// A signal rule that must be evaluated: every key that the rule emits is then in the evidence.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ask {
    /// The family.
    pub family: chorus_spec::Family,
    /// The rule's own name (for complexity the rule, not a label).
    pub rule: Arc<str>,
}

impl Ask {
    /// Asks for a rule of a family.
    pub fn new(family: chorus_spec::Family, rule: impl Into<Arc<str>>) -> Self {
        Self { family, rule: rule.into() }
    }
}
