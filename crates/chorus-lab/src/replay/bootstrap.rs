//! How far a figure may be off: the percentile bootstrap over questions, seeded.
//!
//! Source: Efron and Tibshirani (1993), chapter 13. **Invariant:** the same values give the same interval.

/// Resamples.
const SAMPLES: usize = 1000;
/// Of each tail, in percent.
const TAIL: f64 = 2.5;
const SEED: u64 = 42;

/// An interval that covers 95% of resampled figures.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// The interval of a figure over `count` questions; `figure` is given the numbers of the questions drawn.
pub(super) fn interval(count: usize, figure: impl Fn(&[usize]) -> f64) -> Interval {
    if count == 0 {
        return Interval::default();
    }
    let mut state = SEED;
    let mut drawn = vec![0; count];
    let mut figures: Vec<f64> = (0..SAMPLES)
        .map(|_| {
            drawn.fill_with(|| (next(&mut state) % count as u64) as usize);
            figure(&drawn)
        })
        .collect();
    figures.sort_by(f64::total_cmp);
    let at = |percent: f64| {
        let place = (percent / 100.0 * (SAMPLES - 1) as f64).round() as usize;
        figures.get(place).copied().unwrap_or_default()
    };
    Interval { low: at(TAIL), high: at(100.0 - TAIL) }
}

/// SplitMix64.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mean_lies_in_its_interval_and_a_constant_has_none() {
        let values: Vec<f64> = (0..400).map(|at| f64::from(at % 2)).collect();
        let mean = |drawn: &[usize]| drawn.iter().map(|at| values[*at]).sum::<f64>() / drawn.len() as f64;
        let found = interval(values.len(), mean);
        // The standard error of the mean is 0.025.
        assert!((0.44..0.46).contains(&found.low) && (0.54..0.56).contains(&found.high), "{found:?}");
        assert_eq!(found, interval(values.len(), mean));
        assert_eq!(interval(10, |_| 3.0), Interval { low: 3.0, high: 3.0 });
        assert_eq!(interval(0, |_| 3.0), Interval::default());
    }
}
