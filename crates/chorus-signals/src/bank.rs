//! Example sentences as vectors: clustered into prototypes, and how near a text is to them.
//!
//! Shared by every signal that compares with examples; it knows no rule. A text is as near as its nearest window, so
//! that one relevant passage of a long text counts. Scores and the threshold of clusters are on the scale that
//! configuration files are written for ([`Calibration`]). Source: contract §1.4 (`embeddings`).
//!
//! **Invariant:** the same examples in the same order give the same prototypes.

use crate::calibration::Calibration;
use chorus_infer::TextEncoder;
use chorus_spec::PrototypeScoring;
use chorus_vectors::dot;

/// How similarities to the vectors of a bank become one score.
#[derive(Debug, Clone, Copy)]
enum Scoring {
    /// `best_weight`·best + (1 − `best_weight`)·mean of the best `top_m`.
    Prototype { best_weight: f64, top_m: usize },
    /// Mean over all.
    Mean,
    /// The best alone.
    Best,
}

/// Vectors to be near to.
#[derive(Debug)]
pub(crate) struct Bank {
    vectors: Vec<Vec<f32>>,
    scoring: Scoring,
    calibration: Calibration,
}

impl Bank {
    /// Prototypes of examples: greedy clusters, each represented by its medoid, the largest clusters kept.
    pub(crate) fn prototypes(
        encoder: &dyn TextEncoder,
        examples: &[String],
        settings: &PrototypeScoring,
    ) -> Result<Self, String> {
        let calibration = Calibration::of(encoder);
        let cluster_cosine = calibration.cosine(settings.cluster_similarity_threshold);
        let vectors = prototypes(&embed(encoder, examples)?, cluster_cosine, settings.max_prototypes);
        let scoring = Scoring::Prototype { best_weight: settings.best_weight, top_m: settings.top_m.max(1) };
        Ok(Self { vectors, scoring, calibration })
    }

    /// Every example for itself, scored by the mean over all of them.
    pub(crate) fn mean(encoder: &dyn TextEncoder, examples: &[String]) -> Result<Self, String> {
        Self::plain(encoder, examples, Scoring::Mean)
    }

    /// Every example for itself, scored by the nearest.
    pub(crate) fn best(encoder: &dyn TextEncoder, examples: &[String]) -> Result<Self, String> {
        Self::plain(encoder, examples, Scoring::Best)
    }

    fn plain(encoder: &dyn TextEncoder, examples: &[String], scoring: Scoring) -> Result<Self, String> {
        let (vectors, calibration) = (embed(encoder, examples)?, Calibration::of(encoder));
        Ok(Self { vectors, scoring, calibration })
    }

    /// How near the nearest window is, at most 1, on the scale of configuration files; `None` for a bank without
    /// vectors.
    pub(crate) fn score(&self, windows: &[Vec<f32>]) -> Option<f64> {
        let cosine = windows.iter().filter_map(|window| self.score_window(window)).reduce(f64::max);
        cosine.map(|cosine| self.calibration.apply(cosine))
    }

    fn score_window(&self, window: &[f32]) -> Option<f64> {
        let mut similarities: Vec<f64> = self.vectors.iter().map(|vector| cosine(vector, window)).collect();
        similarities.sort_by(|a, b| b.total_cmp(a));
        let best = *similarities.first()?;
        Some(match self.scoring {
            Scoring::Prototype { best_weight, top_m } => {
                best_weight * best + (1.0 - best_weight) * average(similarities.iter().take(top_m))
            }
            Scoring::Mean => average(similarities.iter()),
            Scoring::Best => best,
        })
    }
}

fn average<'v>(values: impl ExactSizeIterator<Item = &'v f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

