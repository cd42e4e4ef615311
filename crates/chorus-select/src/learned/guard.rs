//! Requests unlike all that was learnt.
//!
//! A distance means little by itself: questions of one task lie close together, those of another far apart. So a
//! request's distance to its nearest examples is held against how far these lie from their own neighbours.
//! Sources: the local outlier factor (Breunig et al. 2000); mom_science §0 and §2.7 (every learned selector lost to the
//! best fixed model on tasks that it had not seen).

use super::card::GuardCard;
use chorus_vectors::Coded;

/// A bound on the distance to what was learnt.
#[derive(Debug, Clone)]
pub(crate) struct Guard {
    card: GuardCard,
    anchors: Option<Anchors>,
}

/// Points of the training data, for predictors that see no distances themselves.
#[derive(Debug, Clone)]
pub(crate) struct Anchors {
    pub(crate) points: Coded,
    /// Mean distance of what was learnt around each.
    pub(crate) spreads: Vec<f32>,
}

impl Guard {
    pub(crate) fn new(card: GuardCard, anchors: Option<Anchors>) -> Self {
        Self { card, anchors }
    }

    /// Why the request is a stranger, if it is one.
    pub(crate) fn stranger(&self, seen: Option<f64>, query: &[f32]) -> Option<String> {
        let distance = self.anchors.as_ref().and_then(|it| it.distance(query)).or(seen)?;
        (distance > self.card.distance).then(|| {
            format!(
                "it lies {distance:.2} times as far from what was learnt as that from itself; {:.0}% lie within {:.2}",
                self.card.quantile * 100.0,
                self.card.distance
            )
        })
    }
}

impl Anchors {
    /// Distance to the nearest point, in spreads of that point.
    fn distance(&self, query: &[f32]) -> Option<f64> {
        let products = self.points.products(query);
        let nearest = products.iter().zip(&self.spreads).max_by(|a, b| a.0.total_cmp(b.0))?;
        Some(relative(1.0 - f64::from(*nearest.0), f64::from(*nearest.1)))
    }
}

/// A distance in spreads; a spread of nearly nothing (copies of one text) counts as a small one.
pub(crate) fn relative(distance: f64, spread: f64) -> f64 {
    const LEAST_SPREAD: f64 = 1e-3;
    distance / spread.max(LEAST_SPREAD)
}
