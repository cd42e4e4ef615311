//! Fits the injection head: logistic regression over a vector and sparse features, its folds, and its scale.
//!
//! It knows numbers and no text. Invariant: the same rows in the same order give the same weights; a threshold is chosen
//! on scores that a model gave to rows it had not seen. Source: Bishop 2006, "Pattern Recognition and Machine
//! Learning", §4.3.4.

use crate::minimise::minimise;
use crate::regression::{Scored, temper};

/// Steps after which a fit stops; the held-out figures no longer move long before.
const ITERATIONS: usize = 150;
/// Gradient below which a fit has converged.
const TOLERANCE: f64 = 1e-7;
/// The L2 penalty. Held-out texts hardly tell it from a third of it, and like thrice of it less.
pub(crate) const PENALTY: f64 = 2e-6;
/// How much longer than one kind of features the vector counts.
const DENSE_SCALE: f32 = 1.5;

/// One labelled text as numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MixedRow<'a> {
    /// The encoder's vector; empty for a model without.
    pub(crate) vector: &'a [f32],
    /// Places and values.
    pub(crate) features: &'a [(u32, f32)],
    /// Whether it is an attempt.
    pub(crate) attack: bool,
    /// How much it counts, > 0.
    pub(crate) weight: f32,
}

/// Weights of a vector, of features, and a bias.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MixedModel {
    pub(crate) dense: Vec<f32>,
    pub(crate) sparse: Vec<f32>,
    pub(crate) bias: f32,
}

impl MixedModel {
    /// The logit of an attempt.
    pub(crate) fn logit(&self, row: &MixedRow<'_>) -> f32 {
        let dense: f32 = self.dense.iter().zip(row.vector).map(|(weight, value)| weight * value).sum();
        let weight = |place: u32| self.sparse.get(place as usize).copied().unwrap_or_default();
        dense + row.features.iter().map(|(place, value)| weight(*place) * value).sum::<f32>() + self.bias
    }

    /// The same model with `slope` times its logits, moved so that what had `from` has `to`.
    pub(crate) fn rescaled(mut self, slope: f32, from: f32, to: f32) -> Self {
        self.dense.iter_mut().chain(&mut self.sparse).for_each(|weight| *weight *= slope);
        self.bias = (self.bias - from) * slope + to;
        self
    }
}

