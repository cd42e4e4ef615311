//! What a rated ensemble does: the checked form of `algorithm.ratings`.
//!
//! **Invariant:** a judge has no seat, and whoever rates has at least two answers of others to compare.

use crate::calls::GatherRule;
use crate::candidate::Candidate;
use crate::confidence::{Scorer, Verifier};
use chorus_spec::{Aggregate, Digest, OnError, Raters, RatingsSettings};
use std::sync::Arc;
use std::time::Duration;

/// Most candidates; each needs a letter of its own.
pub const MAX_CANDIDATES: usize = 26;

const VERSION: &str = "ratings-v1";
const REVIEW: &str = include_str!("../../prompts/ratings-v1/review.md");
const JUDGE: &str = include_str!("../../prompts/ratings-v1/judge.md");
const RUBRIC: &str = include_str!("../../prompts/ratings-v1/rubric.md");

/// A checked plan.
#[derive(Debug, Clone)]
pub struct RatingsPlan {
    /// Those who answer, one a seat.
    pub panel: Vec<String>,
    /// Their strengths as components, in logits, where they are known; one a seat.
    pub strengths: Vec<Option<f64>>,
    /// Who rates.
    pub rating: Rating,
    /// How ratings become an answer.
    pub aggregate: Aggregate,
    /// Most calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// How long the answers may take, and how long their review.
    pub round_timeout: Option<Duration>,
    /// What a failing candidate or review does.
    pub on_error: OnError,
    /// Who verifies, where `rating` is [`Rating::Verifier`]; set by who has one.
    pub verifier: Option<Arc<dyn Verifier>>,
    /// How long it may take for one answer.
    pub verifier_timeout: Duration,
    /// The trained rule, where `rating` is [`Rating::Scorer`]; set by who has one.
    pub scorer: Option<Arc<dyn Scorer>>,
    /// What raters look at.
    pub rubric: String,
    /// Asks a peer for a ranking: `{{question}}`, `{{context}}`, `{{answers}}`, `{{rubric}}`, `{{count}}`, `{{example}}`,
    /// `{{key}}`.
    pub review_prompt: String,
    /// Asks a judge for scores: the same slots, with `{{scores}}` in place of `{{example}}`.
    pub judge_prompt: String,
    /// The prompts' version word.
    pub prompt_version: &'static str,
}

/// Who rates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rating {
    /// Nobody.
    None,
    /// Each candidate ranks the others' answers.
    Peers,
    /// That model scores all answers, and gives none.
    Judge(String),
    /// The components' known strengths.
    Components,
    /// Whoever tells whether an answer is supported.
    Verifier,
    /// A trained rule over the answers' log-probabilities.
    Scorer,
}

/// Why settings make no plan.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RatingsPlanFault {
    /// There are too few to ask.
    #[error(
        "ratings by `{raters}` need {wanted} candidates that answer, and there are {got}{}",
        hint(raters)
    )]
    TooFew {
        /// The word in the configuration.
        raters: &'static str,
        /// Candidates needed.
        wanted: usize,
        /// Candidates there are; a judge does not count.
        got: usize,
    },
    /// Too many.
    #[error("{got} candidates are more than the {MAX_CANDIDATES} that ratings can compare")]
    TooMany {
        /// Candidates there are.
        got: usize,
    },
    /// Nothing says which answer is the best.
    #[error("`aggregate: best` needs raters: set `raters` to peers, judge, components, verifier or scorer")]
    BestOfUnrated,
}

fn hint(raters: &str) -> &'static str {
    match raters {
        "judge" => " (the judge gives no answer: name one that is no candidate)",
        "peers" => " (nobody rates itself, and one answer is no comparison: with two, take a judge)",
        _ => "",
    }
}

impl RatingsPlan {
    /// The plan of `settings` for those candidates.
    ///
    /// # Errors
    /// [`RatingsPlanFault`].
    pub fn from_settings(
        settings: &RatingsSettings,
        candidates: &[Candidate],
    ) -> Result<Self, RatingsPlanFault> {
        let first = candidates.first().map(|c| c.model.clone()).unwrap_or_default();
        let (rating, raters, wanted) = match settings.raters {
            Raters::None => (Rating::None, "none", 1),
            Raters::Peers => (Rating::Peers, "peers", 3),
            Raters::Judge => {
                (Rating::Judge(settings.judge.as_ref().map_or(first, ToString::to_string)), "judge", 2)
            }
            Raters::Components => (Rating::Components, "components", 1),
            Raters::Verifier => (Rating::Verifier, "verifier", 1),
            Raters::Scorer => (Rating::Scorer, "scorer", 1),
        };
        if rating == Rating::None && settings.aggregate == Aggregate::Best {
            return Err(RatingsPlanFault::BestOfUnrated);
        }
        let seated: Vec<&Candidate> =
            candidates.iter().filter(|c| rating != Rating::Judge(c.model.clone())).collect();
        match seated.len() {
            got if got < wanted => return Err(RatingsPlanFault::TooFew { raters, wanted, got }),
            got if got > MAX_CANDIDATES => return Err(RatingsPlanFault::TooMany { got }),
            _ => {}
        }
        Ok(Self {
            panel: seated.iter().map(|c| c.model.clone()).collect(),
            strengths: seated.iter().map(|c| c.rating.filter(|r| r.is_finite())).collect(),
            rating,
            aggregate: settings.aggregate,
            max_concurrent: settings.max_concurrent.filter(|&n| n > 0),
            round_timeout: settings.round_timeout,
            on_error: settings.on_error,
            verifier: None,
            verifier_timeout: settings.verifier_timeout,
            scorer: None,
            rubric: settings.rubric.clone().unwrap_or_else(|| RUBRIC.trim().to_owned()),
            review_prompt: REVIEW.trim().to_owned(),
            judge_prompt: JUDGE.trim().to_owned(),
            prompt_version: VERSION,
        })
    }

    /// The digest of the prompts and the rubric.
    #[must_use]
    pub fn prompt_digest(&self) -> Digest {
        let texts = [&*self.review_prompt, &*self.judge_prompt, &*self.rubric];
        Digest::of(texts.join("\0").as_bytes())
    }

    /// Most calls that a run makes.
    #[must_use]
    pub fn max_calls(&self) -> usize {
        let raters = match self.rating {
            Rating::None | Rating::Components | Rating::Verifier | Rating::Scorer => 0,
            Rating::Judge(_) => 1,
            Rating::Peers => self.panel.len(),
        };
        self.panel.len() + raters
    }

    /// All of `calls` are waited for.
    pub(super) fn gather_rule(&self, calls: usize) -> GatherRule {
        let max_concurrent = self.max_concurrent.unwrap_or(calls).max(1);
        GatherRule { quorum: calls, max_concurrent, timeout: self.round_timeout }
    }
}
