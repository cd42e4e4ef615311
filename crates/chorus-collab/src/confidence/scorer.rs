//! A trained rule over the quantiles of log-probabilities. Training is not done here; the weights come with the bundle.
//!
//! Source: post-hoc deferral, 2404.10136.

use super::quantiles::{mean, quantile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Which quantiles are features.
const QUANTILES: [f64; 10] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0];
/// The quantiles, the mean, and the length.
const FEATURES: usize = QUANTILES.len() + 2;

/// What a scorer sees of an answer: ten quantiles of its log-probabilities (0, .01, .05, .1, .2, .3, .4, .5, .75, 1), in
/// −20..=0, their mean, and ln(1 + tokens).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features([f64; FEATURES]);

impl Features {
    /// The features of log-probabilities in ascending order.
    #[must_use]
    pub fn of(ascending: &[f64]) -> Self {
        let ends = [mean(ascending.iter().copied()), (ascending.len() as f64).ln_1p()];
        let mut all = QUANTILES.iter().map(|at| quantile(ascending, *at)).chain(ends);
        Self(std::array::from_fn(|_| all.next().unwrap_or_default()))
    }

    /// In the order of the type's own text.
    #[must_use]
    pub fn values(&self) -> &[f64; FEATURES] {
        &self.0
    }
}

/// Whoever can tell how likely an answer is right.
pub trait Scorer: fmt::Debug + Send + Sync {
    /// In 0..=1; `None` for a model it was not trained for, because log-probabilities of different models do not compare.
    fn score(&self, model: &str, features: &Features) -> Option<f64>;
}

/// A logistic model: `σ(bias + weights · features)`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Logistic {
    /// The intercept.
    pub bias: f64,
    /// One a feature; standardisation is folded in.
    pub weights: [f64; FEATURES],
}

impl Logistic {
    /// The probability, in 0..=1.
    #[must_use]
    pub fn evaluate(&self, features: &Features) -> f64 {
        let sum: f64 = self.weights.iter().zip(features.values()).map(|(w, x)| w * x).sum();
        1.0 / (1.0 + (-(self.bias + sum)).exp())
    }
}

/// One logistic model a model.
#[derive(Debug, Default, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LogisticScorer {
    /// By model.
    pub models: BTreeMap<String, Logistic>,
}

impl Scorer for LogisticScorer {
    fn score(&self, model: &str, features: &Features) -> Option<f64> {
        self.models.get(model).map(|logistic| logistic.evaluate(features))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scorer_reads_from_json_and_knows_its_models_only() {
        let zeros = ["0"; FEATURES - 1].join(",");
        let json = format!(r#"{{"small":{{"bias":0.5,"weights":[2,{zeros}]}}}}"#);
        let scorer: LogisticScorer = serde_json::from_str(&json).unwrap();
        let features = Features::of(&[-0.25, -0.1, 0.0]);
        assert!((scorer.score("small", &features).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(scorer.score("large", &features), None);
        assert!(serde_json::from_str::<LogisticScorer>(r#"{"small":{"bias":0,"weights":[1]}}"#).is_err());
    }

    #[test]
    fn features_are_quantiles_mean_and_length() {
        let features = Features::of(&[-2.0, -1.0, 0.0]);
        let values = features.values();
        assert_eq!((values[0], values[7], values[9]), (-2.0, -1.0, 0.0));
        assert!((values[10] + 1.0).abs() < 1e-12 && (values[11] - 4f64.ln()).abs() < 1e-12);
    }
}
