//! Partitions: of several signals at most one stays matched.
//!
//! Knows nothing of decisions. The greatest confidence wins; among equals the member that is listed first. Where two
//! or more matched and the semantics is softmax, the winner's confidence becomes its share,
//! `exp(c/t) / Σ exp(cᵢ/t)`; a lone contender shares with nobody and keeps its own. The default member wins with
//! confidence 0 if none matched. Source: contract v0.3 §1.5.
//!
//! **Invariant:** while one member is absent or unasked no member is the winner, for the missing one could be.

use crate::facts::{Facts, State, hindrance};
use crate::program::{PartitionStep, Program, SlotId};
use crate::trace::{PartitionContender, PartitionResolution};
use chorus_spec::PartitionSemantics;

/// How a partition came out.
#[derive(Debug)]
pub(crate) struct Resolution {
    /// Matched members with their confidence, in the partition's order.
    contenders: Vec<(SlotId, f64)>,
    /// Softmax shares, one for each contender; empty without softmax.
    shares: Vec<f64>,
    winner: Option<Winner>,
}

#[derive(Debug, Clone, Copy)]
struct Winner {
    slot: SlotId,
    raw: f64,
    confidence: f64,
    by_default: bool,
}

/// Settles the members; `None` while the outcome is open.
pub(crate) fn resolve(step: &PartitionStep, facts: &mut Facts) -> Option<Resolution> {
    let contenders: Vec<_> = step
        .members
        .iter()
        .filter_map(|slot| match facts.state(*slot) {
            State::Matched(confidence) => Some((*slot, confidence)),
            _ => None,
        })
        .collect();
    if let Some(state) = hindrance(step.members.iter().map(|m| facts.state(*m))) {
        hinder(step, state, &contenders, facts);
        return None;
    }
    let shares = match step.semantics {
        PartitionSemantics::SoftmaxExclusive { temperature } if contenders.len() > 1 => {
            softmax(&contenders, temperature)
        }
        _ => Vec::new(),
    };
    let winner = choose(step, &contenders, &shares);
    for (slot, _) in &contenders {
        facts.settle(*slot, State::Unmatched);
    }
    if let Some(winner) = winner {
        facts.settle(winner.slot, State::matched(winner.confidence));
    }
    Some(Resolution { contenders, shares, winner })
}

/// Passes the hindrance on to the members whose fate depends on it: those that matched, else the default.
fn hinder(step: &PartitionStep, state: State, contenders: &[(SlotId, f64)], facts: &mut Facts) {
    for (slot, _) in contenders {
        facts.settle(*slot, state);
    }
    let default = step.default.filter(|d| facts.state(*d) == State::Unmatched);
    if let (Some(default), true) = (default, contenders.is_empty()) {
        // Any pending member may still match and so settle that the default does not stand in.
        let pending = step.members.iter().any(|m| facts.state(*m) == State::Pending);
        facts.settle(default, if pending { State::Pending } else { state });
    }
}

fn choose(step: &PartitionStep, contenders: &[(SlotId, f64)], shares: &[f64]) -> Option<Winner> {
    let mut best: Option<Winner> = None;
    for (at, (slot, raw)) in contenders.iter().enumerate() {
        if best.is_none_or(|b| *raw > b.raw) {
            let confidence = shares.get(at).copied().unwrap_or(*raw);
            best = Some(Winner { slot: *slot, raw: *raw, confidence, by_default: false });
        }
    }
    best.or(step.default.map(|slot| Winner { slot, raw: 0.0, confidence: 0.0, by_default: true }))
}

fn softmax(contenders: &[(SlotId, f64)], temperature: f64) -> Vec<f64> {
    let greatest = contenders.iter().fold(f64::NEG_INFINITY, |max, (_, c)| max.max(*c));
    let powers: Vec<_> = contenders.iter().map(|(_, c)| ((c - greatest) / temperature).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|p| p / sum).collect()
}

/// The resolution for people.
pub(crate) fn trace(step: &PartitionStep, it: &Resolution, program: &Program) -> PartitionResolution {
    let name = |slot: SlotId| program.slots.get(slot).map(|s| s.key.name().to_owned()).unwrap_or_default();
    let (semantics, temperature) = match step.semantics {
        PartitionSemantics::Exclusive => ("exclusive", None),
        PartitionSemantics::SoftmaxExclusive { temperature } => ("softmax_exclusive", Some(temperature)),
    };
    let contender = |(at, (slot, raw)): (usize, &(SlotId, f64))| PartitionContender {
        name: name(*slot),
        raw_score: *raw,
        normalized_score: it.shares.get(at).copied(),
    };
    PartitionResolution {
        group_name: step.name.clone(),
        signal_type: step.family,
        semantics,
        temperature,
        contenders: it.contenders.iter().enumerate().map(contender).collect(),
        winner: it.winner.map(|w| name(w.slot)),
        winner_score: it.winner.map(|w| w.confidence),
        raw_winner_score: it.winner.map(|w| w.raw),
        margin: margin(it),
        default_used: it.winner.is_some_and(|w| w.by_default),
    }
}

fn margin(it: &Resolution) -> Option<f64> {
    let mut compared: Vec<_> =
        if it.shares.is_empty() { it.contenders.iter().map(|c| c.1).collect() } else { it.shares.clone() };
    compared.sort_unstable_by(|a, b| b.total_cmp(a));
    Some(compared.first()? - compared.get(1)?)
}
