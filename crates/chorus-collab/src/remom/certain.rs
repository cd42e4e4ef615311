//! When more answers would not change the leader.

use super::plan::RemomPlan;
use crate::answers::Survivor;
use crate::calls::{Enough, Member};
use crate::extract::final_answer;
use std::collections::BTreeMap;

/// Ends a round of the plan once its leader is certain and the quorum is there; a plan without that wish never ends
/// early.
pub(super) fn enough(plan: &RemomPlan, seats: usize) -> Box<Enough> {
    match plan.stop_when_certain {
        Some(wanted) => {
            let required = plan.required(seats);
            Box::new(move |members| {
                let votes = votes(members);
                let (first, second) = leaders(&votes);
                let usable: u32 = votes.iter().sum();
                usable as usize >= required && first > second && stays_ahead(first, second) >= wanted
            })
        }
        None => Box::new(|_| false),
    }
}

/// How many of the usable answers say the same, for each thing that is said. Answers without a short solution say
/// something of their own.
fn votes(members: &[Member]) -> Vec<u32> {
    let mut votes: BTreeMap<String, u32> = BTreeMap::new();
    for (at, member) in members.iter().enumerate() {
        let Ok(reply) = &member.outcome else { continue };
        let Ok(survivor) = Survivor::new(member.seat, reply.clone()) else { continue };
        let answer = final_answer(&survivor.text).unwrap_or_else(|| format!("\0{at}"));
        *votes.entry(answer).or_default() += 1;
    }
    votes.into_values().collect()
}

/// The most votes, and the next most.
fn leaders(votes: &[u32]) -> (u32, u32) {
    votes.iter().fold(
        (0, 0),
        |(first, second), &n| {
            if n > first { (n, first) } else { (first, second.max(n)) }
        },
    )
}

/// The probability that the leader is the more frequent of the two, given its `first` votes and the other's `second`:
/// 1 − I½(first + 1, second + 1), the posterior of a uniform prior.
///
/// For whole numbers I½(a, b) is the chance of at least `a` heads in `a + b − 1` throws of a fair coin. Source: the
/// adaptive stopping of self-consistency (Aggarwal et al. 2023, arXiv 2305.11860, with a Beta posterior).
fn stays_ahead(first: u32, second: u32) -> f64 {
    let (a, throws) = (first + 1, first + second + 1);
    let mut term = 0.5_f64.powi(i32::try_from(throws).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for heads in 0..a {
        below += term;
        term *= f64::from(throws - heads) / f64::from(heads + 1);
    }
    below.min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_posterior_by_hand() {
        // One vote against none: ¾. Three against none: 15⁄16. Two against one: (1+4+6)/16.
        for (first, second, want) in
            [(1, 0, 0.75), (3, 0, 0.9375), (4, 0, 0.96875), (2, 1, 0.6875), (1, 1, 0.5)]
        {
            assert!((stays_ahead(first, second) - want).abs() < 1e-12, "{first} to {second}");
        }
        assert!(stays_ahead(200, 20) > 0.999_999);
    }
}
