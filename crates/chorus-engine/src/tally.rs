//! What signals came to in live requests, counted by family, for as long as a configuration is served.
//!
//! It knows no rule and no request: families are few, so that the count has a bound. **Invariant:** a dry run is not
//! counted (case D24).

use chorus_policy::{Evidence, Observation};
use chorus_signals::Timing;
use chorus_spec::Family;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// What the signals of one family came to.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FamilyTally {
    /// Observations that held.
    pub matched: u64,
    /// Observations that did not.
    pub unmatched: u64,
    /// Observations that could not be made.
    pub absent: u64,
    /// How often a rule, or the family as a whole, was asked.
    pub evaluations: u64,
    /// How long that took together, in microseconds.
    pub micros: u64,
    /// How long it took at most, in microseconds.
    pub most_micros: u64,
}

impl FamilyTally {
    fn add(&mut self, other: &Self) {
        self.matched += other.matched;
        self.unmatched += other.unmatched;
        self.absent += other.absent;
        self.evaluations += other.evaluations;
        self.micros += other.micros;
        self.most_micros = self.most_micros.max(other.most_micros);
    }
}

/// Every family's count, by the family's place among all.
#[derive(Debug, Default)]
pub struct Tally(Mutex<[FamilyTally; Family::ALL.len()]>);

impl Tally {
    /// Counts one decision.
    pub(crate) fn count(&self, evidence: &Evidence, timings: &[Timing]) {
        let mut families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for (key, observation) in evidence.iter() {
            let Some(of) = families.get_mut(key.family as usize) else { continue };
            match observation {
                Observation::Matched { .. } => of.matched += 1,
                Observation::Unmatched { .. } => of.unmatched += 1,
                Observation::Absent(_) => of.absent += 1,
            }
        }
        for timing in timings {
            let Some(of) = families.get_mut(timing.family as usize) else { continue };
            of.add(&FamilyTally {
                evaluations: 1,
                micros: timing.micros,
                most_micros: timing.micros,
                ..FamilyTally::default()
            });
        }
    }

    /// Adds these counts to others.
    pub(crate) fn add_to(&self, all: &mut BTreeMap<Family, FamilyTally>) {
        let families = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let looked_at = |(_, tally): &(&Family, &FamilyTally)| **tally != FamilyTally::default();
        for (family, tally) in Family::ALL.iter().zip(&*families).filter(looked_at) {
            all.entry(*family).or_default().add(tally);
        }
    }
}
