//! What each slot of a program holds, as observed and as it counts after the stages.
//!
//! Knows nothing of rules. **Invariant:** confidences are finite and within 0..=1, raw values are finite, and a slot
//! that is not [`State::Pending`] stays as it is whatever evidence arrives later; of [`State::Holds`] the bounds may
//! become narrower, down to [`State::Matched`].

use crate::belief::{Belief, Outcomes};
use crate::program::{Program, Slot, SlotId, Source};
use crate::{AbsentReason, Evidence, Observation};
use chorus_spec::SignalKey;

/// What is known of a slot.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum State {
    /// Not asked yet, or waiting for something that is not.
    Pending,
    /// Waiting for something that this version does not run.
    Unsupported,
    /// It could not be said, or depends on something that could not.
    Failed,
    /// It does not hold.
    Unmatched,
    /// It holds, whatever is still said, with a confidence within these bounds.
    Holds { low: f64, high: f64 },
    /// It holds, with this confidence.
    Matched(f64),
}

impl State {
    fn observed(observation: &Observation) -> Self {
        match observation {
            Observation::Matched { confidence, .. } => Self::matched(*confidence),
            Observation::Unmatched { .. } => Self::Unmatched,
            Observation::Absent(AbsentReason::Unsupported) => Self::Unsupported,
            Observation::Absent(AbsentReason::Failed(_)) => Self::Failed,
        }
    }

    /// Clamps to 0..=1; what is no number counts as 0.
    pub(crate) fn matched(confidence: f64) -> Self {
        // `max` also turns a NaN and a negative zero into a plain zero.
        Self::Matched(if confidence > 0.0 { confidence.min(1.0) } else { 0.0 })
    }

    pub(crate) fn belief(self) -> Belief {
        match self {
            Self::Pending => Belief::open(Outcomes::ANY),
            Self::Unsupported => Belief::open(Outcomes::EITHER),
            Self::Failed => Belief::certain(Outcomes::UNKNOWN),
            Self::Unmatched => Belief::certain(Outcomes::FALSE),
            Self::Holds { low, high } => Belief { can: Outcomes::TRUE, low, high },
            Self::Matched(confidence) => Belief::matched(confidence),
        }
    }
}

/// Why something that needs all of its parts cannot be said yet, or at all.
///
/// Unsupported parts come first, so that nothing is asked for what cannot be had; a failure counts only when nothing
/// is pending, so that the order in which evidence arrives makes no difference.
pub(crate) fn hindrance(parts: impl Iterator<Item = State>) -> Option<State> {
    let mut worst = None;
    for part in parts {
        worst = match (worst, part) {
            (_, State::Unsupported) => return Some(State::Unsupported),
            (Some(State::Pending), _) | (_, State::Pending) => Some(State::Pending),
            (Some(State::Failed), _) | (_, State::Failed) => Some(State::Failed),
            (worst, _) => worst,
        };
    }
    worst
}

/// One slot.
#[derive(Debug, Clone, Copy)]
struct Fact {
    observed: State,
    settled: State,
    raw: Option<f64>,
    /// What the exact value of an output still waits for, or will never have, where the state is certain without it.
    open: Option<State>,
}

const PENDING: Fact = Fact { observed: State::Pending, settled: State::Pending, raw: None, open: None };

/// All slots of a program.
#[derive(Debug)]
pub(crate) struct Facts {
    facts: Vec<Fact>,
}

impl Facts {
    /// The observations, before any stage.
    pub(crate) fn observe(program: &Program, evidence: &Evidence) -> Self {
        let mut facts = vec![PENDING; program.slots.len()];
        align(&program.slots, evidence, |slot, _, observation| {
            if let Some(fact) = slot.and_then(|slot| facts.get_mut(slot)) {
                let raw = match observation {
                    Observation::Matched { raw, .. } | Observation::Unmatched { raw } => *raw,
                    Observation::Absent(_) => None,
                };
                let state = State::observed(observation);
                let raw = raw.filter(|r| r.is_finite());
                *fact = Fact { observed: state, settled: state, raw, open: None };
            }
        });
        let mut facts = Self { facts };
        facts.close(program);
        facts
    }

