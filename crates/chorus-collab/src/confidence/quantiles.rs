//! Means and quantiles. It knows no tokens.

/// 0 of nothing; the readers of log-probabilities give at least one.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> f64 {
    let (sum, count) = values.into_iter().fold((0.0, 0u32), |(sum, n), value| (sum + value, n + 1));
    sum / f64::from(count.max(1))
}

/// The quantile of ascending values, linear between neighbours; 0 of nothing.
pub(super) fn quantile(ascending: &[f64], at: f64) -> f64 {
    let place = at.clamp(0.0, 1.0) * ascending.len().saturating_sub(1) as f64;
    let below = ascending.get(place.floor() as usize).copied().unwrap_or_default();
    let above = ascending.get(place.ceil() as usize).copied().unwrap_or(below);
    below + (above - below) * place.fract()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_linear_between_neighbours() {
        let values = [-4.0, -2.0, -1.0, 0.0];
        for (at, want) in [(0.0, -4.0), (1.0, 0.0), (0.5, -1.5), (1.0 / 3.0, -2.0), (7.0, 0.0)] {
            assert!((quantile(&values, at) - want).abs() < 1e-12, "{at}");
        }
        assert_eq!(quantile(&[-3.0], 0.1), -3.0);
        assert_eq!(quantile(&[], 0.5), 0.0);
    }
}
