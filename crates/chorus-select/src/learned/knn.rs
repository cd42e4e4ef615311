//! `knn`: what was best for the most similar requests of a trained set.

use super::card::{Card, Tables};
use super::examples::Examples;
use super::guard::relative;
use super::{ArtifactFault, Gain, Prediction, Predictor};
use crate::doc::SelectorDoc;
use chorus_spec::LearnedSettings;

/// The row of the table.
pub const DOC: SelectorDoc = SelectorDoc {
    kind: "knn",
    what: "Finds the `k` training requests nearest to this one and expects of each candidate what it reached there, \
           weighed by similarity and drawn a little towards its mean over all. A request that lies farther off than 90% \
           of what was learnt goes to the best fixed model, and so does one for which no other is better beyond doubt \
           (one side of 95%).",
    when: "Graded answers of every candidate exist for some thousand requests like yours. On most traffic the gain over \
           the best fixed model is a few points; without such data it is a loss.",
    parameters: &[
        (
            "pretrained_path",
            "the artifact (`chorus lab train-selector knn`, or the contract's JSON)",
            "`model_selection.ml.knn`",
        ),
        ("k", "how many neighbours vote", "the artifact's"),
        ("guard", "whether strangers and doubtful cases go to the best fixed model", "true"),
    ],
    cost: "One encoder pass a request, and some 100 µs for 6,000 examples of 384 numbers.",
    fails_when: "No encoder is loaded: `on_error` decides. An artifact for another encoder or other models does not load.",
    source: "contract §1.7; Li, arXiv:2505.12601 (nearest neighbours do as well as complex routers). `k` of 100 rather \
             than the contract's 5 to 10, because single grades are noisy.",
    example: "algorithm:\n  type: knn\n  knn: { pretrained_path: selectors/knn.safetensors }\n",
};

/// Examples and what each model reached on them.
#[derive(Debug)]
pub(super) struct Knn {
    vectors: Examples,
    scores: Vec<f32>,
    means: Vec<f64>,
    k: usize,
    sharpness: f64,
    shrinkage: f64,
    /// Over how many nearest examples a distance is the mean.
    reach: usize,
    /// Mean distance of each example to its own nearest; empty where the artifact has no guard.
    spreads: Vec<f32>,
}

impl Knn {
    pub(super) fn read(card: &Card, tables: &Tables<'_>) -> Result<Self, ArtifactFault> {
        let vectors = tables.get("vectors", card.dimension)?;
        let scores = tables.get("scores", card.models.len())?;
        if vectors.rows != scores.rows {
            return Err(ArtifactFault::Unreadable("it has not as many scores as vectors".to_owned()));
        }
        let spreads = if tables.has("spread") { tables.get("spread", 1)?.values } else { Vec::new() };
        let it = Self::new(card, Examples::coded(&vectors.values, card.dimension), scores.values);
        Ok(Self { spreads, ..it })
    }

    pub(super) fn new(card: &Card, vectors: Examples, scores: Vec<f32>) -> Self {
        Self {
            vectors,
            scores,
            means: card.means.clone(),
            k: card.k.max(1),
            sharpness: card.sharpness,
            shrinkage: card.shrinkage,
            reach: card.guard.map_or(1, |it| it.neighbours.max(1)),
            spreads: Vec::new(),
        }
    }

    /// Similarity and index of the nearest examples, nearest first; of equals the earlier one.
    fn nearest(&self, features: &[f32]) -> Vec<(f32, usize)> {
        let mut keys: Vec<u64> = self
            .vectors
            .nearness(features)
            .into_iter()
            .enumerate()
            .map(|(at, product)| key(product, at))
            .collect();
        let k = self.k.min(keys.len());
        if k < keys.len() {
            keys.select_nth_unstable(k);
            keys.truncate(k);
        }
        keys.sort_unstable();
        keys.into_iter().map(unkey).collect()
    }

