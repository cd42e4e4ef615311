//! What a cascade does: the checked form of `algorithm.confidence`.
//!
//! **Invariant:** there is a last candidate, thresholds lie in 0..=1, and the hopeless one is not above the other.

use super::evidence::{NoEvidence, Tried};
use super::order::order;
use super::rule::LogprobRule;
use super::scorer::Scorer;
use super::verifier::Verifier;
use crate::calls::{CallFault, FaultKind};
use crate::candidate::Candidate;
use chorus_spec::{ConfidenceMethod, ConfidenceSettings, Digest, OnError, TokenFilter};
use std::sync::Arc;
use std::time::Duration;

/// Most samples of one measurement.
pub const MAX_SAMPLES: usize = 32;

const VERSION: &str = "confidence-v1";
const SELF_VERIFY: &str = include_str!("../../prompts/confidence-v1/self_verify.md");
const ENTAILMENT: &str = include_str!("../../prompts/confidence-v1/entailment.md");

/// Mean log-probability −0.3: tokens that the model gives 74% on (geometric) average.
const AVERAGE_THRESHOLD: f64 = 0.9;
/// Mean gap 2.1: the best token eight times as likely as the second. Source: contract §1.8.
const MARGIN_THRESHOLD: f64 = 0.5;
/// The quantile at −0.75: nine of ten tokens are likelier than 47%, at the default quantile.
const QUANTILE_THRESHOLD: f64 = 0.75;
/// Source: contract §1.8.
const CHECK_THRESHOLD: f64 = 0.7;
/// More than half: two of three, three of five.
const AGREEMENT_THRESHOLD: f64 = 0.6;

/// A checked plan.
#[derive(Debug, Clone)]
pub struct ConfidencePlan {
    /// Candidates whose answers are measured, in the order in which they are tried.
    pub steps: Vec<String>,
    /// The candidate after them; nobody is above it, and it is not measured.
    pub last: String,
    /// The method's word in the configuration.
    pub method: &'static str,
    /// How answers are measured.
    pub measure: Measure,
    /// An answer is accepted from here on, in 0..=1.
    pub threshold: f64,
    /// Below this nobody else is asked, in 0..=1.
    pub hopeless: Option<f64>,
    /// Which tokens count.
    pub token_filter: TokenFilter,
    /// Who checks entailment; the model itself where there is nobody.
    pub verifier: Option<Arc<dyn Verifier>>,
    /// The trained rule of [`LogprobRule::Learned`].
    pub scorer: Option<Arc<dyn Scorer>>,
    /// How long one check may take.
    pub verifier_timeout: Duration,
    /// What a failing candidate or measurement does.
    pub on_error: OnError,
    /// Asks a model to grade its answer: `{{question}}`, `{{context}}`, `{{answer}}`, `{{key}}`.
    pub self_verify_prompt: String,
    /// Asks a model whether its answer is supported; the same slots.
    pub entailment_prompt: String,
    /// The prompts' version word.
    pub prompt_version: &'static str,
}

/// How answers are measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Measure {
    /// From the log-probabilities of their tokens.
    Logprobs(LogprobRule),
    /// The model grades its own answer.
    SelfVerify,
    /// The plan's verifier; where there is none, that many verdicts of the model itself.
    Entailment {
        /// Verdicts.
        samples: usize,
    },
    /// The model answers that many times.
    Agreement {
        /// Answers, the first included.
        samples: usize,
    },
}

/// Why settings make no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ConfidencePlanFault {
    /// There is nobody to ask.
    #[error("confidence has no candidates: name some under the decision's `modelRefs`")]
    NoCandidates,
    /// Not a number from 0 to 1.
    #[error("`{field}` is {value}; it must be from 0 to 1")]
    OutOfRange {
        /// The field.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// An answer could be accepted and hopeless.
    #[error("`hopeless_threshold` is {hopeless}, above the threshold of {threshold}")]
    ThresholdsCross {
        /// The lower threshold.
        hopeless: f64,
        /// The upper one.
        threshold: f64,
    },
    /// Too few or too many.
    #[error("`samples` is {samples}; it must be from {least} to {MAX_SAMPLES}")]
    Samples {
        /// As written.
        samples: usize,
        /// Fewest that mean something.
        least: usize,
    },
}

/// What follows from an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// This is the answer.
    Accept,
    /// The next candidate is tried.
    Escalate,
    /// The best answer so far stands, because a larger model would fail too.
    Hopeless,
    /// The best answer so far stands, because the budget is spent.
    Spent,
    /// The run ends without an answer.
    Fail,
}

