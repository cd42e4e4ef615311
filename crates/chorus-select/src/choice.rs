//! What a selector says: whom it picked, what it gave each, and why.

use crate::ask::{Candidate, SelectionAsk};

/// A selector's answer.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Choice {
    /// Index of the pick among the candidates; `None` where the selector cannot choose, for the reason that it gives.
    pub pick: Option<usize>,
    /// Whether nobody may be taken in its stead, whatever `on_error` says.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// How sure the selector is, in 0..=1, where it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// One row a candidate, in their order.
    pub scores: Vec<Score>,
    /// Why, for people.
    pub reason: String,
    /// Probability with which this pick was drawn, where a draw decided; above 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensity: Option<f64>,
}

/// What a candidate was given.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Score {
    /// Who.
    pub model: String,
    /// Greater is better; in 0..=1 for all selectors. `None` where it was not compared.
    pub score: Option<f64>,
    /// What else is to be said about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Choice {
    /// A pick by the greatest score; of equals the earlier one. Nobody is picked where nobody has a score.
    pub(crate) fn best(ask: &SelectionAsk<'_>, scores: &[Option<f64>], reason: impl Into<String>) -> Self {
        Self { pick: first_greatest(scores), ..Self::scored(ask, scores, reason) }
    }

    /// A pick that something else than the scores decided.
    pub(crate) fn picked(
        ask: &SelectionAsk<'_>,
        pick: usize,
        scores: &[Option<f64>],
        reason: impl Into<String>,
    ) -> Self {
        let pick = Some(pick).filter(|pick| *pick < ask.candidates.len());
        Self { pick, ..Self::scored(ask, scores, reason) }
    }

    /// No pick.
    pub(crate) fn none(ask: &SelectionAsk<'_>, reason: impl Into<String>) -> Self {
        Self::scored(ask, &[], reason)
    }

    fn scored(ask: &SelectionAsk<'_>, scores: &[Option<f64>], reason: impl Into<String>) -> Self {
        let row = |(at, candidate): (usize, &Candidate<'_>)| Score {
            model: candidate.model.to_owned(),
            score: scores.get(at).copied().flatten(),
            note: None,
        };
        Self {
            pick: None,
            refused: false,
            confidence: None,
            scores: ask.candidates.iter().enumerate().map(row).collect(),
            reason: reason.into(),
            propensity: None,
        }
    }

    pub(crate) fn with_confidence(mut self, confidence: f64) -> Self {
        self.confidence = Some(confidence.clamp(0.0, 1.0));
        self
    }

    /// Adds a remark to one candidate's row.
    pub(crate) fn note(&mut self, at: usize, note: impl Into<String>) {
        if let Some(row) = self.scores.get_mut(at) {
            row.note = Some(note.into());
        }
    }

    /// The name of the pick.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.scores.get(self.pick?).map(|row| row.model.as_str())
    }
}

/// Further draws from which the probability of a drawn pick is estimated.
const DRAWS: u32 = 128;

/// A pick by drawn scores, the scores that it was made from, and about how probable it was; `None` without candidates.
pub(crate) fn drawn(mut draw: impl FnMut() -> Vec<Option<f64>>) -> Option<(usize, Vec<Option<f64>>, f64)> {
    let scores = draw();
    let pick = first_greatest(&scores)?;
    let same = (0..DRAWS).filter(|_| first_greatest(&draw()) == Some(pick)).count();
    // The pick itself counts as one of the draws, so that the probability of what happened is never 0.
    Some((pick, scores, (same as f64 + 1.0) / (f64::from(DRAWS) + 1.0)))
}

/// Index of the greatest number, the first of equals; numbers that are none are passed over.
pub(crate) fn first_greatest(scores: &[Option<f64>]) -> Option<usize> {
    let mut best: Option<(usize, f64)> = None;
    for (at, score) in scores.iter().enumerate() {
        if let Some(score) = score.filter(|score| !score.is_nan())
            && best.is_none_or(|(_, greatest)| score > greatest)
        {
            best = Some((at, score));
        }
    }
    best.map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_the_first_is_greatest_and_what_is_no_number_is_passed_over() {
        assert_eq!(first_greatest(&[None, Some(0.5), Some(0.5), Some(f64::NAN)]), Some(1));
        assert_eq!(first_greatest(&[Some(f64::NAN), None]), None);
        assert_eq!(first_greatest(&[]), None);
    }
}
