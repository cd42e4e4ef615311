//! The artifact of `svm`: one linear machine a model.

use super::clusters::Clusters;
use super::graded::Graded;
use crate::regression::dot;
use chorus_select::learned::{Card, Tensor};
use std::collections::BTreeMap;

/// Strength of the penalty on weights.
const PENALTY: f32 = 1e-4;

/// Passes over the data.
const PASSES: usize = 20;

/// A stride that visits every example once a pass, in an order without runs of one task.
const STRIDE: usize = 2_741;

/// Card and tables.
pub(super) fn fit(card: Card, train: &Graded) -> (Card, BTreeMap<String, Tensor>) {
    let (mut tensors, guard) = Clusters::of(train).anchors(train);
    let machines: Vec<(Vec<f32>, f32)> = (0..train.models.len()).map(|model| machine(train, model)).collect();
    let weights = machines.iter().flat_map(|(weights, _)| weights.iter().copied()).collect();
    let biases = machines.iter().map(|(_, bias)| *bias).collect();
    tensors.insert("weight".to_owned(), Tensor::new(train.dimension, weights));
    tensors.insert("bias".to_owned(), Tensor::new(train.models.len(), biases));
    (Card { guard: Some(guard), ..card }, tensors)
}

/// A hinge loss by stochastic subgradients, averaged over the second half of the way. Source: Pegasos
/// (Shalev-Shwartz et al. 2007).
fn machine(train: &Graded, model: usize) -> (Vec<f32>, f32) {
    let rows: Vec<(&[f32], f32)> = train
        .rows()
        .zip(train.grades())
        .map(|(row, grades)| (row, if grades.get(model).is_some_and(|it| *it >= 0.5) { 1.0 } else { -1.0 }))
        .collect();
    let mut weights = vec![0.0f32; train.dimension];
    let mut bias = 0.0f32;
    let mut sum = (vec![0.0f32; train.dimension], 0.0f32);
    let steps = rows.len() * PASSES;
    let mut averaged = 0.0f32;
    for step in 0..steps {
        let Some((row, side)) = rows.get((step * STRIDE) % rows.len().max(1)) else { break };
        let rate = 1.0 / (PENALTY * (step as f32 + 1.0 / PENALTY));
        let margin = side * (dot(&weights, row) + bias);
        weights.iter_mut().for_each(|it| *it *= 1.0 - rate * PENALTY);
        if margin < 1.0 {
            weights.iter_mut().zip(*row).for_each(|(weight, it)| *weight += rate * side * it);
            bias += 0.1 * rate * side;
        }
        if step >= steps / 2 {
            sum.0.iter_mut().zip(&weights).for_each(|(sum, it)| *sum += it);
            sum.1 += bias;
            averaged += 1.0;
        }
    }
    let count = averaged.max(1.0);
    (sum.0.into_iter().map(|it| it / count).collect(), sum.1 / count)
}