fn embed(encoder: &dyn TextEncoder, examples: &[String]) -> Result<Vec<Vec<f32>>, String> {
    if examples.is_empty() {
        return Ok(Vec::new());
    }
    let texts: Vec<&str> = examples.iter().map(String::as_str).collect();
    let vectors = encoder.encode_examples(&texts).map_err(|fault| fault.to_string())?;
    if vectors.len() == examples.len() {
        Ok(vectors)
    } else {
        Err(format!("the encoder returned {} vectors for {} examples", vectors.len(), examples.len()))
    }
}

fn prototypes(vectors: &[Vec<f32>], cluster_cosine: f64, max_prototypes: usize) -> Vec<Vec<f32>> {
    let mut clusters: Vec<Vec<&Vec<f32>>> = Vec::new();
    for vector in vectors {
        let near = clusters
            .iter_mut()
            .find(|cluster| cluster.first().is_some_and(|seed| cosine(seed, vector) >= cluster_cosine));
        match near {
            Some(cluster) => cluster.push(vector),
            None => clusters.push(vec![vector]),
        }
    }
    clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.len()));
    let most = if max_prototypes == 0 { clusters.len() } else { max_prototypes };
    clusters.iter().take(most).filter_map(|cluster| medoid(cluster)).collect()
}

/// The member that is nearest to all members; the earliest of equals.
fn medoid(cluster: &[&Vec<f32>]) -> Option<Vec<f32>> {
    let nearness = |member: &Vec<f32>| cluster.iter().map(|other| cosine(member, other)).sum::<f64>();
    let mut best: Option<(f64, &Vec<f32>)> = None;
    for member in cluster {
        let near = nearness(member);
        if best.is_none_or(|(least, _)| near > least) {
            best = Some((near, member));
        }
    }
    best.map(|(_, member)| member.clone())
}

/// Cosine of unit vectors.
pub(crate) fn cosine(a: &[f32], b: &[f32]) -> f64 {
    f64::from(dot(a, b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(degrees: f32) -> Vec<f32> {
        let angle = degrees.to_radians();
        vec![angle.cos(), angle.sin()]
    }

    fn bank(vectors: Vec<Vec<f32>>, scoring: Scoring) -> Bank {
        Bank { vectors, scoring, calibration: Calibration::default() }
    }

    #[test]
    fn clusters_by_hand() {
        // 0°, 10° and 20° share the seed 0° (cos 20° = .94); 90° stands alone. The medoid of the three is 10°.
        let vectors = [unit(0.0), unit(90.0), unit(10.0), unit(20.0)];
        assert_eq!(prototypes(&vectors, 0.9, 8), [unit(10.0), unit(90.0)]);
        assert_eq!(prototypes(&vectors, 0.9, 1), [unit(10.0)]);
        assert!(prototypes(&[], 0.9, 8).is_empty());
    }

    #[test]
    fn scores_by_hand() {
        let vectors = vec![unit(0.0), unit(60.0), unit(90.0)];
        let text = [unit(0.0)];
        let score = |scoring| bank(vectors.clone(), scoring).score(&text).unwrap();
        // Similarities 1, .5, 0.
        let prototype = Scoring::Prototype { best_weight: 0.75, top_m: 2 };
        assert!((score(prototype) - (0.75 + 0.25 * 0.75)).abs() < 1e-6);
        assert!((score(Scoring::Mean) - 0.5).abs() < 1e-6);
        assert!((score(Scoring::Best) - 1.0).abs() < 1e-6);
        // The nearest window counts.
        let far = bank(vec![unit(90.0)], Scoring::Best);
        assert!((far.score(&[unit(0.0), unit(90.0)]).unwrap() - 1.0).abs() < 1e-6);
        assert_eq!(bank(vec![], Scoring::Best).score(&text), None);
        // A score is told on the scale of configuration files.
        let calibration = Calibration::through(vec![(0.0, 0.4), (1.0, 0.8)]).unwrap();
        let scaled = Bank { vectors: vec![unit(60.0)], scoring: Scoring::Best, calibration };
        assert!((scaled.score(&text).unwrap() - 0.6).abs() < 1e-6);
    }
}
