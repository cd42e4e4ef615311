//! Our artifacts as tables and a card: a safetensors file whose metadata holds the card.
//!
//! It knows bytes, and no file and no predictor. **Invariant:** what is read has passed every check of shape and number, so
//! that a predictor never looks outside its tables.

use super::{ArtifactFault, FORMAT, Kind, VERSION};
use safetensors::tensor::{Dtype, TensorView};
use safetensors::{SafeTensors, serialize};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The key of the metadata that holds the card.
const CARD_KEY: &str = "chorus_selector";

/// What an artifact was made from, and how it is used.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Card {
    /// Always `chorus-selector`.
    pub format: String,
    /// Of the format.
    pub version: u32,
    /// Which predictor.
    pub algorithm: Kind,
    /// Digest of the encoder; `None` in the contract's artifacts, which do not say.
    pub encoder: Option<String>,
    /// Length of a request's vector.
    pub dimension: usize,
    /// Names of the models, in the order of all columns.
    pub models: Vec<String>,
    /// Digest of the training data.
    pub data: String,
    /// Training examples.
    pub examples: usize,
    /// Mean score of each model over the training data, in 0..=1: the greatest is the best fixed model.
    pub means: Vec<f64>,
    /// How many neighbours (`knn`) or clusters (`kmeans`) are asked.
    pub k: usize,
    /// Power of the similarity that weighs a neighbour (`knn`); 0 weighs all alike.
    #[serde(default)]
    pub sharpness: f64,
    /// Observations that the mean over all data is worth beside the neighbours or the cluster.
    #[serde(default)]
    pub shrinkage: f64,
    /// Standard errors by which another must beat the best fixed model; 0 takes the best as it is.
    #[serde(default)]
    pub caution: f64,
    /// Weight of a low price, in 0..=1 (`kmeans`).
    #[serde(default)]
    pub efficiency_weight: f64,
    /// From which distance on a request is a stranger.
    #[serde(default)]
    pub guard: Option<GuardCard>,
}

/// A bound on how far a request may lie from what was learnt.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct GuardCard {
    /// Share of held-out training examples that are nearer.
    pub quantile: f64,
    /// The bound: the mean distance (one less cosine) to the nearest examples, over the mean distance of these to their
    /// own nearest; above 0.
    pub distance: f64,
    /// How many nearest examples that is over.
    pub neighbours: usize,
}

impl Card {
    /// A card with nothing but its names; the rest is to be filled in.
    #[must_use]
    pub fn of(algorithm: Kind, encoder: &str, dimension: usize, models: Vec<String>) -> Self {
        Self {
            format: FORMAT.to_owned(),
            version: VERSION,
            algorithm,
            encoder: Some(encoder.to_owned()),
            dimension,
            models,
            data: String::new(),
            examples: 0,
            means: Vec::new(),
            k: 1,
            sharpness: 0.0,
            shrinkage: 0.0,
            caution: 0.0,
            efficiency_weight: 0.0,
            guard: None,
        }
    }

    fn check(&self) -> Result<(), ArtifactFault> {
        if self.format != FORMAT || self.version != VERSION {
            return Err(ArtifactFault::Format(format!("{} {}", self.format, self.version)));
        }
        let numbers = [self.sharpness, self.shrinkage, self.caution, self.efficiency_weight];
        let sound = numbers.iter().all(|it| it.is_finite() && *it >= 0.0)
            && self.means.iter().all(|it| it.is_finite())
            && self.guard.is_none_or(|it| it.distance.is_finite());
        if !sound || self.models.is_empty() || self.means.len() != self.models.len() || self.dimension == 0 {
            return Err(ArtifactFault::Unreadable("its card does not fit itself".to_owned()));
        }
        Ok(())
    }
}

/// A table of numbers, row by row.
#[derive(Debug, Clone, PartialEq)]
pub struct Tensor {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub columns: usize,
    /// All of them.
    pub values: Vec<f32>,
}

impl Tensor {
    /// A table; a rest that fills no row is left out.
    #[must_use]
    pub fn new(columns: usize, mut values: Vec<f32>) -> Self {
        let rows = values.len().checked_div(columns).unwrap_or(0);
        values.truncate(rows * columns);
        Self { rows, columns, values }
    }
}

/// The bytes of an artifact.
///
/// # Errors
/// [`ArtifactFault::Unreadable`] where the tables cannot be written.
pub fn write(card: &Card, tensors: &BTreeMap<String, Tensor>) -> Result<Vec<u8>, ArtifactFault> {
    let unwritable = |why: String| ArtifactFault::Unreadable(why);
    let bytes: BTreeMap<&str, Vec<u8>> = tensors
        .iter()
        .map(|(name, it)| (name.as_str(), it.values.iter().flat_map(|it| it.to_le_bytes()).collect()))
        .collect();
    let mut views = BTreeMap::new();
    for (name, it) in tensors {
        let data = bytes.get(name.as_str()).map(Vec::as_slice).unwrap_or_default();
        let view = TensorView::new(Dtype::F32, vec![it.rows, it.columns], data);
        views.insert(name.as_str(), view.map_err(|it| unwritable(it.to_string()))?);
    }
    let card = serde_json::to_string(card).map_err(|it| unwritable(it.to_string()))?;
    let metadata = [(CARD_KEY.to_owned(), card)].into_iter().collect();
    serialize(views, Some(metadata)).map_err(|it| unwritable(it.to_string()))
}

/// The tables of an artifact that is being read.
pub(super) struct Tables<'a>(SafeTensors<'a>);

impl Tables<'_> {
    /// The table of that name, with that many columns.
    pub(super) fn get(&self, name: &str, columns: usize) -> Result<Tensor, ArtifactFault> {
        let wrong = |why: &str| ArtifactFault::Unreadable(format!("its table `{name}` {why}"));
        let view = self.0.tensor(name).map_err(|_| wrong("is missing"))?;
        if view.dtype() != Dtype::F32 || view.shape().last() != Some(&columns) || view.shape().len() != 2 {
            return Err(wrong(&format!("does not have {columns} columns of 32-bit numbers")));
        }
        let values: Vec<f32> = view.data().as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
        if values.is_empty() || values.iter().any(|it| !it.is_finite()) {
            return Err(wrong("is empty or holds what is no number"));
        }
        Ok(Tensor::new(columns, values))
    }

    /// Whether there is a table of that name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.tensor(name).is_ok()
    }
}

/// Card and tables of an artifact.
///
/// # Errors
/// [`ArtifactFault`].
pub(super) fn open(bytes: &[u8]) -> Result<(Card, Tables<'_>), ArtifactFault> {
    let unreadable = |why: String| ArtifactFault::Unreadable(why);
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(|it| unreadable(it.to_string()))?;
    let card = metadata.metadata().as_ref().and_then(|it| it.get(CARD_KEY));
    let card = card.ok_or_else(|| ArtifactFault::Format("no card of a selector is in it".to_owned()))?;
    let card: Card = serde_json::from_str(card).map_err(|it| unreadable(it.to_string()))?;
    card.check()?;
    let tables = Tables(SafeTensors::deserialize(bytes).map_err(|it| unreadable(it.to_string()))?);
    Ok((card, tables))
}
