//! Binary heads over the encoder's vector and hashed features of the text: vector, features → a probability.
//!
//! It knows one file format and one formula; it knows no text, no hash and no task. The same features have a second
//! set of weights for when there is no vector, so that many pieces of a text can be looked at for the price of none.
//! Invariant: a head that parses has one weight a feature in both sets, all finite.
//!
//! The file is safetensors: `dense` (dimension) and `bias` (2: with and without a vector), 32-bit floats, `sparse` and
//! `alone` (features), 16-bit floats, and one metadata entry `head`, a JSON object with labels and digests.

use std::collections::HashMap;

use half::f16;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

use crate::heads::HeadFault;

/// The metadata entry that holds a [`MixedCard`].
const CARD_KEY: &str = "head";

/// What a mixed head says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MixedCard {
    /// The class that the probability is of.
    pub label: String,
    /// Digest of the encoder that it was trained on, `sha256:…`.
    pub encoder_digest: String,
    /// Digest of the examples that it was trained on, `sha256:…`.
    pub data_digest: String,
    /// Version of the features that it was trained on.
    pub features: String,
}

/// The weights of a mixed head.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedWeights {
    /// One an entry of the vector.
    pub dense: Vec<f32>,
    /// One a feature, beside a vector.
    pub sparse: Vec<f32>,
    /// Added beside a vector.
    pub bias: f32,
    /// One a feature, without a vector.
    pub alone: Vec<f32>,
    /// Added without a vector.
    pub alone_bias: f32,
}

/// A logistic classifier over a vector and hashed features.
#[derive(Debug, Clone, PartialEq)]
pub struct MixedHead {
    card: MixedCard,
    weights: MixedWeights,
}

impl MixedHead {
    /// A head of these weights. Weights of features are rounded to 16 bits, as its file holds them.
    ///
    /// # Errors
    /// [`HeadFault`] when the two sets of feature weights differ in length or are empty, or a number is not finite.
    pub fn new(card: MixedCard, mut weights: MixedWeights) -> Result<Self, HeadFault> {
        for weight in weights.sparse.iter_mut().chain(&mut weights.alone) {
            *weight = f16::from_f32(*weight).to_f32();
        }
        let lengths = (weights.dense.len(), weights.sparse.len(), weights.alone.len());
        if lengths.0 == 0 || lengths.1 == 0 || lengths.1 != lengths.2 {
            return Err(HeadFault(format!("a head cannot have weights of lengths {lengths:?}")));
        }
        let biases = [weights.bias, weights.alone_bias];
        let mut all = weights.dense.iter().chain(&weights.sparse).chain(&weights.alone).chain(&biases);
        if !all.all(|value| value.is_finite()) {
            return Err(HeadFault("a weight is not finite".to_owned()));
        }
        Ok(Self { card, weights })
    }

