//! Strengths of items from rankings of some of them.

use std::collections::BTreeMap;

/// Wins and losses of each item against one of strength 0 that are added to what was seen, so that an item that only won
/// has a finite strength.
const PRIOR: f64 = 0.5;
/// Most rounds.
const MAX_ROUNDS: usize = 10_000;
/// Largest change of a strength, in logits, that counts as none.
const TOLERANCE: f64 = 1e-10;

/// One strength an item, in logits: `P(i beats j) = σ(r_i − r_j)`. Each ranking lists items from 0 to `items` − 1, the best
/// first, in whole or in part; others are left out. An item that nobody ranked has strength 0.
///
/// Source: Bradley and Terry 1952; the minorise–maximise iteration of Hunter 2004, §3, with a prior of half a win and half
/// a loss.
#[must_use]
pub fn bradley_terry(items: usize, rankings: &[Vec<usize>]) -> Vec<f64> {
    let (wins, meetings) = tally(items, rankings);
    let mut strengths = vec![1.0; items];
    for _ in 0..MAX_ROUNDS {
        let next: Vec<f64> = strengths
            .iter()
            .zip(wins.iter().zip(&meetings))
            .map(|(own, (won, met))| {
                let each = met
                    .iter()
                    .filter_map(|(other, count)| strengths.get(*other).map(|other| count / (own + other)));
                (won + PRIOR) / (each.sum::<f64>() + 2.0 * PRIOR / (own + 1.0))
            })
            .collect();
        let change = next.iter().zip(&strengths).map(|(a, b): (&f64, &f64)| (a / b).ln().abs());
        let done = change.fold(0.0, f64::max) < TOLERANCE;
        strengths = next;
        if done {
            break;
        }
    }
    strengths.into_iter().map(f64::ln).collect()
}

/// Wins of each item, and how often it met each other one.
fn tally(items: usize, rankings: &[Vec<usize>]) -> (Vec<f64>, Vec<BTreeMap<usize, f64>>) {
    let mut wins = vec![0.0; items];
    let mut meetings = vec![BTreeMap::new(); items];
    for ranking in rankings {
        let known: Vec<usize> = ranking.iter().copied().filter(|item| *item < items).collect();
        for (place, winner) in known.iter().enumerate() {
            for loser in known.iter().skip(place + 1).filter(|loser| *loser != winner) {
                wins.get_mut(*winner).into_iter().for_each(|won| *won += 1.0);
                for (one, other) in [(winner, loser), (loser, winner)] {
                    let met = meetings.get_mut(*one).into_iter();
                    met.for_each(|met| *met.entry(*other).or_insert(0.0) += 1.0);
                }
            }
        }
    }
    (wins, meetings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn two_items_have_a_closed_form() {
        // Three wins to one. At the maximum each item's expected wins are its wins: r and −r by symmetry, with
        // 4σ(2r) + σ(r) = 3 + ½.
        let strengths = bradley_terry(2, &[vec![0, 1], vec![0, 1], vec![0, 1], vec![1, 0]]);
        let sigma = |x: f64| 1.0 / (1.0 + (-x).exp());
        let r = strengths[0];
        assert!((strengths[1] + r).abs() < 1e-6 && r > 0.0);
        assert!((4.0 * sigma(2.0 * r) + sigma(r) - 3.5).abs() < 1e-6, "{r}");
    }

    #[test]
    fn order_and_bounds() {
        assert!(bradley_terry(0, &[]).is_empty());
        assert_eq!(bradley_terry(2, &[]), [0.0, 0.0]);
        let strengths = bradley_terry(4, &[vec![2, 0, 1], vec![2, 1, 9]]);
        assert!(strengths[2] > strengths[0] && strengths[0] > strengths[1]);
        assert!(strengths[3].abs() < 1e-9 && strengths.iter().all(|r| r.is_finite()));
    }

    proptest! {
        #[test]
        fn what_always_wins_is_strongest_and_all_is_finite(
            rankings in prop::collection::vec(Just(vec![1usize, 2, 3]).prop_shuffle(), 1..8),
        ) {
            let led: Vec<Vec<usize>> = rankings.into_iter().map(|r| [vec![0], r].concat()).collect();
            let strengths = bradley_terry(4, &led);
            prop_assert!(strengths.iter().all(|r| r.is_finite()));
            prop_assert!(strengths[1..].iter().all(|r| *r < strengths[0]));
        }
    }
}
