//! The artifact of `knn`: all examples, and how close they lie to each other.

use super::graded::Graded;
use chorus_select::learned::{Card, GuardCard, Tensor};
use std::collections::BTreeMap;

/// Neighbours that vote: many, because single grades are noisy. Source: mom_science §2.7.
const NEIGHBOURS: usize = 100;

/// Power of the similarity that weighs a neighbour. Source: mom_science §3.1.
const SHARPNESS: f64 = 1.0;

/// Observations that the mean over all data is worth. Source: mom_science §3.1 (κ ≈ 10).
const SHRINKAGE: f64 = 10.0;

/// Standard errors by which another must beat the best fixed model: one side of 95%. Sharing that doubt out among all eight
/// others (2.5 standard errors) gives up most of the gain on known tasks, and loses as much on unknown ones: see
/// docs/selectors/training.md.
const CAUTION: f64 = 1.645;

/// Nearest examples whose distance tells a stranger.
pub(super) const REACH: usize = 5;

/// Share of training examples that are no strangers to the others.
pub(super) const FAMILIAR: f64 = 0.9;

/// Card and tables.
pub(super) fn fit(card: Card, train: &Graded) -> (Card, BTreeMap<String, Tensor>) {
    let neighbours = train.neighbours(REACH);
    let mean = |it: &Vec<(f32, usize)>| it.iter().map(|it| it.0).sum::<f32>() / it.len().max(1) as f32;
    let spreads: Vec<f32> = neighbours.iter().map(mean).collect();
    let relative = |(own, near): (&f32, &Vec<(f32, usize)>)| {
        let around =
            near.iter().filter_map(|(_, at)| spreads.get(*at)).sum::<f32>() / near.len().max(1) as f32;
        f64::from(*own) / f64::from(around).max(1e-3)
    };
    let distances = spreads.iter().zip(&neighbours).map(relative).collect();
    let guard = GuardCard { quantile: FAMILIAR, distance: quantile(distances, FAMILIAR), neighbours: REACH };
    let card = Card {
        k: NEIGHBOURS,
        sharpness: SHARPNESS,
        shrinkage: SHRINKAGE,
        caution: CAUTION,
        guard: Some(guard),
        ..card
    };
    let tensors = BTreeMap::from([
        ("vectors".to_owned(), Tensor::new(train.dimension, train.vectors.clone())),
        ("scores".to_owned(), Tensor::new(train.models.len(), train.scores.clone())),
        ("spread".to_owned(), Tensor::new(1, spreads)),
    ]);
    (card, tensors)
}

/// The number below which that share lies.
pub(super) fn quantile(mut values: Vec<f64>, share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let at = (share * values.len().saturating_sub(1) as f64).round() as usize;
    values.get(at).copied().unwrap_or(f64::MAX)
}
