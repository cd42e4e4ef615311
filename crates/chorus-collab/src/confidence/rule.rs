//! Confidence from log-probabilities.
//!
//! Sources: contract §2.2 for the mean, the margin and their scales; 2404.10136 for the quantile and the learned rule.

use super::evidence::NoEvidence;
use super::logprobs::{self, Token};
use super::quantiles::{mean, quantile};
use super::scorer::{Features, Scorer};
use crate::calls::Reply;
use chorus_spec::TokenFilter;

/// Nats over which a mean log-probability falls from 1 to 0, and in which a margin is measured. Source: contract §2.2.
const SCALE: f64 = 3.0;

/// How log-probabilities become a confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum LogprobRule {
    /// `clamp(1 + mean/3, 0, 1)`.
    Average,
    /// `1 − exp(−mean gap/3)`, where a gap is the distance of the best two alternatives.
    Margin,
    /// Both, weighted.
    Hybrid {
        /// Weight of the average.
        logprob: f64,
        /// Weight of the margin.
        margin: f64,
    },
    /// `clamp(1 + q/3, 0, 1)` of that quantile, in 0..=1.
    Quantile(f64),
    /// What the plan's [`Scorer`] says of the [`Features`].
    Learned,
}

impl LogprobRule {
    /// The confidence in a reply, in 0..=1.
    pub(crate) fn confidence(
        self,
        reply: &Reply,
        filter: TokenFilter,
        scorer: Option<&dyn Scorer>,
    ) -> Result<f64, NoEvidence> {
        let tokens = logprobs::read(&reply.reply, filter)?;
        match self {
            Self::Average => Ok(normal(mean(tokens.iter().map(|t| t.logprob)))),
            Self::Margin => margin(&tokens),
            Self::Hybrid { logprob, margin: of_margin } => {
                let average = normal(mean(tokens.iter().map(|t| t.logprob)));
                Ok((logprob * average + of_margin * margin(&tokens)?).clamp(0.0, 1.0))
            }
            Self::Quantile(at) => Ok(normal(quantile(&sorted(&tokens), at))),
            Self::Learned => {
                let scorer = scorer.ok_or(NoEvidence::NoScorer)?;
                let gaps: Option<Vec<f64>> = tokens.iter().map(|token| token.gap).collect();
                let features = Features::of(&sorted(&tokens), gaps.map(mean));
                let score = scorer.score(&reply.model, &features).filter(|score| !score.is_nan());
                score.map(|score| score.clamp(0.0, 1.0)).ok_or(NoEvidence::NoScorer)
            }
        }
    }
}

fn normal(logprob: f64) -> f64 {
    (1.0 + logprob / SCALE).clamp(0.0, 1.0)
}

fn margin(tokens: &[Token]) -> Result<f64, NoEvidence> {
    let gaps: Option<Vec<f64>> = tokens.iter().map(|t| t.gap).collect();
    let gaps = gaps.ok_or(NoEvidence::NoAlternatives)?;
    Ok(1.0 - (-mean(gaps) / SCALE).exp())
}

fn sorted(tokens: &[Token]) -> Vec<f64> {
    let mut values: Vec<f64> = tokens.iter().map(|t| t.logprob).collect();
    values.sort_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_the_contracts() {
        for (logprob, want) in [(0.0, 1.0), (-1.5, 0.5), (-3.0, 0.0), (-20.0, 0.0)] {
            assert!((normal(logprob) - want).abs() < 1e-12);
        }
    }
}
