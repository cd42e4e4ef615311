//! The artifact of `mlp`: one hidden layer, one output a model.

use super::clusters::Clusters;
use super::graded::Graded;
use crate::regression::dot;
use chorus_select::learned::{Card, Tensor};
use std::collections::BTreeMap;

/// Numbers of the hidden layer.
const HIDDEN: usize = 64;

/// Passes over the data.
const PASSES: usize = 12;

/// Step of the first pass; it falls in a straight line to a tenth.
const RATE: f32 = 0.2;

/// Strength of the penalty on weights.
const PENALTY: f32 = 1e-5;

/// A stride that visits every example once a pass, in an order without runs of one task.
const STRIDE: usize = 2_741;

/// A layer: weights row by row, and biases.
struct Layer {
    weights: Vec<f32>,
    biases: Vec<f32>,
    inputs: usize,
}

impl Layer {
    /// Small weights that look random and are always the same.
    fn new(inputs: usize, outputs: usize, mut state: u32) -> Self {
        let bound = (6.0 / (inputs + outputs).max(1) as f32).sqrt();
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state as f32 / u32::MAX as f32 * 2.0 - 1.0) * bound
        };
        let weights = (0..inputs * outputs).map(|_| next()).collect();
        Self { weights, biases: vec![0.0; outputs], inputs }
    }

    fn of(&self, input: &[f32]) -> Vec<f32> {
        let rows = self.weights.chunks_exact(self.inputs.max(1)).zip(&self.biases);
        rows.map(|(row, bias)| dot(row, input) + bias).collect()
    }

    /// Goes a step against the slope of the loss, and gives the slope at the input.
    fn step(&mut self, input: &[f32], slope: &[f32], rate: f32) -> Vec<f32> {
        let mut back = vec![0.0f32; self.inputs];
        let rows = self.weights.chunks_exact_mut(self.inputs.max(1)).zip(&mut self.biases).zip(slope);
        for ((row, bias), slope) in rows {
            for ((weight, input), back) in row.iter_mut().zip(input).zip(&mut back) {
                *back += slope * *weight;
                *weight -= rate * (slope * input + PENALTY * *weight);
            }
            *bias -= rate * slope;
        }
        back
    }
}

/// Card and tables.
pub(super) fn fit(card: Card, train: &Graded) -> (Card, BTreeMap<String, Tensor>) {
    let (mut tensors, guard) = Clusters::of(train).anchors(train);
    let mut hidden = Layer::new(train.dimension, HIDDEN, 0x9e37_79b9);
    let mut last = Layer::new(HIDDEN, train.models.len(), 0x7f4a_7c15);
    let rows: Vec<(&[f32], &[f32])> = train.rows().zip(train.grades()).collect();
    let steps = rows.len() * PASSES;
    for step in 0..steps {
        let Some((row, grades)) = rows.get((step * STRIDE) % rows.len().max(1)) else { break };
        let rate = RATE * (1.0 - 0.9 * step as f32 / steps.max(1) as f32);
        let inner: Vec<f32> = hidden.of(row).into_iter().map(|it| it.max(0.0)).collect();
        // The slope of the cross-entropy behind a logistic is the difference.
        let slope: Vec<f32> = last
            .of(&inner)
            .iter()
            .zip(*grades)
            .map(|(it, wanted)| 1.0 / (1.0 + (-it).exp()) - wanted)
            .collect();
        let back = last.step(&inner, &slope, rate);
        let back: Vec<f32> =
            back.iter().zip(&inner).map(|(slope, it)| if *it > 0.0 { *slope } else { 0.0 }).collect();
        hidden.step(row, &back, rate);
    }
    for (at, layer) in [hidden, last].into_iter().enumerate() {
        let outputs = layer.biases.len();
        tensors.insert(format!("weight.{at}"), Tensor::new(layer.inputs, layer.weights));
        tensors.insert(format!("bias.{at}"), Tensor::new(outputs, layer.biases));
    }
    (Card { guard: Some(guard), ..card }, tensors)
}
