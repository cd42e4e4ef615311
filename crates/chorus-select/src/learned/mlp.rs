//! `mlp`: a small network that expects a score of each model.

use super::card::{Card, Tables};
use super::{ArtifactFault, Prediction, Predictor};
use crate::doc::SelectorDoc;

/// Most layers of an artifact.
const LAYERS_MOST: usize = 16;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "mlp",
    what: "A network over the request's vector with one output a model: the score that it would reach. The greatest wins.",
    when: "As `knn`, with some ten thousand graded requests; with fewer it is no better than `knn` and says less about \
           why.",
    parameters: &[
        (
            "pretrained_path",
            "the artifact (`chorus lab train-selector mlp`, or the contract's JSON)",
            "`model_selection.ml.mlp`",
        ),
        ("guard", "whether strangers go to the best fixed model", "true"),
    ],
    cost: "One encoder pass a request, and some tens of microseconds.",
    fails_when: "No encoder is loaded: `on_error` decides. An artifact for another encoder or other models does not load.",
    source: "contract §1.7; FusionFactory (arXiv:2507.10540).",
    example: "algorithm:\n  type: mlp\n  mlp: { pretrained_path: selectors/mlp.safetensors }\n",
};

/// One layer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Layer {
    /// weight · x + bias.
    Linear {
        /// Row by row.
        weights: Vec<f32>,
        /// One a row.
        biases: Vec<f32>,
    },
    /// max(0, x).
    Relu,
    /// x · scale + shift, number by number (a batch normalisation whose statistics are fixed).
    Affine {
        /// One a number.
        scales: Vec<f32>,
        /// One a number.
        shifts: Vec<f32>,
    },
}

/// A network.
#[derive(Debug)]
pub(super) struct Mlp {
    layers: Vec<Layer>,
}

impl Mlp {
    /// A network whose layers fit each other, from that many numbers to as many.
    pub(super) fn new(layers: Vec<Layer>, input: usize, output: usize) -> Result<Self, ArtifactFault> {
        let mut length = input;
        for layer in &layers {
            length = match layer {
                Layer::Linear { weights, biases } if weights.len() == length * biases.len() => biases.len(),
                Layer::Affine { scales, shifts } if scales.len() == length && shifts.len() == length => {
                    length
                }
                Layer::Relu => length,
                _ => return Err(ArtifactFault::Unreadable("its layers do not fit each other".to_owned())),
            };
        }
        if length != output {
            return Err(ArtifactFault::Unreadable(format!("it ends in {length} numbers, not {output}")));
        }
        Ok(Self { layers })
    }

    pub(super) fn read(card: &Card, tables: &Tables<'_>) -> Result<Self, ArtifactFault> {
        let mut layers = Vec::new();
        let mut length = card.dimension;
        for at in 0..LAYERS_MOST {
            if !tables.has(&format!("weight.{at}")) {
                break;
            }
            if at > 0 {
                layers.push(Layer::Relu);
            }
            let weights = tables.get(&format!("weight.{at}"), length)?;
            let biases = tables.get(&format!("bias.{at}"), weights.rows)?;
            length = weights.rows;
            layers.push(Layer::Linear { weights: weights.values, biases: biases.values });
        }
        Self::new(layers, card.dimension, card.models.len())
    }
}

impl Layer {
    fn of(&self, input: Vec<f32>) -> Vec<f32> {
        match self {
            Self::Linear { weights, biases } => {
                let row = |(weights, bias): (&[f32], &f32)| {
                    weights.iter().zip(&input).map(|(a, b)| a * b).sum::<f32>() + bias
                };
                weights.chunks_exact(input.len().max(1)).zip(biases).map(row).collect()
            }
            Self::Relu => input.into_iter().map(|it| it.max(0.0)).collect(),
            Self::Affine { scales, shifts } => input
                .into_iter()
                .zip(scales)
                .zip(shifts)
                .map(|((it, scale), shift)| it * scale + shift)
                .collect(),
        }
    }
}

impl Predictor for Mlp {
    fn predict(&self, features: &[f32], _fixed: usize) -> Prediction {
        let out = self.layers.iter().fold(features.to_vec(), |input, layer| layer.of(input));
        let score = |it: f32| 1.0 / (1.0 + (-f64::from(it)).exp());
        Prediction { scores: out.into_iter().map(score).collect(), ..Prediction::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_are_applied_in_order_and_must_fit() {
        let linear = |weights: &[f32], biases: &[f32]| Layer::Linear {
            weights: weights.to_vec(),
            biases: biases.to_vec(),
        };
        let layers = vec![
            linear(&[1.0, -1.0, -1.0, 1.0], &[0.0, 0.0]),
            Layer::Relu,
            linear(&[2.0, 0.0, 0.0, 2.0], &[0.0, 0.1]),
        ];
        let mlp = Mlp::new(layers, 2, 2).unwrap();
        let scores = mlp.predict(&[1.0, 0.0], 0).scores;
        assert!((scores[0] - 1.0 / (1.0 + (-2.0f64).exp())).abs() < 1e-6 && scores[0] > scores[1]);
        assert!(Mlp::new(vec![linear(&[1.0], &[0.0])], 2, 1).is_err());
        assert!(Mlp::new(vec![linear(&[1.0, 1.0], &[0.0])], 2, 2).is_err());
    }
}