    /// How far the request lies from the nearest examples, in their own spreads.
    fn distance(&self, nearest: &[(f32, usize)]) -> Option<f64> {
        let reached = nearest.get(..self.reach.min(nearest.len())).unwrap_or_default();
        let spreads: Option<f64> =
            reached.iter().map(|(_, at)| self.spreads.get(*at).copied().map(f64::from)).sum();
        let distances: f64 = reached.iter().map(|(similarity, _)| 1.0 - f64::from(*similarity)).sum();
        let count = reached.len() as f64;
        spreads.filter(|_| count > 0.0).map(|spreads| relative(distances / count, spreads / count))
    }

    fn row(&self, at: usize) -> &[f32] {
        let models = self.means.len();
        self.scores.get(at * models..(at + 1) * models).unwrap_or_default()
    }
}

impl Predictor for Knn {
    fn predict(&self, features: &[f32], fixed: usize) -> Prediction {
        let nearest = self.nearest(features);
        let weight = |similarity: f32| f64::from(similarity.max(0.0)).powf(self.sharpness);
        let mut total = 0.0;
        let mut squares = 0.0;
        let mut sums = vec![0.0; self.means.len()];
        let mut gains = vec![0.0; self.means.len()];
        let mut gain_squares = vec![0.0; self.means.len()];
        for (similarity, at) in &nearest {
            let weight = weight(*similarity);
            total += weight;
            squares += weight * weight;
            let row = self.row(*at);
            let base = row.get(fixed).copied().map(f64::from).unwrap_or_default();
            let columns = sums.iter_mut().zip(&mut gains).zip(&mut gain_squares).zip(row);
            for (((sum, gain), square), score) in columns {
                let score = f64::from(*score);
                *sum += weight * score;
                *gain += weight * (score - base);
                *square += weight * (score - base) * (score - base);
            }
        }
        let shrunk = |(sum, mean): (&f64, &f64)| {
            let whole = total + self.shrinkage;
            if whole > 0.0 { (sum + self.shrinkage * mean) / whole } else { *mean }
        };
        // A weighted mean difference, and its standard error over the effective number of neighbours.
        let gain = |(sum, square): (&f64, &f64)| {
            if total <= 0.0 {
                return Gain { mean: 0.0, error: 0.0 };
            }
            let mean = sum / total;
            let error = ((square / total - mean * mean).max(0.0) * squares / (total * total)).sqrt();
            Gain { mean, error }
        };
        Prediction {
            scores: sums.iter().zip(&self.means).map(shrunk).collect(),
            gains: gains.iter().zip(&gain_squares).map(gain).collect(),
            distance: self.distance(&nearest),
        }
    }

    fn tune(&mut self, settings: &LearnedSettings) {
        self.k = settings.k.unwrap_or(self.k).max(1);
    }
}

/// A number that sorts by product downwards, then by index upwards.
fn key(product: f32, at: usize) -> u64 {
    let bits = product.to_bits();
    // The bits of a float in the order of its value: flip all of a negative one, the sign of the others.
    let upwards = if bits >> 31 == 1 { !bits } else { bits | (1 << 31) };
    (u64::from(!upwards) << 32) | (at as u64 & 0xffff_ffff)
}

fn unkey(key: u64) -> (f32, usize) {
    let upwards = !((key >> 32) as u32);
    let bits = if upwards >> 31 == 1 { upwards & !(1 << 31) } else { !upwards };
    (f32::from_bits(bits), (key & 0xffff_ffff) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_by_product_downwards_and_then_by_index() {
        let products = [0.5, -0.25, 0.75, 0.5, -1.0, 0.0];
        let mut keys: Vec<u64> = products.iter().enumerate().map(|(at, it)| key(*it, at)).collect();
        keys.sort_unstable();
        let order: Vec<(f32, usize)> = keys.into_iter().map(unkey).collect();
        assert_eq!(order, [(0.75, 2), (0.5, 0), (0.5, 3), (0.0, 5), (-0.25, 1), (-1.0, 4)]);
    }
}
