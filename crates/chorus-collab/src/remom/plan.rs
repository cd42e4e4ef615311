//! What a run does: the checked form of `algorithm.remom`.
//!
//! **Invariant:** every round has at least one seat, and all rounds together at most [`MAX_CALLS`].

use super::distribution::distribute;
use crate::calls::GatherRule;
use crate::candidate::Candidate;
use crate::template::has_slot;
use chorus_spec::{Digest, OnError, RemomSettings};
use std::time::Duration;

/// Most calls of one run, the last one included.
pub const MAX_CALLS: usize = 256;

/// The built-in prompt of rounds with references.
const ROUND: &str = include_str!("../../prompts/remom-v1/round.md");
const VERSION: &str = "remom-v1";

/// A checked plan.
#[derive(Debug, Clone)]
pub struct RemomPlan {
    /// One model a seat, round by round, without the last round.
    pub rounds: Vec<Vec<String>>,
    /// Who writes the last answer.
    pub writer: String,
    /// Sampling temperature.
    pub temperature: f64,
    /// Whether references show the reasoning too.
    pub include_reasoning: bool,
    /// Tokens kept of each reference; all when absent.
    pub compaction_tokens: Option<usize>,
    /// Most calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// Cap of each call in tokens; the last one keeps the client's own cap.
    pub max_completion_tokens: Option<u64>,
    /// How long a round may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that end a round *and* are needed. Absent: all are waited for, and one suffices.
    pub min_successful_responses: Option<usize>,
    /// References shown of a round; all when absent.
    pub max_responses_per_round: Option<usize>,
    /// Seed of shuffles.
    pub shuffle_seed: u64,
    /// Whether the trace shows the rounds.
    pub include_intermediate_responses: bool,
    /// Ends a round once the leading answer stays ahead with this probability.
    pub stop_when_certain: Option<f64>,
    /// What a failing round does.
    pub on_error: OnError,
    /// The prompt of rounds with references: `{{original}}`, `{{references}}`, `{{key}}`.
    pub prompt: String,
    /// Its version word; `custom` for an own template.
    pub prompt_version: &'static str,
}

/// Why settings make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemomPlanFault {
    /// There is nobody to ask.
    #[error("remom has no candidates: name some under the decision's `modelRefs`")]
    NoCandidates,
    /// No round, or a round without a call.
    #[error("`breadth_schedule` must list rounds of at least one call each")]
    EmptyRound,
    /// Too many calls.
    #[error(
        "`breadth_schedule` makes {calls} calls, the last round included; at most {MAX_CALLS} are allowed"
    )]
    TooManyCalls {
        /// Calls it makes.
        calls: usize,
    },
    /// The writer is none of the candidates.
    #[error("`synthesis_model` is `{0}`, which is not one of the decision's candidates")]
    StrangeWriter(String),
    /// An own template that would show nobody's answers.
    #[error(
        "`synthesis_template` has no slot `{{{{references}}}}`: the answers of the round before would be lost"
    )]
    NoReferences,
}

impl RemomPlan {
    /// The plan of `settings` for those candidates.
    ///
    /// # Errors
    /// [`RemomPlanFault`].
    pub fn from_settings(settings: &RemomSettings, candidates: &[Candidate]) -> Result<Self, RemomPlanFault> {
        let first = candidates.first().ok_or(RemomPlanFault::NoCandidates)?;
        if settings.breadth_schedule.is_empty() || settings.breadth_schedule.contains(&0) {
            return Err(RemomPlanFault::EmptyRound);
        }
        let calls = settings.breadth_schedule.iter().fold(1, |sum: usize, n| sum.saturating_add(*n));
        if calls > MAX_CALLS {
            return Err(RemomPlanFault::TooManyCalls { calls });
        }
        let writer = match &settings.synthesis_model {
            Some(model) if !candidates.iter().any(|c| c.model == model.as_str()) => {
                return Err(RemomPlanFault::StrangeWriter(model.to_string()));
            }
            Some(model) => model.to_string(),
            None => first.model.clone(),
        };
        let own = settings.synthesis_template.clone();
        if own.as_ref().is_some_and(|template| !has_slot(template, "references")) {
            return Err(RemomPlanFault::NoReferences);
        }
        Ok(Self {
            rounds: distribute(settings, candidates),
            writer,
            temperature: settings.temperature,
            include_reasoning: settings.include_reasoning,
            compaction_tokens: settings.compaction_tokens,
            max_concurrent: settings.max_concurrent.filter(|&n| n > 0),
            max_completion_tokens: settings.max_completion_tokens,
            round_timeout: settings.round_timeout,
            min_successful_responses: settings.min_successful_responses.filter(|&n| n > 0),
            max_responses_per_round: settings.max_responses_per_round.filter(|&n| n > 0),
            shuffle_seed: settings.shuffle_seed,
            include_intermediate_responses: settings.include_intermediate_responses,
            stop_when_certain: settings.stop_when_certain,
            on_error: settings.on_error,
            prompt_version: if own.is_some() { "custom" } else { VERSION },
            prompt: own.unwrap_or_else(|| ROUND.trim().to_owned()),
        })
    }

    /// The digest of the prompt.
    #[must_use]
    pub fn prompt_digest(&self) -> Digest {
        Digest::of(self.prompt.as_bytes())
    }

    /// Most calls that a run makes, the last one included.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        self.rounds.iter().map(Vec::len).sum::<usize>() + 1
    }

    /// Usable answers without which a round has failed. A round narrower than the quorum needs all of its seats.
    pub(super) fn required(&self, seats: usize) -> usize {
        self.min_successful_responses.map_or(1, |n| n.min(seats))
    }

    pub(super) fn gather_rule(&self, seats: usize) -> GatherRule {
        GatherRule {
            quorum: self.min_successful_responses.map_or(seats, |n| n.min(seats)),
            max_concurrent: self.max_concurrent.unwrap_or(seats),
            timeout: self.round_timeout,
        }
    }
}
