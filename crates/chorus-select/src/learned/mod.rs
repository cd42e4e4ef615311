//! Learned selectors: what they share.
//!
//! An artifact holds a card (for which encoder, of which models, on which data) and the numbers of one predictor; the
//! [`Learned`] selector maps its columns to the candidates, and keeps requests unlike all that was learnt away from it.
//! It knows no encoder and no file. **Invariant:** an artifact for another encoder or other models is refused when it
//! is loaded, never when a request comes (case D20).

mod artifact;
mod card;
mod contract;
mod examples;
mod fault;
mod features;
mod guard;
pub mod kmeans;
pub mod knn;
pub mod mlp;
pub mod svm;

pub use card::{Card, GuardCard, Tensor, write};
pub use fault::ArtifactFault;
pub use features::CATEGORIES;

use crate::ask::{Needs, SelectionAsk};
use crate::choice::{Choice, first_greatest};
use crate::scale::max_min;
use crate::selector::Selector;
use chorus_spec::LearnedSettings;
use features::Features;
use guard::Guard;

/// The word that every artifact begins with.
pub const FORMAT: &str = "chorus-selector";

/// Version of the format; another one is refused.
pub const VERSION: u32 = 1;

/// Whose vectors an artifact was learnt on, and whose it will get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EncoderIdentity<'a> {
    /// Digest of the encoder's weights.
    pub digest: &'a str,
    /// Length of its vectors.
    pub dimension: usize,
}

/// Which predictor an artifact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "each name is the contract's own word for the selector")]
pub enum Kind {
    Knn,
    Kmeans,
    Svm,
    Mlp,
}

impl Kind {
    /// The contract's type word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Knn => "knn",
            Self::Kmeans => "kmeans",
            Self::Svm => "svm",
            Self::Mlp => "mlp",
        }
    }
}

/// What is expected of each model of an artifact for one request.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Prediction {
    /// Greater is better; one a model.
    pub(crate) scores: Vec<f64>,
    /// What each is expected to gain over the best fixed model, before anything is drawn towards a mean, and the standard
    /// error of that; empty where the predictor has no such measure.
    pub(crate) gains: Vec<Gain>,
    /// How far the request lies from what was learnt (see [`GuardCard`]), where the predictor sees it.
    pub(crate) distance: Option<f64>,
}

/// A difference and how sure it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gain {
    pub(crate) mean: f64,
    pub(crate) error: f64,
}

/// A predictor's numbers.
pub(crate) trait Predictor: std::fmt::Debug + Send + Sync {
    /// What is expected for those features; `fixed` is the column of the best fixed model.
    fn predict(&self, features: &[f32], fixed: usize) -> Prediction;

    /// Takes what the settings override.
    fn tune(&mut self, _settings: &LearnedSettings) {}
}

/// A learned selector.
#[derive(Debug)]
pub struct Learned {
    card: Card,
    features: Features,
    predictor: Box<dyn Predictor>,
    guard: Option<Guard>,
    efficiency_weight: f64,
}

impl Learned {
    /// Reads an artifact: ours, or the contract's JSON.
    ///
    /// # Errors
    /// [`ArtifactFault`]: it cannot be read, or is of another kind.
    pub fn parse(kind: Kind, bytes: &[u8]) -> Result<Self, ArtifactFault> {
        let starts = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
        let it = if starts == Some(&b'{') { contract::parse(bytes)? } else { artifact::parse(bytes)? };
        if it.card.algorithm != kind {
            return Err(ArtifactFault::Format(format!(
                "it holds `{}`, and `{}` is wanted",
                it.card.algorithm.as_str(),
                kind.as_str()
            )));
        }
        Ok(it)
    }

    /// Refuses an artifact for another encoder, or one that does not know a candidate (case D20).
    ///
    /// # Errors
    /// [`ArtifactFault::Encoder`], [`ArtifactFault::Dimension`], [`ArtifactFault::Models`].
    pub fn fit(&self, encoder: Option<EncoderIdentity<'_>>, pool: &[&str]) -> Result<(), ArtifactFault> {
        let known: Vec<&str> = self.card.models.iter().map(String::as_str).collect();
        ArtifactFault::pool(&known, pool)?;
        let Some(encoder) = encoder else {
            return Ok(());
        };
        if let Some(wanted) = self.card.encoder.as_deref().filter(|it| *it != encoder.digest) {
            return Err(ArtifactFault::Encoder {
                wanted: wanted.to_owned(),
                found: encoder.digest.to_owned(),
            });
        }
        if self.features.vector_length() != encoder.dimension {
            return Err(ArtifactFault::Dimension {
                wanted: self.features.vector_length(),
                found: encoder.dimension,
            });
        }
        Ok(())
    }