impl ConfidencePlan {
    /// The plan of `settings` for those candidates. A verifier and a scorer are set on the plan by who has them.
    ///
    /// # Errors
    /// [`ConfidencePlanFault`].
    pub fn from_settings(
        settings: &ConfidenceSettings,
        candidates: &[Candidate],
    ) -> Result<Self, ConfidencePlanFault> {
        let mut steps = order(candidates, settings.order, settings.cost_quality_tradeoff);
        let last = steps.pop().ok_or(ConfidencePlanFault::NoCandidates)?;
        let (method, measure, default) = measure(settings)?;
        let threshold = in_range("threshold", settings.threshold.unwrap_or(default))?;
        let hopeless = settings.hopeless.map(|h| in_range("hopeless_threshold", h)).transpose()?;
        if let Some(hopeless) = hopeless.filter(|h| *h > threshold) {
            return Err(ConfidencePlanFault::ThresholdsCross { hopeless, threshold });
        }
        Ok(Self {
            steps,
            last,
            method,
            measure,
            threshold,
            hopeless,
            token_filter: settings.token_filter,
            verifier: None,
            scorer: None,
            verifier_timeout: settings.verifier_timeout,
            on_error: settings.on_error,
            self_verify_prompt: SELF_VERIFY.trim().to_owned(),
            entailment_prompt: ENTAILMENT.trim().to_owned(),
            prompt_version: VERSION,
        })
    }

    /// The digest of the prompts.
    #[must_use]
    pub fn prompt_digest(&self) -> Digest {
        Digest::of([&*self.self_verify_prompt, &*self.entailment_prompt].join("\0").as_bytes())
    }

    /// Most model calls that a run makes.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        let each = match self.measure {
            Measure::Logprobs(_) => 1,
            Measure::SelfVerify => 2,
            Measure::Entailment { samples } => 1 + if self.verifier.is_some() { 0 } else { samples },
            Measure::Agreement { samples } => samples,
        };
        self.steps.len() * each + 1
    }

    /// What follows from an attempt.
    pub(super) fn next(&self, tried: &Result<Tried, CallFault>) -> Next {
        let on_error = || if self.on_error == OnError::Fail { Next::Fail } else { Next::Escalate };
        let after = |fault: &CallFault| match fault.kind {
            FaultKind::Budget => Next::Spent,
            FaultKind::Cancelled => Next::Fail,
            _ => on_error(),
        };
        match tried.as_ref().map(|tried| &tried.evidence) {
            Ok(Ok(confidence)) if *confidence >= self.threshold => Next::Accept,
            Ok(Ok(confidence)) if self.hopeless.is_some_and(|h| *confidence < h) => Next::Hopeless,
            Ok(Ok(_)) => Next::Escalate,
            Ok(Err(NoEvidence::CheckFailed(fault))) | Err(fault) => after(fault),
            Ok(Err(_)) => on_error(),
        }
    }
}

/// The method's word, what it does, and its default threshold.
fn measure(settings: &ConfidenceSettings) -> Result<(&'static str, Measure, f64), ConfidencePlanFault> {
    use ConfidenceMethod as Method;
    let rule = Measure::Logprobs;
    Ok(match settings.method {
        Method::AvgLogprob => ("avg_logprob", rule(LogprobRule::Average), AVERAGE_THRESHOLD),
        Method::Margin => ("margin", rule(LogprobRule::Margin), MARGIN_THRESHOLD),
        Method::Hybrid => {
            let (logprob, margin) = settings.hybrid_weights;
            let logprob = in_range("hybrid_weights.logprob_weight", logprob)?;
            let margin = in_range("hybrid_weights.margin_weight", margin)?;
            let threshold = (logprob * AVERAGE_THRESHOLD + margin * MARGIN_THRESHOLD).min(1.0);
            ("hybrid", rule(LogprobRule::Hybrid { logprob, margin }), threshold)
        }
        Method::SelfVerify => ("self_verify", Measure::SelfVerify, CHECK_THRESHOLD),
        Method::AutomixEntailment => {
            let samples = samples(settings.samples, 1)?;
            ("automix_entailment", Measure::Entailment { samples }, CHECK_THRESHOLD)
        }
        Method::QuantileLogprob => {
            let at = in_range("quantile", settings.quantile)?;
            ("quantile_logprob", rule(LogprobRule::Quantile(at)), QUANTILE_THRESHOLD)
        }
        Method::Agreement => {
            let samples = samples(settings.samples, 2)?;
            ("agreement", Measure::Agreement { samples }, AGREEMENT_THRESHOLD)
        }
        Method::Learned => ("learned", rule(LogprobRule::Learned), CHECK_THRESHOLD),
    })
}

fn in_range(field: &'static str, value: f64) -> Result<f64, ConfidencePlanFault> {
    if (0.0..=1.0).contains(&value) {
        return Ok(value);
    }
    Err(ConfidencePlanFault::OutOfRange { field, value })
}

fn samples(samples: usize, least: usize) -> Result<usize, ConfidencePlanFault> {
    if (least..=MAX_SAMPLES).contains(&samples) {
        return Ok(samples);
    }
    Err(ConfidencePlanFault::Samples { samples, least })
}
