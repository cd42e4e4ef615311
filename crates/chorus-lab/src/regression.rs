//! Multinomial logistic regression with an L2 penalty, and its temperature.
//!
//! It knows vectors and labels, no text. Invariant: the same rows in the same order give the same weights.
//! Source: Bishop 2006, "Pattern Recognition and Machine Learning", §4.3.4.

use crate::minimise::minimise;

/// Steps after which a fit stops; the held-out figures no longer move long before.
const ITERATIONS: usize = 300;
/// Gradient below which a fit has converged.
const TOLERANCE: f64 = 1e-6;

/// One labelled vector.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    /// The embedding.
    pub(crate) vector: &'a [f32],
    /// Its class.
    pub(crate) label: usize,
    /// How much it counts, > 0.
    pub(crate) weight: f32,
}

/// Fitted weights: one row and one bias a class.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Linear {
    /// Row-major, classes × dimension.
    pub(crate) weight: Vec<f32>,
    /// One a class.
    pub(crate) bias: Vec<f32>,
}

impl Linear {
    /// One logit a class.
    pub(crate) fn logits(&self, vector: &[f32]) -> Vec<f32> {
        let rows = self.weight.chunks(vector.len().max(1)).zip(&self.bias);
        rows.map(|(row, bias)| dot(row, vector) + bias).collect()
    }
}

/// Minimises the weighted mean of the cross-entropy plus `penalty`/2 times the squared weights (not the biases).
pub(crate) fn fit(rows: &[Row<'_>], classes: usize, penalty: f64) -> Linear {
    let dimension = rows.first().map_or(0, |row| row.vector.len());
    let total: f64 = rows.iter().map(|row| f64::from(row.weight)).sum();
    let weights = classes * dimension;
    let found = minimise(vec![0.0; weights + classes], ITERATIONS, TOLERANCE, |point| {
        let (weight, bias) = point.split_at(weights);
        let model = Linear { weight: narrow(weight), bias: narrow(bias) };
        let (mut value, mut gradient) = cross_entropy(rows, &model, total);
        for (slot, weight) in gradient.iter_mut().zip(weight) {
            value += penalty / 2.0 * weight * weight;
            *slot += penalty * weight;
        }
        (value, gradient)
    });
    let (weight, bias) = found.split_at(weights);
    Linear { weight: narrow(weight), bias: narrow(bias) }
}

/// Weighted mean of the cross-entropy and its gradient, weights first and biases after them.
fn cross_entropy(rows: &[Row<'_>], model: &Linear, total: f64) -> (f64, Vec<f64>) {
    let mut value = 0.0;
    let mut weight_gradient = vec![0.0_f32; model.weight.len()];
    let mut bias_gradient = vec![0.0_f64; model.bias.len()];
    for row in rows {
        let share = f64::from(row.weight) / total;
        let mut errors = log_softmax(model.logits(row.vector));
        value -= share * f64::from(errors.get(row.label).copied().unwrap_or_default());
        errors.iter_mut().for_each(|error| *error = error.exp());
        if let Some(error) = errors.get_mut(row.label) {
            *error -= 1.0;
        }
        let slots = weight_gradient.chunks_mut(row.vector.len().max(1));
        for ((slots, bias), error) in slots.zip(&mut bias_gradient).zip(errors) {
            let error = f64::from(error) * share;
            *bias += error;
            let error = error as f32;
            slots.iter_mut().zip(row.vector).for_each(|(slot, entry)| *slot += error * entry);
        }
    }
    (value, weight_gradient.into_iter().map(f64::from).chain(bias_gradient).collect())
}

/// Logits and the right class of each text of one kind.
pub(crate) type Scored = Vec<(Vec<f32>, usize)>;

/// A divisor of logits, and the loss that it leaves.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Tempered {
    /// The divisor, 1/4 to 4.
    pub(crate) temperature: f32,
    /// Negative log-likelihood a text in nats: the mean over kinds of the mean over the kind's texts.
    pub(crate) loss: f64,
}

/// The divisor of logits that makes probabilities honest: the least loss over a grid of logarithmic steps. Each kind
/// of text counts the same, however many it has; empty ones do not count.
/// Source: Guo et al. 2017, "On Calibration of Modern Neural Networks", §4.2.
pub(crate) fn temper(kinds: &[Scored]) -> Tempered {
    let kinds: Vec<&Scored> = kinds.iter().filter(|kind| !kind.is_empty()).collect();
    let grid = (-40..=40).map(|step| 2.0_f32.powf(step as f32 / 20.0));
    let tried = grid.map(|temperature| {
        let sum: f64 = kinds.iter().map(|kind| mean_loss(kind, temperature)).sum();
        Tempered { temperature, loss: sum / kinds.len().max(1) as f64 }
    });
    tried
        .min_by(|left, right| left.loss.total_cmp(&right.loss))
        .unwrap_or(Tempered { temperature: 1.0, loss: 0.0 })
}

fn mean_loss(scored: &Scored, temperature: f32) -> f64 {
    let losses = scored.iter().map(|(logits, label)| {
        let logits = logits.iter().map(|logit| logit / temperature).collect();
        -f64::from(log_softmax(logits).get(*label).copied().unwrap_or_default())
    });
    losses.sum::<f64>() / scored.len() as f64
}

/// Logarithms of softmax, shifted by the largest logit so that no exponential overflows.
pub(crate) fn log_softmax(mut logits: Vec<f32>) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let total: f32 = logits.iter().map(|logit| (logit - largest).exp()).sum();
    let shift = largest + total.ln();
    logits.iter_mut().for_each(|logit| *logit -= shift);
    logits
}

