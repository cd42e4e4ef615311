//! The account of one rated ensemble: who answered what, who rated it how, and whose answer it is.
//!
//! It holds public texts only; calls and costs are rows of the run record.

use super::plan::{Rating, RatingsPlan};
use crate::answers::Survivor;
use crate::calls::{CallFault, FaultKind};
use chorus_spec::Aggregate;
use serde::Serialize;

/// What happened.
#[derive(Debug, Default, Clone, Serialize)]
pub struct RatingsTrace {
    /// Who rated: `none`, `peers`, `judge`, `components`, `verifier` or `scorer`.
    pub raters: &'static str,
    /// How ratings became an answer: `choices`, `best` or `vote`.
    pub aggregate: &'static str,
    /// The candidates, one name a seat.
    pub models: Vec<String>,
    /// Who judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub judge_model: Option<String>,
    /// Usable answers in seat order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub responses: Vec<RatedResponse>,
    /// Seats without a usable answer, in seat order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub failed_models: Vec<Unusable>,
    /// What each rater said.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ballots: Vec<Ballot>,
    /// The winner's share of all weight, in 0..=1, where there was a vote.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vote_share: Option<f64>,
    /// Whose answer it is; absent where all are choices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// Version word of the prompts.
    pub prompt_version: &'static str,
    /// Digest of the prompts and the rubric as they were used.
    pub prompt_digest: String,
}

/// One usable answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RatedResponse {
    /// Who gave it.
    pub model: String,
    /// Its seat, from 0.
    pub seat: usize,
    /// Its text.
    pub content: String,
    /// Its reasoning, if the model showed any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// In 0..=1; absent when nobody rated it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rating: Option<f64>,
}

/// One seat without a usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unusable {
    /// Who sat there.
    pub model: String,
    /// A public sentence.
    pub error: String,
    /// The kind of failure.
    pub kind: FaultKind,
}

/// What one rater said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Ballot {
    /// The rater.
    pub rater: String,
    /// Seats of the answers in the order in which it saw them.
    pub shown: Vec<usize>,
    /// Points in 0..=1 in that order; empty when it gave none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub points: Vec<f64>,
    /// Why it gave none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl RatingsTrace {
    pub(super) fn open(&mut self, plan: &RatingsPlan) {
        (self.raters, self.judge_model) = match &plan.rating {
            Rating::None => ("none", None),
            Rating::Peers => ("peers", None),
            Rating::Judge(judge) => ("judge", Some(judge.clone())),
            Rating::Components => ("components", None),
            Rating::Verifier => ("verifier", None),
            Rating::Scorer => ("scorer", None),
        };
        self.aggregate = match plan.aggregate {
            Aggregate::Choices => "choices",
            Aggregate::Best => "best",
            Aggregate::Vote => "vote",
        };
        self.models.clone_from(&plan.panel);
        self.prompt_version = plan.prompt_version;
        self.prompt_digest = plan.prompt_digest().to_string();
    }

    pub(super) fn unusable(&mut self, model: &str, fault: &CallFault) {
        self.failed_models.push(Unusable {
            model: model.to_owned(),
            error: fault.public.clone(),
            kind: fault.kind,
        });
    }

    pub(super) fn ballot(&mut self, ballot: Ballot) {
        self.ballots.push(ballot);
    }

    pub(super) fn responses(&mut self, answers: &[Survivor], ratings: &[Option<f64>]) {
        let response = |(answer, rating): (&Survivor, &Option<f64>)| RatedResponse {
            model: answer.reply.model.clone(),
            seat: answer.seat,
            content: answer.text.clone(),
            reasoning: answer.reasoning.clone(),
            rating: *rating,
        };
        self.responses = answers.iter().zip(ratings).map(response).collect();
    }

    pub(super) fn vote(&mut self, winner: f64, all: f64) {
        self.vote_share = (all > 0.0).then(|| winner / all);
    }
}
