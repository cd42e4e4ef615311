//! Which decision wins.
//!
//! The contract's two orders are one: decisions with a tier above zero stand before all others, by tier, confidence,
//! priority, name; the others follow by the recipe's strategy. So a decision's place is two fixed numbers, its group
//! and its place among equals, with the confidence between them.
//!
//! Knows nothing of rules or evidence, only of bounds. **Invariant:** the order is total and does not depend on the
//! order in which decisions are listed. Source: contract v0.3 §1.6.

use crate::belief::Belief;
use chorus_spec::{Decision, Strategy};
use std::cmp::{Ordering, Reverse};

/// Where a decision stands apart from its confidence; smaller is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Rank {
    /// Decisions of one group are compared by confidence.
    pub(crate) group: usize,
    /// Breaks ties of confidence; unique.
    pub(crate) tie: usize,
}

/// The rank of each decision, in recipe order.
pub(crate) fn ranks(decisions: &[Decision], strategy: Strategy) -> Vec<Rank> {
    let class = |d: &Decision| match strategy {
        _ if d.tier > 0 => (0, d.tier, Reverse(0)),
        Strategy::Priority => (1, 0, Reverse(d.priority)),
        Strategy::Confidence => (1, 0, Reverse(0)),
    };
    let mut classes: Vec<_> = decisions.iter().map(class).collect();
    classes.sort_unstable();
    classes.dedup();
    let mut order: Vec<_> =
        decisions.iter().enumerate().map(|(i, d)| (Reverse(d.priority), d.name.as_str(), i)).collect();
    order.sort_unstable();
    let mut ranks: Vec<_> =
        order.iter().enumerate().map(|(tie, (_, _, decision))| (*decision, tie)).collect();
    ranks.sort_unstable();
    let group = |d: &Decision| classes.partition_point(|c| *c < class(d));
    decisions.iter().zip(ranks).map(|(d, (_, tie))| Rank { group: group(d), tie }).collect()
}

/// A decision's chances.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Standing {
    /// Its position in the recipe.
    pub(crate) decision: usize,
    pub(crate) belief: Belief,
    pub(crate) rank: Rank,
}

impl Standing {
    /// Whether it outranks `other` however the rest of the evidence turns out, provided that both hold.
    fn outranks(&self, other: &Self) -> bool {
        match self.rank.group.cmp(&other.rank.group) {
            Ordering::Less => true,
            Ordering::Greater => false,
            Ordering::Equal => {
                self.belief.low > other.belief.high
                    || self.belief.low >= other.belief.high && self.rank.tie < other.rank.tie
            }
        }
    }

    /// Whether confidence decides between it and one of the `others`.
    pub(crate) fn is_tied(&self, others: &[Self]) -> bool {
        others.iter().any(|other| {
            other.decision != self.decision
                && other.rank.group == self.rank.group
                && !self.outranks(other)
                && !other.outranks(self)
        })
    }
}

/// Those that may still win: they may hold, and nobody who holds for certain outranks them.
pub(crate) fn contenders(standings: &[Standing]) -> Vec<Standing> {
    let beaten = |it: &Standing| standings.iter().any(|other| other.belief.holds() && other.outranks(it));
    standings.iter().filter(|it| it.belief.can.may_hold() && !beaten(it)).copied().collect()
}

/// The best of those that hold, by what is known of their confidence.
pub(crate) fn winner(standings: &[Standing]) -> Option<Standing> {
    let order = |a: &&Standing, b: &&Standing| {
        a.rank
            .group
            .cmp(&b.rank.group)
            .then(b.belief.low.total_cmp(&a.belief.low))
            .then(a.rank.tie.cmp(&b.rank.tie))
    };
    standings.iter().filter(|s| s.belief.holds()).min_by(order).copied()
}