    /// Reads a head's file.
    ///
    /// # Errors
    /// [`HeadFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, HeadFault> {
        let fault = |what: &dyn std::fmt::Display| HeadFault(format!("not a mixed head's file: {what}"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|cause| fault(&cause))?;
        let card = metadata.metadata().as_ref().and_then(|entries| entries.get(CARD_KEY));
        let card = card.ok_or_else(|| fault(&"no `head` in its metadata"))?;
        let card: MixedCard = serde_json::from_str(card).map_err(|cause| fault(&cause))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|cause| fault(&cause))?;
        let data = |name: &str, dtype: Dtype| {
            let tensor = tensors.tensor(name).map_err(|cause| fault(&cause))?;
            let fits = tensor.dtype() == dtype;
            fits.then_some(tensor.data())
                .ok_or_else(|| fault(&format!("{name} is {:?}, not {dtype:?}", tensor.dtype())))
        };
        let wide = |name: &str| {
            let values = data(name, Dtype::F32)?.as_chunks().0.iter().copied();
            Ok(values.map(f32::from_le_bytes).collect::<Vec<f32>>())
        };
        let narrow = |name: &str| {
            let values = data(name, Dtype::F16)?.as_chunks().0.iter().copied();
            Ok(values.map(|bytes| f16::from_le_bytes(bytes).to_f32()).collect::<Vec<f32>>())
        };
        let [bias, alone_bias] =
            wide("bias")?.try_into().map_err(|_| fault(&"`bias` must hold two numbers"))?;
        let (dense, sparse, alone) = (wide("dense")?, narrow("sparse")?, narrow("alone")?);
        Self::new(card, MixedWeights { dense, sparse, bias, alone, alone_bias })
    }

    /// The head as a file's bytes; the same head always gives the same bytes.
    ///
    /// # Errors
    /// [`HeadFault`] when the card cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, HeadFault> {
        let fault = |cause: &dyn std::fmt::Display| HeadFault(cause.to_string());
        let wide = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>();
        let narrow = |values: &[f32]| {
            values.iter().flat_map(|value| f16::from_f32(*value).to_le_bytes()).collect::<Vec<u8>>()
        };
        let weights = &self.weights;
        let contents = [
            ("alone", Dtype::F16, narrow(&weights.alone)),
            ("bias", Dtype::F32, wide(&[weights.bias, weights.alone_bias])),
            ("dense", Dtype::F32, wide(&weights.dense)),
            ("sparse", Dtype::F16, narrow(&weights.sparse)),
        ];
        let mut tensors = Vec::with_capacity(contents.len());
        for (name, dtype, bytes) in &contents {
            let width = if *dtype == Dtype::F16 { 2 } else { 4 };
            let tensor =
                TensorView::new(*dtype, vec![bytes.len() / width], bytes).map_err(|cause| fault(&cause))?;
            tensors.push((*name, tensor));
        }
        let card = serde_json::to_string(&self.card).map_err(|cause| fault(&cause))?;
        let metadata = HashMap::from([(CARD_KEY.to_owned(), card)]);
        safetensors::serialize(tensors, Some(metadata)).map_err(|cause| fault(&cause))
    }

    /// What the head says of itself.
    #[must_use]
    pub fn card(&self) -> &MixedCard {
        &self.card
    }

    /// How many features it has weights for.
    #[must_use]
    pub fn features(&self) -> usize {
        self.weights.sparse.len()
    }

    /// The probability of the label, 0..=1, from a text's vector and its features: places below
    /// [`MixedHead::features`] and their values. A place beyond counts for nothing.
    #[must_use]
    pub fn probability(&self, vector: &[f32], features: &[(u32, f32)]) -> f64 {
        let dense: f32 = self.weights.dense.iter().zip(vector).map(|(weight, value)| weight * value).sum();
        sigmoid(f64::from(dense + product(&self.weights.sparse, features) + self.weights.bias))
    }

    /// The probability of the label, 0..=1, from features alone.
    #[must_use]
    pub fn probability_alone(&self, features: &[(u32, f32)]) -> f64 {
        sigmoid(f64::from(product(&self.weights.alone, features) + self.weights.alone_bias))
    }
}

fn product(weights: &[f32], features: &[(u32, f32)]) -> f32 {
    let weight = |place: u32| weights.get(place as usize).copied().unwrap_or_default();
    features.iter().map(|(place, value)| weight(*place) * value).sum()
}

fn sigmoid(logit: f64) -> f64 {
    1.0 / (1.0 + (-logit).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> MixedCard {
        MixedCard {
            label: "attack".to_owned(),
            encoder_digest: "sha256:e".to_owned(),
            data_digest: "sha256:d".to_owned(),
            features: "f1".to_owned(),
        }
    }

    fn weights() -> MixedWeights {
        MixedWeights {
            dense: vec![1.0, -1.0],
            sparse: vec![0.5, 0.0, -0.25, 2.0],
            bias: 0.125,
            alone: vec![1.0, 0.0, 0.0, 3.0],
            alone_bias: -1.0,
        }
    }

    #[test]
    fn a_file_gives_back_the_head_that_was_written() {
        let head = MixedHead::new(card(), weights()).unwrap();
        let bytes = head.to_bytes().unwrap();
        assert_eq!(MixedHead::parse(&bytes).unwrap(), head);
        assert_eq!(head.to_bytes().unwrap(), bytes, "the same head gives the same bytes");
        for broken in [&b""[..], &bytes[..bytes.len() - 4]] {
            assert!(MixedHead::parse(broken).unwrap_err().0.contains("not a mixed head's file"));
        }
    }

    #[test]
    fn probabilities_by_hand() {
        let head = MixedHead::new(card(), weights()).unwrap();
        // .6 − .8 + .5·1 − .25·2 + .125 = −.075, and a place beyond the table counts for nothing.
        let features = [(0, 1.0), (2, 2.0), (9, 5.0)];
        assert!((head.probability(&[0.6, 0.8], &features) - 1.0 / (1.0 + 0.075_f64.exp())).abs() < 1e-6);
        // 1·1 − 1 = 0.
        assert!((head.probability_alone(&features) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn shapes_and_numbers_are_checked() {
        for broken in [
            MixedWeights { dense: Vec::new(), ..weights() },
            MixedWeights { alone: vec![1.0], ..weights() },
            MixedWeights { bias: f32::NAN, ..weights() },
            MixedWeights { sparse: vec![0.0, 0.0, 0.0, f32::INFINITY], ..weights() },
        ] {
            assert!(MixedHead::new(card(), broken).is_err());
        }
    }
}
