//! Quantities of different units brought to one scale over the candidates. It knows no quantity.

/// Stretches what is known to 0..=1 over the candidates; where all are equal, each is 1.
/// Source: contract §1.7 (`multi_factor`: min-max normalise).
pub(crate) fn min_max(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let known = || values.iter().copied().flatten();
    let least = known().fold(f64::INFINITY, f64::min);
    let span = known().fold(f64::NEG_INFINITY, f64::max) - least;
    let share = |value: f64| if span > 0.0 { (value - least) / span } else { 1.0 };
    values.iter().map(|value| value.map(share)).collect()
}

/// [`min_max`] of quantities of which less is better.
pub(crate) fn max_min(values: &[Option<f64>]) -> Vec<Option<f64>> {
    let negated: Vec<Option<f64>> = values.iter().map(|value| value.map(|value| -value)).collect();
    min_max(&negated)
}

/// The weighted mean of what is known of one candidate; `None` where nothing with a weight is.
pub(crate) fn weighted(parts: &[(f64, Option<f64>)]) -> Option<f64> {
    let known = || parts.iter().filter_map(|(weight, value)| value.map(|value| (*weight, value)));
    let sum: f64 = known().map(|(weight, _)| weight).sum();
    (sum > 0.0).then(|| known().map(|(weight, value)| weight * value).sum::<f64>() / sum)
}

/// The greatest probability and all of them, of scores at that temperature.
pub(crate) fn softmax(scores: &[Option<f64>], temperature: f64) -> Vec<Option<f64>> {
    let greatest = scores.iter().copied().flatten().fold(f64::NEG_INFINITY, f64::max);
    let weight = |score: f64| ((score - greatest) / temperature.max(f64::MIN_POSITIVE)).exp();
    let sum: f64 = scores.iter().copied().flatten().map(weight).sum();
    scores.iter().map(|score| score.map(|score| weight(score) / sum)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values_are_stretched_and_equal_ones_are_all_best() {
        assert_eq!(
            min_max(&[Some(1.0), None, Some(3.0), Some(2.0)]),
            [Some(0.0), None, Some(1.0), Some(0.5)]
        );
        assert_eq!(max_min(&[Some(1.0), Some(3.0)]), [Some(1.0), Some(0.0)]);
        assert_eq!(max_min(&[Some(0.0), Some(0.0)]), [Some(1.0), Some(1.0)]);
        assert_eq!(min_max(&[None]), [None]);
    }

    #[test]
    fn a_mean_is_over_what_is_known() {
        assert_eq!(weighted(&[(0.5, Some(1.0)), (0.5, None)]), Some(1.0));
        assert_eq!(weighted(&[(0.0, Some(1.0)), (1.0, None)]), None);
        let probabilities = softmax(&[Some(1.0), Some(1.0), None], 0.07);
        assert_eq!(probabilities, [Some(0.5), Some(0.5), None]);
    }
}
