//! `kmeans`: what was best in the clusters of requests that this one is nearest to.

use super::card::{Card, Tables};
use super::{ArtifactFault, Prediction, Predictor};
use crate::doc::SelectorDoc;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "kmeans",
    what: "Training requests are gathered in clusters; each cluster keeps what every model reached there, drawn towards \
           its mean over all where the cluster is small. A request is expected to go as in the few clusters whose \
           centres are nearest, less what a candidate's price takes from it.",
    when: "As `knn`, with a small artifact, and where price is to count.",
    parameters: &[
        (
            "pretrained_path",
            "the artifact (`chorus lab train-selector kmeans`, or the contract's JSON)",
            "`model_selection.ml.kmeans`",
        ),
        ("efficiency_weight", "weight of a low price, in 0..=1", "the artifact's"),
        ("guard", "whether strangers go to the best fixed model", "true"),
    ],
    cost: "One encoder pass a request, and some microseconds.",
    fails_when: "No encoder is loaded: `on_error` decides. An artifact for another encoder or other models does not load.",
    source: "contract §1.7; Avengers-Pro (scores of the nearest clusters, quality against price). Of the contract's \
             artifacts both the plain form and format 2 are read.",
    example: "algorithm:\n  type: kmeans\n  kmeans: { pretrained_path: selectors/kmeans.safetensors, efficiency_weight: 0.3 }\n",
};

/// Centres and what each model reached around them.
#[derive(Debug)]
pub(super) struct Kmeans {
    centres: Vec<f32>,
    dimension: usize,
    scores: Vec<f32>,
    models: usize,
    /// How many clusters are asked.
    asked: usize,
}

impl Kmeans {
    pub(super) fn read(card: &Card, tables: &Tables<'_>) -> Result<Self, ArtifactFault> {
        let centres = tables.get("centroids", card.dimension)?;
        let scores = tables.get("scores", card.models.len())?;
        if centres.rows != scores.rows {
            return Err(ArtifactFault::Unreadable("it has not as many scores as centres".to_owned()));
        }
        Ok(Self::new(centres.values, card.dimension, scores.values, card))
    }

    pub(super) fn new(centres: Vec<f32>, dimension: usize, scores: Vec<f32>, card: &Card) -> Self {
        Self { centres, dimension: dimension.max(1), scores, models: card.models.len(), asked: card.k.max(1) }
    }
}

impl Predictor for Kmeans {
    fn predict(&self, features: &[f32], _fixed: usize) -> Prediction {
        let squared =
            |centre: &[f32]| -> f32 { centre.iter().zip(features).map(|(a, b)| (a - b) * (a - b)).sum() };
        let mut nearest: Vec<(f32, usize)> =
            self.centres.chunks_exact(self.dimension).map(squared).zip(0..).collect();
        // Of equals the earlier centre.
        nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        nearest.truncate(self.asked);
        let mut sums = vec![0.0; self.models];
        for (_, at) in &nearest {
            let row = self.scores.get(at * self.models..(at + 1) * self.models).unwrap_or_default();
            sums.iter_mut().zip(row).for_each(|(sum, score)| *sum += f64::from(*score));
        }
        let count = nearest.len().max(1) as f64;
        Prediction {
            scores: sums.into_iter().map(|sum| sum / count).collect(),
            gains: Vec::new(),
            distance: None,
        }
    }
}