    /// Settles what stays unobserved although nothing more can be asked for it.
    fn close(&mut self, program: &Program) {
        for (id, slot) in program.slots.iter().enumerate() {
            if self.observed(id) != State::Pending {
                continue;
            }
            match slot.source {
                Source::Nobody => self.replace(id, State::Unsupported),
                // The rule has spoken and did not mention this category.
                Source::Category(ask) if self.is_answered(program, ask) => self.replace(id, State::Failed),
                Source::Category(_) | Source::Rule(_) | Source::Score(_) => {}
            }
        }
    }

    fn replace(&mut self, id: SlotId, state: State) {
        if let Some(fact) = self.facts.get_mut(id) {
            fact.observed = state;
            fact.settled = state;
        }
    }

    /// Whether everything that a signal rule emits has been observed.
    pub(crate) fn is_answered(&self, program: &Program, ask: usize) -> bool {
        program
            .asks
            .get(ask)
            .is_some_and(|a| a.emits.iter().all(|slot| self.observed(*slot) != State::Pending))
    }

    /// What counts, after the stages that have run.
    pub(crate) fn state(&self, slot: SlotId) -> State {
        self.facts.get(slot).map_or(State::Unsupported, |f| f.settled)
    }

    /// What counts for whoever reads the exact value: confidence, or raw.
    pub(crate) fn exact(&self, slot: SlotId) -> State {
        self.facts.get(slot).and_then(|f| f.open).unwrap_or_else(|| self.state(slot))
    }

    /// What the evidence says.
    pub(crate) fn observed(&self, slot: SlotId) -> State {
        self.facts.get(slot).map_or(State::Unsupported, |f| f.observed)
    }

    pub(crate) fn raw(&self, slot: SlotId) -> Option<f64> {
        self.facts.get(slot).and_then(|f| f.raw)
    }

    pub(crate) fn settle(&mut self, slot: SlotId, state: State) {
        if let Some(fact) = self.facts.get_mut(slot) {
            fact.settled = state;
        }
    }

    /// Settles an output of a score; `open` is what stands in the way of the score's exact total.
    pub(crate) fn settle_output(
        &mut self,
        slot: SlotId,
        state: State,
        score: Option<f64>,
        open: Option<State>,
    ) {
        if let Some(fact) = self.facts.get_mut(slot) {
            *fact = Fact { observed: state, settled: state, raw: score, open };
        }
    }

    /// Everything that holds, sorted by key; observations that no slot reads count as observed.
    pub(crate) fn matched(&self, program: &Program, evidence: &Evidence) -> Vec<(SignalKey, f64)> {
        let mut matched = Vec::new();
        for (slot, fact) in program.slots.iter().zip(&self.facts) {
            if let State::Matched(confidence) = fact.settled {
                matched.push((slot.key.clone(), confidence));
            }
        }
        let read = matched.len();
        align(&program.slots, evidence, |slot, key, observation| {
            if let (None, State::Matched(confidence)) = (slot, State::observed(observation)) {
                matched.push((key.clone(), confidence));
            }
        });
        if matched.len() > read {
            matched.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        }
        matched
    }
}

/// Visits each observation with the slot that reads it; both sides are sorted, so one walk is enough.
fn align(
    slots: &[Slot],
    evidence: &Evidence,
    mut visit: impl FnMut(Option<SlotId>, &SignalKey, &Observation),
) {
    let mut slots = slots.iter().enumerate().peekable();
    for (key, observation) in evidence.iter() {
        while slots.next_if(|(_, slot)| slot.key < *key).is_some() {}
        let slot = slots.next_if(|(_, slot)| slot.key == *key).map(|(id, _)| id);
        visit(slot, key, observation);
    }
}