/// The dot product: eight running sums, so that the compiler may use vector registers. What is trained is bound to their order.
pub(crate) fn dot(left: &[f32], right: &[f32]) -> f32 {
    let (left, left_rest) = left.as_chunks::<8>();
    let (right, right_rest) = right.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (left, right) in left.iter().zip(right) {
        for ((sum, left), right) in sums.iter_mut().zip(left).zip(right) {
            *sum += left * right;
        }
    }
    let rest: f32 = left_rest.iter().zip(right_rest).map(|(left, right)| left * right).sum();
    sums.iter().sum::<f32>() + rest
}

fn narrow(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const POINTS: [([f32; 2], usize); 6] = [
        ([1.0, 0.1], 0),
        ([0.9, -0.2], 0),
        ([0.1, 1.0], 1),
        ([-0.2, 0.9], 1),
        ([-1.0, -0.9], 2),
        ([-0.8, -1.0], 2),
    ];

    fn rows() -> Vec<Row<'static>> {
        POINTS.iter().map(|(vector, label)| Row { vector, label: *label, weight: 1.0 }).collect()
    }

    fn largest(logits: &[f32]) -> usize {
        (0..logits.len()).max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap()
    }

    #[test]
    fn separable_classes_are_separated() {
        let model = fit(&rows(), 3, 1e-3);
        for row in rows() {
            assert_eq!(largest(&model.logits(row.vector)), row.label);
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let model = Linear { weight: vec![0.3, -0.2, 0.1, 0.4, -0.5, 0.2], bias: vec![0.1, 0.0, -0.1] };
        let (_, gradient) = cross_entropy(&rows(), &model, 6.0);
        let step = 1e-2;
        for (place, expected) in gradient.iter().enumerate().take(model.weight.len()) {
            let at = |shift: f32| {
                let mut moved = model.clone();
                moved.weight[place] += shift;
                cross_entropy(&rows(), &moved, 6.0).0
            };
            let slope = (at(step) - at(-step)) / f64::from(2.0 * step);
            assert!((slope - expected).abs() < 1e-4, "{place}: {slope} for {expected}");
        }
    }

    #[test]
    fn a_heavier_penalty_gives_smaller_weights() {
        let size =
            |penalty| fit(&rows(), 3, penalty).weight.iter().map(|weight| weight * weight).sum::<f32>();
        assert!(size(1.0) < size(0.01));
    }

    /// Always sure of class 0 by 4 nats, and right in so many of four.
    fn sure(right: usize, times: usize) -> Scored {
        (0..4 * times).map(|number| (vec![4.0, 0.0], usize::from(number % 4 >= right))).collect()
    }

    #[test]
    fn temperature_tames_overconfident_logits() {
        // Right three times in four: the honest margin is ln 3, and the loss is the entropy of (3/4, 1/4).
        let found = temper(&[sure(3, 1)]);
        assert!((found.temperature - 4.0 / 3.0_f32.ln()).abs() < 0.1, "{found:?}");
        assert!((found.loss - 0.5623).abs() < 1e-3, "{found:?}");
    }

    #[test]
    fn a_kind_of_few_texts_counts_as_much_as_one_of_many() {
        let few_and_many = temper(&[sure(2, 1), sure(4, 100)]);
        assert_eq!(few_and_many, temper(&[sure(2, 100), sure(4, 1), Vec::new()]));
        // Together they are right three times in four.
        assert_eq!(few_and_many.temperature, temper(&[sure(3, 1)]).temperature);
        assert_eq!(temper(&[]).loss, 0.0);
    }
}
