//! The account of one run: `reasoning_mom_responses` of a body, and the record's trace.
//!
//! Source: contract Appendix B (`RoundResponse`, `IntermediateResp`), with fields of our own.

use super::plan::RemomPlan;
use super::reference::compacted;
use crate::answers::Survivor;
use crate::fault::LoopFault;
use chorus_wire::tokens;
use serde::Serialize;

/// What happened.
#[derive(Debug, Default, Clone, Serialize)]
pub struct RemomTrace {
    /// The rounds before the last; empty when not shown.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rounds: Vec<Round>,
    /// Who wrote the last answer.
    pub writer: String,
    /// What went other than planned, for people.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub degraded_by: Vec<String>,
}

/// One round.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Round {
    /// From 1.
    pub round: usize,
    /// Seats asked.
    pub breadth: usize,
    /// Usable answers, in seat order.
    pub responses: Vec<Response>,
}

/// One usable answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Response {
    /// Who gave it.
    pub model: String,
    /// Its text.
    pub content: String,
    /// Its reasoning, if the model showed any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<String>,
    /// What the next round was shown of it, where that is less than the text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compacted_content: Option<String>,
    /// Tokens of the text, by estimate.
    pub token_count: u64,
}

impl RemomTrace {
    pub(super) fn round(&mut self, round: usize, breadth: usize, answers: &[Survivor], plan: &RemomPlan) {
        let response = |answer: &Survivor| Response {
            model: answer.reply.model.clone(),
            content: answer.text.clone(),
            reasoning: answer.reasoning.clone(),
            compacted_content: Some(compacted(plan, answer)).filter(|shown| *shown != answer.text),
            token_count: tokens::of_text(&answer.text),
        };
        self.rounds.push(Round { round, breadth, responses: answers.iter().map(response).collect() });
        if answers.len() < breadth {
            self.degraded_by
                .push(format!("round {round}: {} of {breadth} answers are usable", answers.len()));
        }
    }

    pub(super) fn lost_round(&mut self, round: usize, fault: &LoopFault) {
        self.degraded_by.push(format!("round {round} failed, the one before it counts: {fault}"));
    }

    pub(super) fn writer_lost(&mut self, fault: &LoopFault, stand_in: &str) {
        self.degraded_by.push(format!("an answer of `{stand_in}` stands in for the last one: {fault}"));
        stand_in.clone_into(&mut self.writer);
    }

    /// What the client may see.
    #[must_use]
    pub fn shown(&self, rounds: bool) -> Self {
        let mut shown = self.clone();
        if !rounds {
            shown.rounds.clear();
        }
        shown
    }
}