    /// The same with what the settings override.
    #[must_use]
    pub fn with(mut self, settings: &LearnedSettings) -> Self {
        self.predictor.tune(settings);
        self.efficiency_weight = settings.efficiency_weight.unwrap_or(self.efficiency_weight);
        if settings.guard == Some(false) {
            self.guard = None;
            self.card.caution = 0.0;
        }
        self
    }

    /// What it was made from.
    #[must_use]
    pub fn card(&self) -> &Card {
        &self.card
    }

    /// The column of each candidate.
    fn columns(&self, ask: &SelectionAsk<'_>) -> Vec<Option<usize>> {
        let column = |model: &str| self.card.models.iter().position(|it| it == model);
        ask.candidates.iter().map(|it| column(it.model)).collect()
    }

    /// Expected quality, less what a high price costs where the settings weigh it. Source: Avengers-Pro
    /// (score = α·quality + (1 − α)·(1 − cost)).
    fn priced(&self, ask: &SelectionAsk<'_>, scores: Vec<Option<f64>>) -> Vec<Option<f64>> {
        if self.efficiency_weight <= 0.0 {
            return scores;
        }
        let prices: Vec<Option<f64>> = ask.candidates.iter().map(|it| Some(it.usd_per_1m)).collect();
        let weight = self.efficiency_weight;
        let blend = |(score, cheap): (Option<f64>, Option<f64>)| {
            score.zip(cheap).map(|(score, cheap)| (1.0 - weight) * score + weight * cheap)
        };
        scores.into_iter().zip(max_min(&prices)).map(blend).collect()
    }
}

impl Selector for Learned {
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice {
        let Some(query) = ask.query else {
            return Choice::none(ask, "the request has no vector: no encoder is loaded, or it failed");
        };
        let Some(features) = self.features.of(query, ask.category) else {
            return Choice::none(ask, "the request's vector is not of the length that was learnt");
        };
        let columns = self.columns(ask);
        let pick = |values: &[f64]| -> Vec<Option<f64>> {
            columns.iter().map(|column| values.get((*column)?).copied()).collect()
        };
        let means = self.priced(ask, pick(&self.card.means));
        let Some(fixed) = first_greatest(&means) else {
            return Choice::none(ask, "the artifact knows none of the candidates");
        };
        let fixed_column = columns.get(fixed).copied().flatten().unwrap_or(0);
        let prediction = self.predictor.predict(&features, fixed_column);
        let scores = self.priced(ask, pick(&prediction.scores));
        let distance = prediction.distance;
        if let Some(guard) = &self.guard
            && let Some(why) = guard.stranger(distance, query)
        {
            return Choice::picked(ask, fixed, &means, format!("{why}; the best fixed model"));
        }
        let Some(best) = first_greatest(&scores) else {
            return Choice::picked(
                ask,
                fixed,
                &means,
                "nothing is expected of anybody; the best fixed model",
            );
        };
        let gain = columns.get(best).copied().flatten().and_then(|it| prediction.gains.get(it)).copied();
        let doubtful = gain.filter(|it| best != fixed && it.mean <= self.card.caution * it.error);
        if let Some(Gain { mean, error }) = doubtful.filter(|_| self.card.caution > 0.0) {
            let reason = format!(
                "another seems better by {mean:.3}, give or take {error:.3}: not beyond doubt; the best fixed model"
            );
            return Choice::picked(ask, fixed, &scores, reason);
        }
        let reason = format!("the best that {} expects", self.card.algorithm.as_str());
        Choice::picked(ask, best, &scores, reason)
            .with_confidence(scores.get(best).copied().flatten().unwrap_or(0.0))
    }

    fn needs(&self) -> Needs {
        Needs { query: true, ..Needs::default() }
    }
}
