//! How good probabilities are.
//!
//! It knows probabilities and labels only. Invariant: every figure is between 0 and 1, and is 0 where there is
//! nothing to measure.

/// Bins of the calibration error. Source: Guo et al. 2017, §3.
const BINS: usize = 15;

/// Figures over one evaluated set.
#[derive(Debug, Clone, PartialEq)]
pub struct Metrics {
    /// Examples.
    pub count: usize,
    /// Share whose most probable class is right.
    pub top1: f64,
    /// Unweighted mean over classes of F1.
    pub macro_f1: f64,
    /// Expected calibration error over 15 bins of the top probability.
    pub calibration_error: f64,
    /// `confusion[true][predicted]`, counts.
    pub confusion: Vec<Vec<usize>>,
}

impl Metrics {
    /// Measures probabilities against labels. `classes` is the length of every row.
    #[must_use]
    pub fn of(rows: &[(Vec<f32>, usize)], classes: usize) -> Self {
        let mut confusion = vec![vec![0_usize; classes]; classes];
        let mut bins = [(0_usize, 0_usize, 0.0_f64); BINS];
        for (probabilities, label) in rows {
            let Some((predicted, confidence)) = largest(probabilities) else {
                continue;
            };
            if let Some(cell) = confusion.get_mut(*label).and_then(|row| row.get_mut(predicted)) {
                *cell += 1;
            }
            let bin = ((f64::from(confidence) * BINS as f64) as usize).min(BINS - 1);
            if let Some((count, right, sum)) = bins.get_mut(bin) {
                *count += 1;
                *right += usize::from(predicted == *label);
                *sum += f64::from(confidence);
            }
        }
        let right = bins.iter().map(|(_, right, _)| right).sum::<usize>();
        let gaps = bins.iter().map(|(_, right, sum)| (*right as f64 - sum).abs()).sum::<f64>();
        let count = rows.len();
        Self {
            count,
            top1: ratio(right as f64, count),
            macro_f1: macro_f1(&confusion),
            calibration_error: ratio(gaps, count),
            confusion,
        }
    }
}

/// What is reported at a threshold: the most probable label, when it reaches it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reported {
    /// The threshold.
    pub threshold: f32,
    /// Share of the reported labels that are right.
    pub precision: f64,
    /// Share of the examples with a label to report whose label is reported.
    pub recall: f64,
}

impl Reported {
    /// Measures probabilities against labels; `quiet` is a label that is never reported.
    pub(crate) fn of(rows: &[(Vec<f32>, usize)], threshold: f32, quiet: Option<usize>) -> Self {
        let (mut reported, mut right, mut wanted) = (0_usize, 0_usize, 0_usize);
        for (probabilities, label) in rows {
            wanted += usize::from(Some(*label) != quiet);
            let found = largest(probabilities).filter(|(class, p)| *p >= threshold && Some(*class) != quiet);
            if let Some((class, _)) = found {
                reported += 1;
                right += usize::from(class == *label);
            }
        }
        Self { threshold, precision: ratio(right as f64, reported), recall: ratio(right as f64, wanted) }
    }
}

/// The probability that an example of class 1 has a higher score than one of class 0; ties count half.
/// `rows` pair a score with whether the class is 1.
#[must_use]
pub fn auroc(rows: &[(f32, bool)]) -> f64 {
    let mut sorted = rows.to_vec();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let positives = rows.iter().filter(|row| row.1).count();
    let negatives = rows.len() - positives;
    let (mut below, mut wins) = (0_usize, 0.0);
    for tied in sorted.chunk_by(|left, right| left.0 == right.0) {
        let positive = tied.iter().filter(|row| row.1).count();
        let negative = tied.len() - positive;
        wins += positive as f64 * (below as f64 + negative as f64 / 2.0);
        below += negative;
    }
    ratio(wins, positives * negatives)
}

fn macro_f1(confusion: &[Vec<usize>]) -> f64 {
    let sum: f64 = (0..confusion.len())
        .map(|class| {
            let cell = |row: &Vec<usize>| row.get(class).copied().unwrap_or_default();
            let right = confusion.get(class).map_or(0, cell);
            let actual: usize = confusion.get(class).map_or(0, |row| row.iter().sum());
            let predicted: usize = confusion.iter().map(cell).sum();
            ratio(2.0 * right as f64, actual + predicted)
        })
        .sum();
    ratio(sum, confusion.len())
}

fn largest(probabilities: &[f32]) -> Option<(usize, f32)> {
    let places = probabilities.iter().copied().enumerate();
    places.max_by(|left, right| left.1.total_cmp(&right.1))
}

fn ratio(part: f64, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_a_small_table() {
        let rows = [(vec![0.9, 0.1], 0), (vec![0.9, 0.1], 1), (vec![0.2, 0.8], 1), (vec![0.3, 0.7], 1)];
        let metrics = Metrics::of(&rows, 2);
        assert_eq!(metrics.confusion, vec![vec![1, 0], vec![1, 2]]);
        assert_eq!(metrics.top1, 0.75);
        // F1 of class 0 is 2/3, of class 1 is 4/5.
        assert!((metrics.macro_f1 - (2.0 / 3.0 + 0.8) / 2.0).abs() < 1e-9);
        // Bins: two at .9 with one right (gap .8), one at .8 (gap .2), one at .7 (gap .3).
        assert!((metrics.calibration_error - (0.8 + 0.2 + 0.3) / 4.0).abs() < 1e-6);
    }

    #[test]
    fn what_is_reported_leaves_out_the_unsure_and_the_quiet() {
        let rows = [
            (vec![0.1, 0.9, 0.0], 1),
            (vec![0.1, 0.9, 0.0], 2),
            (vec![0.1, 0.3, 0.6], 2),
            (vec![0.8, 0.1, 0.1], 1),
            (vec![0.9, 0.1, 0.0], 0),
        ];
        let reported = Reported::of(&rows, 0.7, Some(0));
        assert_eq!((reported.precision, reported.recall), (0.5, 0.25));
        assert_eq!(Reported::of(&[], 0.7, None).recall, 0.0);
    }

    #[test]
    fn auroc_counts_ties_half() {
        let rows = [(0.1, false), (0.4, true), (0.4, false), (0.8, true)];
        assert_eq!(auroc(&rows), 3.5 / 4.0);
        assert_eq!(auroc(&[(0.3, true)]), 0.0);
    }

    #[test]
    fn nothing_measured_is_zero() {
        let metrics = Metrics::of(&[], 3);
        assert_eq!((metrics.count, metrics.top1, metrics.macro_f1), (0, 0.0, 0.0));
    }
}
