//! Linear heads over the encoder: embedding → class probabilities.
//!
//! It knows one file format and one formula; it knows no text and no task. Invariant: a head that parses has one
//! row of weights and one bias a label, all finite.
//!
//! The file is safetensors: `weight` (labels × dimension) and `bias` (labels), 32-bit floats, and one metadata
//! entry `head`, a JSON object with labels, temperature and digests.

mod built_in;

use std::collections::HashMap;

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};

pub use built_in::{Heads, for_encoder, of_default};

/// The metadata entry that holds a [`HeadCard`].
const CARD_KEY: &str = "head";

/// Why a head's file cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HeadFault(pub String);

/// What a head says of itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeadCard {
    /// Class names, in the order of weights.
    pub labels: Vec<String>,
    /// Digest of the encoder that it was trained on, `sha256:…`.
    pub encoder_digest: String,
    /// Digest of the examples that it was trained on, `sha256:…`.
    pub data_digest: String,
    /// What logits are divided by before softmax, > 0. Source: Guo et al. 2017, "On Calibration of Modern Neural
    /// Networks", §4.2.
    pub temperature: f32,
    /// The same for a text in another language than English, > 0; none for a head that is as sure in every language. An
    /// English encoder knows less of other languages, so that a head over it has to be less sure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature_elsewhere: Option<f32>,
}

/// A linear softmax classifier.
#[derive(Debug, Clone, PartialEq)]
pub struct Head {
    card: HeadCard,
    dimension: usize,
    weight: Vec<f32>,
    bias: Vec<f32>,
}

impl Head {
    /// A head of row-major `weight` (labels × dimension) and one `bias` a label.
    ///
    /// # Errors
    /// [`HeadFault`] when the shapes do not fit the labels, or a number is not finite.
    pub fn new(card: HeadCard, weight: Vec<f32>, bias: Vec<f32>) -> Result<Self, HeadFault> {
        let classes = card.labels.len();
        if classes < 2 || bias.len() != classes || weight.is_empty() || !weight.len().is_multiple_of(classes)
        {
            return Err(HeadFault(format!(
                "{classes} labels do not fit {} weights and {} biases",
                weight.len(),
                bias.len()
            )));
        }
        if !weight.iter().chain(&bias).all(|value| value.is_finite()) {
            return Err(HeadFault("a weight is not finite".to_owned()));
        }
        for temperature in std::iter::once(card.temperature).chain(card.temperature_elsewhere) {
            if !(temperature.is_finite() && temperature > 0.0) {
                return Err(HeadFault(format!("temperature {temperature} is not above zero")));
            }
        }
        Ok(Self { dimension: weight.len() / classes, card, weight, bias })
    }

    /// Reads a head's file.
    ///
    /// # Errors
    /// [`HeadFault`].
    pub fn parse(bytes: &[u8]) -> Result<Self, HeadFault> {
        let fault = |what: &dyn std::fmt::Display| HeadFault(format!("not a head's file: {what}"));
        let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|cause| fault(&cause))?;
        let card = metadata.metadata().as_ref().and_then(|entries| entries.get(CARD_KEY));
        let card = card.ok_or_else(|| fault(&"no `head` in its metadata"))?;
        let card: HeadCard = serde_json::from_str(card).map_err(|cause| fault(&cause))?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|cause| fault(&cause))?;
        let floats = |name: &str| {
            let tensor = tensors.tensor(name).map_err(|cause| fault(&cause))?;
            if tensor.dtype() != Dtype::F32 {
                return Err(fault(&format!("{name} is {:?}, not F32", tensor.dtype())));
            }
            Ok(tensor.data().as_chunks().0.iter().copied().map(f32::from_le_bytes).collect())
        };
        Self::new(card, floats("weight")?, floats("bias")?)
    }

    /// The head as a file's bytes; the same head always gives the same bytes.
    ///
    /// # Errors
    /// [`HeadFault`] when the card cannot be written.
    pub fn to_bytes(&self) -> Result<Vec<u8>, HeadFault> {
        let fault = |cause: &dyn std::fmt::Display| HeadFault(cause.to_string());
        let bytes = |values: &[f32]| values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>();
        let (weight, bias) = (bytes(&self.weight), bytes(&self.bias));
        let weight = TensorView::new(Dtype::F32, vec![self.bias.len(), self.dimension], &weight)
            .map_err(|cause| fault(&cause))?;
        let bias =
            TensorView::new(Dtype::F32, vec![self.bias.len()], &bias).map_err(|cause| fault(&cause))?;
        let card = serde_json::to_string(&self.card).map_err(|cause| fault(&cause))?;
        let metadata = HashMap::from([(CARD_KEY.to_owned(), card)]);
        safetensors::serialize([("bias", bias), ("weight", weight)], Some(metadata))
            .map_err(|cause| fault(&cause))
    }

    /// What the head says of itself.
    #[must_use]
    pub fn card(&self) -> &HeadCard {
        &self.card
    }

    /// Class names, in the order of probabilities.
    #[must_use]
    pub fn labels(&self) -> &[String] {
        &self.card.labels
    }

    /// Digest of the encoder it was trained on.
    #[must_use]
    pub fn encoder_digest(&self) -> &str {
        &self.card.encoder_digest
    }

    /// Length of the embeddings that it takes.
    #[must_use]
    pub fn dimension(&self) -> usize {
        self.dimension
    }

    /// One probability a class, summing to 1.
    ///
    /// `embedding` has [`Head::dimension`] values; of a longer one the surplus is ignored, of a shorter one the
    /// rest counts as zero.
    #[must_use]
    pub fn probabilities(&self, embedding: &[f32]) -> Vec<f32> {
        self.tempered(embedding, self.card.temperature)
    }

    /// The same for a text that is not in English.
    #[must_use]
    pub fn probabilities_elsewhere(&self, embedding: &[f32]) -> Vec<f32> {
        self.tempered(embedding, self.card.temperature_elsewhere.unwrap_or(self.card.temperature))
    }

    fn tempered(&self, embedding: &[f32], temperature: f32) -> Vec<f32> {
        let rows = self.weight.chunks(self.dimension).zip(&self.bias);
        let logits = rows.map(|(row, bias)| {
            let product: f32 = row.iter().zip(embedding).map(|(weight, value)| weight * value).sum();
            (product + bias) / temperature
        });
        softmax(logits.collect())
    }
}

