//! Who answers how many of a round's calls. Source: contract §2.4.

use super::shuffle::{Purpose, Random};
use crate::candidate::Candidate;
use chorus_spec::{Distribution, RemomSettings};

/// One model a seat, round by round.
pub(super) fn distribute(settings: &RemomSettings, candidates: &[Candidate]) -> Vec<Vec<String>> {
    let names: Vec<&str> = candidates.iter().map(|c| c.model.as_str()).collect();
    let mut turn = names.iter().cycle();
    let round = |(round, breadth): (usize, &usize)| -> Vec<String> {
        let seats: Vec<&str> = match settings.distribution {
            Distribution::FirstOnly => names.first().into_iter().cycle().take(*breadth).copied().collect(),
            Distribution::RoundRobin => turn.by_ref().take(*breadth).copied().collect(),
            Distribution::Equal => seated(&names, &vec![1.0; names.len()], *breadth),
            Distribution::Weighted => {
                let weights: Vec<f64> = candidates.iter().map(weight).collect();
                let mut seats = seated(&names, &weights, *breadth);
                Random::new(settings.shuffle_seed, Purpose::Seats, round).shuffle(&mut seats);
                seats
            }
        };
        seats.into_iter().map(str::to_owned).collect()
    };
    settings.breadth_schedule.iter().enumerate().map(round).collect()
}

/// A negative weight, or one that is no number, counts as none.
fn weight(candidate: &Candidate) -> f64 {
    candidate.weight.filter(|w| w.is_finite() && *w >= 0.0).unwrap_or(1.0)
}

/// The largest remainder method: each gets the whole part of its share, and what is left goes to the largest
/// remainders, the earlier one first. Without any weight all are equal.
fn seated<'a>(names: &[&'a str], weights: &[f64], breadth: usize) -> Vec<&'a str> {
    let total: f64 = weights.iter().sum();
    let share = |weight: &f64| {
        if total > 0.0 { weight / total * breadth as f64 } else { breadth as f64 / weights.len() as f64 }
    };
    let shares: Vec<f64> = weights.iter().map(share).collect();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most the breadth")]
    let mut seats: Vec<usize> = shares.iter().map(|share| share.floor() as usize).collect();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    let remainder = |at: &usize| shares.get(*at).map_or(0.0, |share| share.fract());
    order.sort_by(|a, b| remainder(b).total_cmp(&remainder(a)));
    let left = breadth.saturating_sub(seats.iter().sum());
    for at in order.into_iter().cycle().take(left) {
        if let Some(count) = seats.get_mut(at) {
            *count += 1;
        }
    }
    names.iter().zip(seats).flat_map(|(name, count)| std::iter::repeat_n(*name, count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(
        distribution: Distribution,
        weights: &[(&str, Option<f64>)],
        schedule: &[usize],
    ) -> Vec<Vec<String>> {
        let candidates: Vec<Candidate> = weights
            .iter()
            .map(|(model, weight)| Candidate {
                model: (*model).to_owned(),
                weight: *weight,
                ..Candidate::default()
            })
            .collect();
        let settings =
            RemomSettings { distribution, breadth_schedule: schedule.to_vec(), ..RemomSettings::default() };
        distribute(&settings, &candidates)
    }

    fn sorted(mut seats: Vec<String>) -> String {
        seats.sort();
        seats.concat()
    }

    #[test]
    fn shares_by_hand() {
        use Distribution::{Equal, FirstOnly, RoundRobin, Weighted};
        for (distribution, weights, schedule, want) in [
            (Weighted, vec![("a", Some(3.0)), ("b", Some(1.0))], vec![4], vec!["aaab"]),
            (Weighted, vec![("a", Some(0.5)), ("b", Some(0.3)), ("c", Some(0.2))], vec![5], vec!["aaabc"]),
            (Weighted, vec![("a", None), ("b", None), ("c", None)], vec![4, 2], vec!["aabc", "ab"]),
            (Weighted, vec![("a", Some(0.0)), ("b", Some(0.0))], vec![2], vec!["ab"]),
            (Weighted, vec![("a", Some(f64::NAN)), ("b", Some(-1.0))], vec![2], vec!["ab"]),
            (Equal, vec![("a", Some(9.0)), ("b", Some(1.0))], vec![4], vec!["aabb"]),
            (RoundRobin, vec![("a", None), ("b", None), ("c", None)], vec![2, 2], vec!["ab", "ac"]),
            (FirstOnly, vec![("a", None), ("b", None)], vec![3], vec!["aaa"]),
        ] {
            let got: Vec<String> =
                rounds(distribution, &weights, &schedule).into_iter().map(sorted).collect();
            assert_eq!(got, want, "{distribution:?} {weights:?}");
        }
    }

    #[test]
    fn the_order_of_weighted_seats_is_the_seed_s() {
        let weights = [("a", None), ("b", None), ("c", None)];
        assert_eq!(
            rounds(Distribution::Weighted, &weights, &[9]),
            rounds(Distribution::Weighted, &weights, &[9])
        );
    }
}
