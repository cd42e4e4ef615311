//! Clusters of training questions: the artifact of `kmeans`, and the anchors by which other selectors tell strangers.

use super::graded::Graded;
use super::knn::{FAMILIAR, quantile};
use crate::regression::dot;
use chorus_select::learned::{Card, GuardCard, Tensor};
use std::collections::BTreeMap;

/// How many there are. Source: mom_science §2.3 (Avengers-Pro, about 60).
const CLUSTERS: usize = 60;

/// How many are asked. Source: as above (top 4).
const ASKED: usize = 4;

/// Observations that the mean over all data is worth beside a cluster.
const SHRINKAGE: f64 = 10.0;

/// Rounds of assigning and averaging; more change nothing any more.
const ROUNDS: usize = 25;

/// Centres of unit length, and which one each question is nearest to.
pub(super) struct Clusters {
    pub(super) centres: Vec<Vec<f32>>,
    pub(super) members: Vec<usize>,
}

impl Clusters {
    /// Spherical k-means from the first centres that lie farthest from each other.
    pub(super) fn of(train: &Graded) -> Self {
        let mut centres = spread_out(train, CLUSTERS.min(train.len()));
        let mut members = assigned(train, &centres);
        for _ in 0..ROUNDS {
            centres = averaged(train, &centres, &members);
            let next = assigned(train, &centres);
            if next == members {
                break;
            }
            members = next;
        }
        Self { centres, members }
    }

    /// Distance of each question to its centre.
    fn distances<'a>(&'a self, train: &'a Graded) -> impl Iterator<Item = (usize, f32)> + 'a {
        train.rows().zip(&self.members).map(|(row, at)| {
            let centre = self.centres.get(*at).map(Vec::as_slice).unwrap_or_default();
            (*at, 1.0 - dot(row, centre))
        })
    }

    /// The tables `anchors` and `spread`, and the bound beyond which a request is a stranger.
    pub(super) fn anchors(&self, train: &Graded) -> (BTreeMap<String, Tensor>, GuardCard) {
        let mut sums = vec![(0.0f32, 0u32); self.centres.len()];
        for (at, distance) in self.distances(train) {
            if let Some((sum, count)) = sums.get_mut(at) {
                *sum += distance;
                *count += 1;
            }
        }
        let spreads: Vec<f32> = sums.iter().map(|(sum, count)| sum / (*count).max(1) as f32).collect();
        let spread = |at: usize| f64::from(spreads.get(at).copied().unwrap_or(1.0)).max(1e-3);
        let relative = self.distances(train).map(|(at, it)| f64::from(it) / spread(at)).collect();
        let guard = GuardCard { quantile: FAMILIAR, distance: quantile(relative, FAMILIAR), neighbours: 1 };
        let tensors = BTreeMap::from([
            ("anchors".to_owned(), Tensor::new(train.dimension, self.centres.concat())),
            ("spread".to_owned(), Tensor::new(1, spreads)),
        ]);
        (tensors, guard)
    }
}

/// Card and tables of `kmeans`.
pub(super) fn fit(card: Card, train: &Graded) -> (Card, BTreeMap<String, Tensor>) {
    let clusters = Clusters::of(train);
    let models = train.models.len();
    let mut sums = vec![vec![0.0f64; models]; clusters.centres.len()];
    let mut counts = vec![0.0f64; clusters.centres.len()];
    for (at, grades) in clusters.members.iter().zip(train.grades()) {
        if let (Some(row), Some(count)) = (sums.get_mut(*at), counts.get_mut(*at)) {
            row.iter_mut().zip(grades).for_each(|(sum, it)| *sum += f64::from(*it));
            *count += 1.0;
        }
    }
    let shrunk = |(row, count): (&Vec<f64>, &f64)| -> Vec<f32> {
        let means = row.iter().zip(&card.means);
        means.map(|(sum, mean)| ((sum + SHRINKAGE * mean) / (count + SHRINKAGE)) as f32).collect()
    };
    let scores: Vec<f32> = sums.iter().zip(&counts).flat_map(shrunk).collect();
    let (mut tensors, guard) = clusters.anchors(train);
    tensors.insert("centroids".to_owned(), Tensor::new(train.dimension, clusters.centres.concat()));
    tensors.insert("scores".to_owned(), Tensor::new(models, scores));
    (Card { k: ASKED, shrinkage: SHRINKAGE, guard: Some(guard), ..card }, tensors)
}

/// The question nearest to the mean of all, then each time the one whose nearest centre is farthest.
fn spread_out(train: &Graded, count: usize) -> Vec<Vec<f32>> {
    let mean = averaged_over(train.rows(), train.dimension);
    let first = train.rows().max_by(|a, b| dot(a, &mean).total_cmp(&dot(b, &mean)));
    let mut centres: Vec<Vec<f32>> = first.into_iter().map(<[f32]>::to_vec).collect();
    let mut nearest = vec![f32::NEG_INFINITY; train.len()];
    while centres.len() < count {
        let Some(last) = centres.last() else { break };
        for (near, row) in nearest.iter_mut().zip(train.rows()) {
            *near = near.max(dot(row, last));
        }
        let farthest = nearest.iter().zip(train.rows()).min_by(|a, b| a.0.total_cmp(b.0));
        let Some((_, row)) = farthest else { break };
        centres.push(row.to_vec());
    }
    centres
}

fn assigned(train: &Graded, centres: &[Vec<f32>]) -> Vec<usize> {
    let nearest = |row: &[f32]| {
        let products = centres.iter().map(|centre| dot(row, centre)).enumerate();
        products.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))).map_or(0, |it| it.0)
    };
    train.rows().map(nearest).collect()
}

/// A centre that lost all of its members stays where it is.
fn averaged(train: &Graded, centres: &[Vec<f32>], members: &[usize]) -> Vec<Vec<f32>> {
    let of = |(at, centre): (usize, &Vec<f32>)| {
        let own: Vec<&[f32]> =
            train.rows().zip(members).filter(|(_, it)| **it == at).map(|(row, _)| row).collect();
        if own.is_empty() { centre.clone() } else { averaged_over(own.into_iter(), train.dimension) }
    };
    centres.iter().enumerate().map(of).collect()
}

fn averaged_over<'a>(rows: impl Iterator<Item = &'a [f32]>, dimension: usize) -> Vec<f32> {
    let mut sum = vec![0.0f32; dimension];
    for row in rows {
        sum.iter_mut().zip(row).for_each(|(sum, it)| *sum += it);
    }
    let length = dot(&sum, &sum).sqrt().max(f32::MIN_POSITIVE);
    sum.iter_mut().for_each(|it| *it /= length);
    sum
}