/// Source: the usual form, shifted by the largest logit so that no exponential overflows.
fn softmax(mut logits: Vec<f32>) -> Vec<f32> {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    logits.iter_mut().for_each(|logit| *logit = (*logit - largest).exp());
    let total: f32 = logits.iter().sum();
    logits.iter_mut().for_each(|logit| *logit /= total);
    logits
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(labels: &[&str], temperature: f32) -> HeadCard {
        HeadCard {
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            encoder_digest: "sha256:e".to_owned(),
            data_digest: "sha256:d".to_owned(),
            temperature,
            temperature_elsewhere: None,
        }
    }

    fn head() -> Head {
        Head::new(card(&["a", "b"], 0.5), vec![1.0, 0.0, 0.0, 1.0], vec![0.0, 0.5]).unwrap()
    }

    #[test]
    fn elsewhere_a_head_is_as_sure_as_its_card_says() {
        let sure = |elsewhere| {
            let card = HeadCard { temperature_elsewhere: elsewhere, ..card(&["a", "b"], 1.0) };
            let head = Head::new(card, vec![1.0, -1.0], vec![0.0, 0.0])?;
            Ok::<_, HeadFault>((head.probabilities(&[1.0])[0], head.probabilities_elsewhere(&[1.0])[0]))
        };
        let (here, same) = sure(None).unwrap();
        assert_eq!(here, same);
        let (here, elsewhere) = sure(Some(2.0)).unwrap();
        assert!(here > elsewhere && elsewhere > 0.5, "{here} {elsewhere}");
        assert!(sure(Some(0.0)).is_err());
    }

    #[test]
    fn a_file_gives_back_the_head_that_was_written() {
        let bytes = head().to_bytes().unwrap();
        assert_eq!(Head::parse(&bytes).unwrap(), head());
        assert_eq!(head().to_bytes().unwrap(), bytes, "the same head gives the same bytes");
    }

    #[test]
    fn probabilities_are_the_softmax_of_tempered_logits() {
        // Logits (0.6, 0.8 + 0.5) / 0.5 = (1.2, 2.6).
        let probabilities = head().probabilities(&[0.6, 0.8]);
        let expected = 1.0 / (1.0 + (2.6_f32 - 1.2).exp());
        assert!((probabilities[0] - expected).abs() < 1e-6, "{probabilities:?}");
        assert!((probabilities.iter().sum::<f32>() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn large_logits_do_not_overflow() {
        let steep = Head::new(card(&["a", "b"], 0.001), vec![1.0, -1.0], vec![0.0, 0.0]).unwrap();
        assert_eq!(steep.probabilities(&[1.0]), vec![1.0, 0.0]);
    }

    #[test]
    fn a_file_that_is_no_head_says_why() {
        let truncated = head().to_bytes().unwrap();
        let cases: [(&[u8], &str); 3] = [
            (b"", "not a head's file"),
            (b"{\"labels\": []}", "not a head's file"),
            (&truncated[..truncated.len() - 4], "not a head's file"),
        ];
        for (bytes, expected) in cases {
            let fault = Head::parse(bytes).unwrap_err();
            assert!(fault.0.contains(expected), "{fault}");
        }
    }

    #[test]
    fn shapes_and_numbers_are_checked() {
        let cases = [
            (card(&["a"], 1.0), vec![1.0], vec![0.0]),
            (card(&["a", "b"], 1.0), vec![1.0, 2.0, 3.0], vec![0.0, 0.0]),
            (card(&["a", "b"], 1.0), vec![1.0, 2.0], vec![0.0]),
            (card(&["a", "b"], 1.0), vec![1.0, f32::NAN], vec![0.0, 0.0]),
            (card(&["a", "b"], 0.0), vec![1.0, 2.0], vec![0.0, 0.0]),
        ];
        for (card, weight, bias) in cases {
            let case = format!("{card:?} {weight:?} {bias:?}");
            assert!(Head::new(card, weight, bias).is_err(), "{case}");
        }
    }
}
