//! Whether a statement follows from a text, cannot hold beside it, or neither; for its own sake.
//!
//! The rules are [`chorus_cache::guard::entailment`]; where an encoder is loaded, it says how alike two sentences are, which
//! stands in for words that they do not share. It is no trained model of entailment, and says so. **Invariant:** no likeness
//! makes a statement follow that disagrees with the text in a number, a negation or an opposite word.

pub use chorus_cache::guard::{Judgement, Verdict};

use crate::classify::Classifiers;
use crate::fault::{Code, Fault};
use chorus_cache::guard::{entailment, sentences};
use chorus_infer::TextEncoder;
use chorus_signals::Calibration;
use chorus_vectors::dot;
use std::collections::BTreeMap;

/// Most bytes of each of the two texts.
pub const MAX_TEXT_BYTES: usize = 16 * 1024;
/// Most sentences of both texts that an encoder reads; with more, words decide alone.
pub const MAX_COMPARED: usize = 128;

/// A judgement, and the digest of the encoder that helped, where one did.
#[derive(Debug, Clone, PartialEq)]
pub struct Entailed {
    /// What the text says of the statement.
    pub judgement: Judgement,
    /// The encoder's digest.
    pub encoder: Option<String>,
}

impl Classifiers {
    /// Judges a statement by a text.
    ///
    /// # Errors
    /// [`Code::InvalidRequest`] for a text above [`MAX_TEXT_BYTES`].
    pub async fn entailment(&self, premise: String, hypothesis: String) -> Result<Entailed, Fault> {
        for (name, text) in [("premise", &premise), ("hypothesis", &hypothesis)] {
            if text.len() > MAX_TEXT_BYTES {
                let bytes = text.len();
                let why =
                    format!("`{name}` has {bytes} bytes; {MAX_TEXT_BYTES} are the most (max_nli_bytes)");
                return Err(Fault::new(Code::InvalidRequest, why).at(name));
            }
        }
        let encoder = self.shared_encoder();
        self.blocking(move || {
            match encoder.as_deref().and_then(|it| Alike::read(it, &premise, &hypothesis)) {
                Some(alike) => Entailed {
                    judgement: entailment(&premise, &hypothesis, &|one, other| alike.likeness(one, other)),
                    encoder: encoder.as_deref().map(|it| it.digest().to_owned()),
                },
                None => Entailed { judgement: entailment(&premise, &hypothesis, &|_, _| 0.0), encoder: None },
            }
        })
        .await
    }
}

/// Sentences with their vectors.
#[derive(Debug)]
pub struct Alike {
    vectors: BTreeMap<String, Vec<f32>>,
    calibration: Calibration,
}

impl Alike {
    /// Reads all sentences of both texts; none where there are too many, or the encoder fails.
    #[must_use]
    pub fn read(encoder: &dyn TextEncoder, premise: &str, hypothesis: &str) -> Option<Self> {
        let texts: Vec<&str> = sentences(premise).into_iter().chain(sentences(hypothesis)).collect();
        if texts.is_empty() || texts.len() > MAX_COMPARED {
            return None;
        }
        let vectors = encoder.encode(&texts).ok()?;
        let vectors = texts.into_iter().map(str::to_owned).zip(vectors).collect();
        Some(Self { vectors, calibration: Calibration::of(encoder) })
    }

    /// How alike two of them are, in 0..=1 on the scale of configuration files; 0 for one that was not read.
    #[must_use]
    pub fn likeness(&self, one: &str, other: &str) -> f64 {
        let (Some(one), Some(other)) = (self.vectors.get(one), self.vectors.get(other)) else { return 0.0 };
        self.calibration.apply(f64::from(dot(one, other))).clamp(0.0, 1.0)
    }
}