/// Minimises the weighted mean of the logistic loss plus [`PENALTY`]/2 times the squared weights (not the bias).
pub(crate) fn fit(rows: &[MixedRow<'_>], dimension: usize, places: usize) -> MixedModel {
    let total: f64 = rows.iter().map(|row| f64::from(row.weight)).sum();
    let found = minimise(vec![0.0; dimension + places + 1], ITERATIONS, TOLERANCE, |point| {
        let model = model(point, dimension);
        let (mut value, mut gradient) = loss(rows, &model, total);
        let weights = point.len() - 1;
        for (slot, weight) in gradient.iter_mut().zip(point).take(weights) {
            value += PENALTY / 2.0 * weight * weight;
            *slot += PENALTY * weight;
        }
        (value, gradient)
    });
    model(&found, dimension)
}

/// A point of the search as a model: the vector's weights are for [`DENSE_SCALE`] times the vector.
fn model(point: &[f64], dimension: usize) -> MixedModel {
    let (dense, rest) = point.split_at(dimension);
    let (bias, sparse) = rest.split_last().map_or((0.0, rest), |(bias, sparse)| (*bias, sparse));
    let narrow = |values: &[f64], scale: f32| values.iter().map(|value| *value as f32 * scale).collect();
    MixedModel { dense: narrow(dense, DENSE_SCALE), sparse: narrow(sparse, 1.0), bias: bias as f32 }
}

/// Weighted mean of the logistic loss and its gradient by the point of the search.
fn loss(rows: &[MixedRow<'_>], model: &MixedModel, total: f64) -> (f64, Vec<f64>) {
    let mut value = 0.0;
    let mut dense = vec![0.0_f64; model.dense.len()];
    let mut sparse = vec![0.0_f64; model.sparse.len()];
    let mut bias = 0.0;
    for row in rows {
        let share = f64::from(row.weight) / total;
        let logit = f64::from(model.logit(row));
        let target = f64::from(u8::from(row.attack));
        // ln(1 + e^z) − y·z, without overflow.
        value += share * (logit.max(0.0) + (-logit.abs()).exp().ln_1p() - target * logit);
        let error = share * (1.0 / (1.0 + (-logit).exp()) - target);
        bias += error;
        let scaled = error * f64::from(DENSE_SCALE);
        dense.iter_mut().zip(row.vector).for_each(|(slot, entry)| *slot += scaled * f64::from(*entry));
        for (place, entry) in row.features {
            if let Some(slot) = sparse.get_mut(*place as usize) {
                *slot += error * f64::from(*entry);
            }
        }
    }
    dense.append(&mut sparse);
    dense.push(bias);
    (value, dense)
}

/// How logits become the head's scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    /// What logits are multiplied by.
    pub(crate) slope: f32,
    /// The logit at which `recall` of the reference's attempts are found.
    pub(crate) threshold: f32,
    /// The share of its harmless texts that are above it.
    pub(crate) false_positives: f64,
}

/// The scale that logits of unseen reference rows ask for: the threshold for a recall, and one temperature.
pub(crate) fn scale(unseen: &[(f32, bool)], recall: f64) -> Scale {
    let mut attacks: Vec<f32> =
        unseen.iter().filter(|(_, attack)| *attack).map(|(logit, _)| *logit).collect();
    attacks.sort_by(f32::total_cmp);
    let missed = (attacks.len() as f64 * (1.0 - recall)) as usize;
    let threshold = attacks.get(missed).copied().unwrap_or_default();
    let harmless: Vec<f32> = unseen.iter().filter(|(_, attack)| !*attack).map(|(logit, _)| *logit).collect();
    let above = harmless.iter().filter(|logit| **logit >= threshold).count();
    let scored: Scored =
        unseen.iter().map(|(logit, attack)| (vec![0.0, *logit], usize::from(*attack))).collect();
    Scale {
        slope: 1.0 / temper(&[scored]).temperature,
        threshold,
        false_positives: above as f64 / harmless.len().max(1) as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEATURES: [&[(u32, f32)]; 4] =
        [&[(0, 1.0)], &[(0, 0.6), (2, 0.8)], &[(1, 1.0)], &[(1, 0.6), (2, 0.8)]];
    const VECTORS: [[f32; 2]; 4] = [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [-0.1, 0.9]];

    fn rows() -> Vec<MixedRow<'static>> {
        let pairs = FEATURES.iter().zip(&VECTORS).enumerate();
        pairs
            .map(|(at, (features, vector))| MixedRow { vector, features, attack: at < 2, weight: 1.0 })
            .collect()
    }

    #[test]
    fn separable_rows_are_separated() {
        let found = fit(&rows(), 2, 3);
        for row in rows() {
            assert_eq!(found.logit(&row) > 0.0, row.attack, "{found:?}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_the_value() {
        let point = [0.3, -0.2, 0.1, 0.4, -0.5, 0.2];
        let (_, gradient) = loss(&rows(), &model(&point, 2), 4.0);
        for place in 0..point.len() {
            let at = |shift: f64| {
                let mut moved = point;
                moved[place] += shift;
                loss(&rows(), &model(&moved, 2), 4.0).0
            };
            let slope = (at(1e-3) - at(-1e-3)) / 2e-3;
            assert!((slope - gradient[place]).abs() < 1e-3, "{place}: {slope} for {}", gradient[place]);
        }
    }

    #[test]
    fn a_rescaled_model_has_its_threshold_where_it_was_asked_for() {
        let found = fit(&rows(), 2, 3);
        let before = found.logit(&rows()[1]);
        let scaled = found.clone().rescaled(0.5, before, 0.8);
        assert!((scaled.logit(&rows()[1]) - 0.8).abs() < 1e-4);
        let other = found.logit(&rows()[2]);
        assert!((scaled.logit(&rows()[2]) - (0.8 + 0.5 * (other - before))).abs() < 1e-3);
    }

    #[test]
    fn the_threshold_finds_the_asked_share() {
        let mut unseen: Vec<(f32, bool)> = (0..100).map(|n| (n as f32, true)).collect();
        unseen.extend((0..100).map(|n| (n as f32 - 90.0, false)));
        let found = scale(&unseen, 0.95);
        assert_eq!(found.threshold, 5.0);
        assert_eq!(found.false_positives, 0.05);
    }
}
