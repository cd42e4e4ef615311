//! What must hold: boolean rules over evidence, and bounds of a number.
//!
//! It knows neither signals' options nor routes. **Invariant:** evaluating a rule needs evidence and nothing else.

use crate::SignalKey;

/// A boolean rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// One fact.
    Signal(SignalKey),
    /// One fact, read otherwise than by whether it matched.
    Tested(Test),
    /// All of them. Empty: holds, with confidence 0.
    And(Vec<Condition>),
    /// Any of them.
    Or(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
}

/// A leaf with a test of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Test {
    /// The fact.
    pub key: SignalKey,
    /// Bounds of the fact's raw value (a label's probability); `None` asks whether it matched.
    pub predicate: Option<NumericPredicate>,
    /// What an absent fact counts as.
    pub on_absent: OnAbsent,
}

/// What a leaf says of a fact that could not be had (`on_error`).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum OnAbsent {
    /// Nothing: the leaf is neither true nor false.
    #[default]
    Unknown,
    /// `no_match`: it does not hold.
    NoMatch,
    /// `match`: it holds, with confidence 1, so that a guard which could not run closes.
    Match,
}

impl Condition {
    /// Every fact that it asks for, in the order written.
    #[must_use]
    pub fn keys(&self) -> Vec<&SignalKey> {
        match self {
            Self::Signal(key) => vec![key],
            Self::Tested(test) => vec![&test.key],
            Self::And(parts) | Self::Or(parts) => parts.iter().flat_map(Self::keys).collect(),
            Self::Not(part) => part.keys(),
        }
    }
}

/// Bounds of a number; all that are given must hold.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct NumericPredicate {
    /// Above.
    pub gt: Option<f64>,
    /// At least.
    pub gte: Option<f64>,
    /// Below.
    pub lt: Option<f64>,
    /// At most.
    pub lte: Option<f64>,
}

impl NumericPredicate {
    /// Whether `value` keeps every bound.
    #[must_use]
    pub fn holds(&self, value: f64) -> bool {
        self.gt.is_none_or(|b| value > b)
            && self.gte.is_none_or(|b| value >= b)
            && self.lt.is_none_or(|b| value < b)
            && self.lte.is_none_or(|b| value <= b)
    }
}
