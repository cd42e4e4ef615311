//! How a candidate was chosen. It knows no request.

use chorus_select::Score;
use chorus_select::adaptation::AdaptationVerdict;
use chorus_select::session::SessionVerdict;

/// How a candidate was chosen: part of the run record, and of what `explain` shows.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Trace {
    /// The contract's word for the selector.
    pub algorithm: &'static str,
    /// Who answers.
    pub selected: String,
    /// Why, for people.
    pub reason: String,
    /// Whether the selector could not choose and `on_error` did, or a dry run left the question open.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
    /// How sure the selector is, in 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// One row a candidate.
    pub scores: Vec<Score>,
    /// Probability with which the pick was drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub propensity: Option<f64>,
    /// What the draw was made from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What verdicts on past runs made of the selector's pick.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptation: Option<AdaptationVerdict>,
    /// How hard the conversation's turns have been, in 0..=1, where that counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub momentum: Option<f64>,
    /// What became of the conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionVerdict>,
    /// Whether only a live request can tell, because a model would be asked.
    #[serde(skip)]
    pub open: bool,
}
