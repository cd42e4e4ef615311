//! Learned selectors: trained on graded answers, written as artifacts, and measured.
//!
//! Data: `outcomes/llmrouter_{train,test}.json.gz`, whose test part is looked at once, after everything is chosen, and
//! `outcomes/llmrouter_queries.jsonl.gz`, which says of which task a training question is. It knows no request and no
//! server. Invariant: the same data and the same encoder give the same artifact, byte by byte.

mod clusters;
mod evaluate;
mod graded;
mod knn;
mod linear;
mod network;
mod ratings;
mod report;

pub use report::{LeftOut, SelectorReport};

use crate::fault::LabFault;
use chorus_infer::TextEncoder;
use chorus_select::learned::{Card, Kind, Learned, Tensor, write};
use graded::Graded;
use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

/// Which selector is trained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is the contract's own word for the selector")]
pub enum SelectorKind {
    Knn,
    Kmeans,
    Svm,
    Mlp,
    Elo,
}

impl SelectorKind {
    /// The contract's type word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.learned().map_or("elo", Kind::as_str)
    }

    /// The predictor, where it is one over vectors.
    fn learned(self) -> Option<Kind> {
        match self {
            Self::Knn => Some(Kind::Knn),
            Self::Kmeans => Some(Kind::Kmeans),
            Self::Svm => Some(Kind::Svm),
            Self::Mlp => Some(Kind::Mlp),
            Self::Elo => None,
        }
    }
}

/// A training run.
#[derive(Debug, Clone)]
pub struct TrainSelector {
    /// Which selectors; the questions are encoded once for all of them.
    pub kinds: Vec<SelectorKind>,
    /// Folder of the public datasets: `outcomes/`.
    pub data_dir: PathBuf,
    /// Folder that gets the artifacts and their cards.
    pub out_dir: PathBuf,
}

impl TrainSelector {
    /// Trains, measures and writes each selector; `progress` gets a line now and then.
    ///
    /// # Errors
    /// [`LabFault`] when a dataset is absent or broken, or a file cannot be written.
    pub fn run(
        &self,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Vec<SelectorReport>, LabFault> {
        let train = Graded::training(&self.data_dir, encoder, progress)?;
        let test = Graded::test(&self.data_dir, encoder, progress)?;
        let one = |kind: &SelectorKind| self.one(*kind, &train, &test, encoder.digest(), progress);
        self.kinds.iter().map(one).collect()
    }

    fn one(
        &self,
        kind: SelectorKind,
        train: &Graded,
        test: &Graded,
        encoder: &str,
        progress: &mut dyn FnMut(&str),
    ) -> Result<SelectorReport, LabFault> {
        let (name, bytes, report) = match kind.learned() {
            Some(kind) => {
                progress(&format!("fitting {}", kind.as_str()));
                let bytes = fitted(kind, train, encoder)?;
                let report = evaluate::learned(kind, &bytes, train, test, encoder, progress)?;
                (format!("{}.safetensors", kind.as_str()), bytes, report)
            }
            None => {
                let ratings = ratings::fit(train);
                let bytes = serde_json::to_vec_pretty(&ratings).unwrap_or_default();
                ("elo.json".to_owned(), bytes, evaluate::rated(&ratings, train, test))
            }
        };
        fs::create_dir_all(&self.out_dir).map_err(|cause| LabFault::file(&self.out_dir, cause))?;
        let card = format!("{}.md", kind.as_str());
        for (name, content) in [(name, bytes), (card, report.to_string().into_bytes())] {
            let path = self.out_dir.join(name);
            fs::write(&path, content).map_err(|cause| LabFault::file(&path, cause))?;
        }
        Ok(report)
    }
}

/// The bytes of an artifact fitted on these examples.
fn fitted(kind: Kind, train: &Graded, encoder: &str) -> Result<Vec<u8>, LabFault> {
    let card = Card {
        data: train.digest(),
        examples: train.len(),
        means: train.means(),
        ..Card::of(kind, encoder, train.dimension, train.models.clone())
    };
    let (card, tensors): (Card, BTreeMap<String, Tensor>) = match kind {
        Kind::Knn => knn::fit(card, train),
        Kind::Kmeans => clusters::fit(card, train),
        Kind::Svm => linear::fit(card, train),
        Kind::Mlp => network::fit(card, train),
    };
    Ok(write(&card, &tensors)?)
}

/// The selector that the engine would make of these bytes.
fn served(kind: Kind, bytes: &[u8], guarded: bool) -> Result<Learned, LabFault> {
    let settings =
        chorus_spec::LearnedSettings { guard: Some(guarded), ..chorus_spec::LearnedSettings::default() };
    Ok(Learned::parse(kind, bytes)?.with(&settings))
}
