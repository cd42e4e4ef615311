//! What must hold: boolean rules over evidence, and bounds of a number.
//!
//! It knows neither signals' options nor routes. **Invariant:** evaluating a rule needs evidence and nothing else.

use crate::SignalKey;

/// A boolean rule.
#[derive(Debug, Clone, PartialEq)]
pub enum Condition {
    /// One fact.
    Signal(SignalKey),
    /// All of them. Empty: holds, with confidence 0.
    And(Vec<Condition>),
    /// Any of them.
    Or(Vec<Condition>),
    /// Not this.
    Not(Box<Condition>),
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
