//! Heads that see a text's words and letters beside the encoder's vector, and such as see the vector alone.
//!
//! It knows no label and no rule. **Invariant:** a head is only asked about vectors of the encoder and the features that
//! it was trained on.

use crate::pass::{SharedPass, loaded};
use chorus_infer::{Head, TextEncoder, lexical};
use chorus_policy::AbsentReason;

/// A head over the encoder's vector and [`lexical::features`], or, where its card says so, over the vector alone.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Worded {
    /// What it tells, for people.
    pub(crate) name: &'static str,
    /// The head, if there is one.
    pub(crate) head: Option<&'static Head>,
}

impl Worded {
    /// The probability of every label for a text that is not empty; the whole text counts, its windows as their mean.
    pub(crate) fn probabilities(
        self,
        encoder: Option<&dyn TextEncoder>,
        text: &str,
        pass: &mut SharedPass,
    ) -> Result<Probabilities, AbsentReason> {
        let encoder = loaded(encoder).map_err(AbsentReason::Failed)?;
        let sees_words = |head: &Head| head.encoder_digest() == lexical::digest(encoder.digest());
        let fits = |head: &&Head| sees_words(head) || head.encoder_digest() == encoder.digest();
        let head = self
            .head
            .filter(fits)
            .ok_or_else(|| AbsentReason::Failed(format!("no {} head fits the loaded encoder", self.name)))?;
        let encoded = pass.encode(encoder, text).map_err(AbsentReason::Failed)?;
        let probabilities = if sees_words(head) {
            head.probabilities(&lexical::join(&encoded.mean, text))
        } else {
            head.probabilities(&encoded.mean)
        };
        Ok(Probabilities { labels: head.labels(), values: probabilities })
    }
}

/// One probability a label, summing to 1.
#[derive(Debug)]
pub(crate) struct Probabilities {
    labels: &'static [String],
    values: Vec<f32>,
}

impl Probabilities {
    /// The same, after something that the head did not see was weighed in.
    pub(crate) fn reweighed(mut self, weigh: impl FnOnce(&[String], &mut [f32])) -> Self {
        weigh(self.labels, &mut self.values);
        self
    }

    /// The probability of a label, 0 when the head does not know it.
    pub(crate) fn of(&self, label: &str) -> f64 {
        let labels = self.labels.iter().zip(&self.values);
        labels.filter(|(known, _)| *known == label).map(|(_, value)| f64::from(*value)).sum()
    }
}
