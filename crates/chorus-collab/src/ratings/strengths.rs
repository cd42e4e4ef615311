//! Ratings from what is known of the components, without a call.

use super::plan::RatingsPlan;
use crate::answers::Survivor;

/// The chance that each answer is the best one, by the strengths of their models; the sum is 1. A model without a known
/// strength counts as the mean of the others.
///
/// Source: Luce's choice rule, `exp(r_i) / Σ exp(r_j)`, for which Bradley–Terry is the case of two.
pub(super) fn shares(plan: &RatingsPlan, answers: &[Survivor]) -> Vec<Option<f64>> {
    let known: Vec<Option<f64>> =
        answers.iter().map(|a| plan.strengths.get(a.seat).copied().flatten()).collect();
    luce(&known).into_iter().map(Some).collect()
}

fn luce(known: &[Option<f64>]) -> Vec<f64> {
    let (sum, count) = known.iter().flatten().fold((0.0, 0u32), |(sum, n), r| (sum + r, n + 1));
    let mean = sum / f64::from(count.max(1));
    let top = known.iter().flatten().copied().fold(mean, f64::max);
    let odds: Vec<f64> = known.iter().map(|r| (r.unwrap_or(mean) - top).exp()).collect();
    let total: f64 = odds.iter().sum();
    odds.iter().map(|odds| odds / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_follow_the_strengths_and_an_unknown_one_is_the_mean() {
        let close = |known: &[Option<f64>], want: &[f64]| {
            let got = luce(known);
            assert!(got.iter().zip(want).all(|(a, b)| (a - b).abs() < 1e-9), "{got:?}");
        };
        close(&[None, None], &[0.5, 0.5]);
        close(&[Some(3f64.ln()), Some(0.0)], &[0.75, 0.25]);
        close(&[Some(1.0), None, Some(1.0)], &[1.0 / 3.0; 3]);
        close(&[Some(900.0), Some(-900.0)], &[1.0, 0.0]);
    }
}
