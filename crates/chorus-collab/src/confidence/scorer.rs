//! A trained rule over an answer's log-probabilities. Training is not done here; the weights come from a file.
//!
//! The file is JSON, `chorus.answer-scorer/1`: the features by name, and for each model a bias and one weight a feature.
//! Source: post-hoc deferral, 2404.10136.
//!
//! **Invariant:** a file that names other features, or weights that are none, is not read; an answer that lacks a feature
//! has no score.

use super::quantiles::{mean, quantile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The word of the file's form.
const FORMAT: &str = "chorus.answer-scorer/1";
/// Which quantiles are features.
const QUANTILES: [f64; 10] = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0];
/// The quantiles, the mean, the mean margin, and the length.
const COUNT: usize = QUANTILES.len() + 3;

/// What a scorer can see of an answer, by name: ten quantiles of its log-probabilities in −20..=0, their mean, the mean
/// distance of the best two alternatives in nats, and ln(1 + tokens).
pub const FEATURES: [&str; COUNT] =
    ["q0", "q01", "q05", "q10", "q20", "q30", "q40", "q50", "q75", "q100", "mean", "margin", "length"];

/// The features of one answer, in the order of [`FEATURES`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Features([Option<f64>; COUNT]);

impl Features {
    /// The features of log-probabilities in ascending order; `margin` is absent where the backend gave no alternatives.
    #[must_use]
    pub fn of(ascending: &[f64], margin: Option<f64>) -> Self {
        let ends = [Some(mean(ascending.iter().copied())), margin, Some((ascending.len() as f64).ln_1p())];
        let mut all = QUANTILES.iter().map(|at| Some(quantile(ascending, *at))).chain(ends);
        Self(std::array::from_fn(|_| all.next().flatten()))
    }

    /// The value of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let at = FEATURES.iter().position(|known| *known == name)?;
        self.0.get(at).copied().flatten()
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
    pub weights: Vec<f64>,
}

/// One logistic model a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogisticScorer {
    /// The word of the form, `chorus.answer-scorer/1`.
    pub format: String,
    /// For people.
    #[serde(default)]
    pub description: String,
    /// Digest of the answers that it was trained on, for people.
    #[serde(default)]
    pub trained_on: String,
    /// Which of [`FEATURES`] count, in the order of the weights.
    pub features: Vec<String>,
    /// By model.
    pub models: BTreeMap<String, Logistic>,
}

/// Why a file is no scorer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScorerFault {
    /// Not the JSON of a scorer.
    #[error("it cannot be read: {0}")]
    Json(String),
    /// Another form.
    #[error("its format is `{0}`; this version reads `chorus.answer-scorer/1`")]
    Format(String),
    /// A feature that nobody measures.
    #[error("`{0}` is no feature of an answer")]
    Feature(String),
    /// Weights that do not belong to the features.
    #[error("`{model}` has {got} weights for {wanted} features, or one that is not finite")]
    Weights {
        /// Whose.
        model: String,
        /// Weights there are.
        got: usize,
        /// Features there are.
        wanted: usize,
    },
}

impl LogisticScorer {
    /// Reads a file's text.
    ///
    /// # Errors
    /// [`ScorerFault`].
    pub fn read(text: &str) -> Result<Self, ScorerFault> {
        let scorer: Self =
            serde_json::from_str(text).map_err(|fault| ScorerFault::Json(fault.to_string()))?;
        if scorer.format != FORMAT {
            return Err(ScorerFault::Format(scorer.format));
        }
        if let Some(unknown) = scorer.features.iter().find(|name| !FEATURES.contains(&name.as_str())) {
            return Err(ScorerFault::Feature(unknown.clone()));
        }
        let wanted = scorer.features.len();
        let odd = |own: &Logistic| {
            own.weights.len() != wanted || !own.weights.iter().chain([&own.bias]).all(|n| n.is_finite())
        };
        match scorer.models.iter().find(|(_, own)| odd(own)) {
            Some((model, own)) => {
                Err(ScorerFault::Weights { model: model.clone(), got: own.weights.len(), wanted })
            }
            None => Ok(scorer),
        }
    }
}

impl Scorer for LogisticScorer {
    fn score(&self, model: &str, features: &Features) -> Option<f64> {
        let own = self.models.get(model)?;
        let mut sum = own.bias;
        for (name, weight) in self.features.iter().zip(&own.weights) {
            sum += weight * features.get(name)?;
        }
        Some(1.0 / (1.0 + (-sum).exp()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"{"format":"chorus.answer-scorer/1","features":["q0","margin"],
        "models":{"small":{"bias":0.5,"weights":[2,1]}}}"#;

    #[test]
    fn a_scorer_reads_from_json_and_knows_its_models_only() {
        let scorer = LogisticScorer::read(FILE).unwrap();
        let features = Features::of(&[-0.5, -0.1, 0.0], Some(0.5));
        assert!((scorer.score("small", &features).unwrap() - 0.5).abs() < 1e-12);
        assert_eq!(scorer.score("large", &features), None);
        let without = Features::of(&[-0.5, -0.1, 0.0], None);
        assert_eq!(scorer.score("small", &without), None, "no margin is no evidence");
    }

    #[test]
    fn a_file_that_does_not_match_is_refused() {
        for (from, to, said) in [
            ("scorer/1", "scorer/2", "its format is `chorus.answer-scorer/2`"),
            ("\"margin\"", "\"mood\"", "`mood` is no feature"),
            ("[2,1]", "[2]", "`small` has 1 weights for 2 features"),
            ("0.5", "1e999", "it cannot be read"),
            ("\"bias\"", "\"bios\"", "it cannot be read"),
        ] {
            let fault = LogisticScorer::read(&FILE.replace(from, to)).unwrap_err().to_string();
            assert!(fault.contains(said), "{fault}");
        }
    }

    #[test]
    fn features_are_quantiles_mean_margin_and_length() {
        let features = Features::of(&[-2.0, -1.0, 0.0], None);
        let got: Vec<Option<f64>> =
            ["q0", "q50", "q100", "mean", "margin"].map(|name| features.get(name)).to_vec();
        assert_eq!(got, [Some(-2.0), Some(-1.0), Some(0.0), Some(-1.0), None]);
        assert!((features.get("length").unwrap() - 4f64.ln()).abs() < 1e-12);
        assert_eq!(features.get("mood"), None);
    }
}
