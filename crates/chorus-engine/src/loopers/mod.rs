//! Loopers at work: each one's plan made, its run watched, its trace kept, its faults turned into ours.
//!
//! It knows each looper by its one function and its trace; what a looper does is `chorus-collab`'s. **Invariant:** a
//! run leaves its trace in the record whatever way it ends.

mod automix;
mod fault;
mod live;
mod meaning;
mod panel;
pub(crate) mod preset;
mod progress;
mod spent;
mod team;

use crate::calls::LiveCalls;
use crate::fault::Fault;
use crate::parts::Sender;
use crate::record::Draft;
use crate::run::Part;
use chorus_collab::confidence::{ConfidencePlan, ConfidenceTrace, confidence};
use chorus_collab::fusion::{FusionPlan, FusionTrace, fusion, fusion_follow_up};
use chorus_collab::poll::{PollPlan, PollTrace, poll};
use chorus_collab::ratings::{RatingsPlan, RatingsTrace, ratings};
use chorus_collab::remom::{RemomPlan, RemomTrace, remom};
use chorus_collab::workflows::{Suspension, WorkflowPlan, WorkflowTrace, workflows};
use chorus_collab::{Answer, LoopEvents, LoopFault};
use chorus_spec::LooperKind;
use chorus_wire::ChatRequest;
use panel::Turn;
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

pub(crate) use live::{as_live, as_live_pieces, as_reply};
pub(crate) use meaning::by_meaning;
pub use meaning::needs_encoder;
pub(crate) use panel::After;
pub(crate) use progress::member_teller;
pub(crate) use team::{check_request, plan};

/// The field of a body, and of a record's traces, that tells what was done about the form of an answer.
pub(crate) const FORM_FIELD: &str = "output_contract";

/// The fields of a body in which loopers leave their traces; a backend that sends one cannot forge a trace (case G19).
pub const TRACE_FIELDS: &[&str] =
    &["fusion", "reasoning_mom_responses", "flow", "confidence", "ratings", "poll", FORM_FIELD];

/// A checked plan of a looper.
#[derive(Debug)]
pub enum LooperPlan {
    /// A panel, a judge and a writer.
    Fusion(Box<FusionPlan>),
    /// A cascade from a small model to a large one.
    Confidence(Box<ConfidencePlan>),
    /// Candidates side by side, rated.
    Ratings(Box<RatingsPlan>),
    /// Rounds of parallel reasoning.
    Remom(Box<RemomPlan>),
    /// Bounded steps, by roles or by a planner.
    Workflows(Box<WorkflowPlan>),
    /// Weighted votes, step by step.
    Poll(Box<PollPlan>),
}

impl LooperPlan {
    /// Which looper it is.
    #[must_use]
    pub fn kind(&self) -> LooperKind {
        match self {
            Self::Fusion(_) => LooperKind::Fusion,
            Self::Confidence(_) => LooperKind::Confidence,
            Self::Ratings(_) => LooperKind::Ratings,
            Self::Remom(_) => LooperKind::ReMoM,
            Self::Workflows(_) => LooperKind::Workflows,
            Self::Poll(_) => LooperKind::Poll,
        }
    }

    /// Who writes the answer, where that is known before a call.
    #[must_use]
    pub fn writer(&self) -> Option<&str> {
        match self {
            Self::Fusion(plan) => plan.judge.as_deref().or(plan.panel.first().map(String::as_str)),
            Self::Confidence(_) | Self::Ratings(_) | Self::Workflows(_) | Self::Poll(_) => None,
            Self::Remom(plan) => Some(&plan.writer),
        }
    }
}

/// What a run leaves in the body: the field, and what the client may see of the trace.
pub(crate) type Shown = (&'static str, Value);

/// An answer, and what the client may see of how it came about.
pub(crate) struct Worked<'a> {
    pub(crate) answer: Answer,
    pub(crate) shown: Option<Shown>,
    /// The members' answers behind it, in seat order.
    pub(crate) candidates: Vec<String>,
    /// What is left to do once a streamed answer is whole.
    pub(crate) after: Option<Box<After<'a>>>,
}

/// Which run it is: what a workflow that waits for tools is known by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Site<'a> {
    /// The run's id.
    pub(crate) run: &'a str,
    /// The decision that won.
    pub(crate) decision: &'a str,
}

/// Runs a looper. A spent budget ends as its budget says.
///
/// # Errors
/// Why there is no answer; the record then has the trace all the same.
pub(crate) async fn run<'a>(
    plan: &'a LooperPlan,
    request: &'a ChatRequest,
    calls: &LiveCalls,
    site: Site<'_>,
    progress: Option<Sender<Part>>,
    draft: &mut Draft,
) -> Result<Worked<'a>, Fault> {
    let at_work = AtWork { request, calls, site, events: &progress::Teller(progress) };
    let ended = match plan {
        LooperPlan::Fusion(plan) => at_work.fusion(plan, draft).await,
        LooperPlan::Confidence(plan) => at_work.confidence(plan, draft).await,
        LooperPlan::Ratings(plan) => at_work.ratings(plan, draft).await,
        LooperPlan::Remom(plan) => at_work.remom(plan, draft).await,
        LooperPlan::Workflows(plan) => at_work.workflows(plan, draft).await,
        LooperPlan::Poll(plan) => at_work.poll(plan, draft).await,
    };
    settle(ended, request, calls, draft).await
}

/// A looper's own end.
struct Ended<'a> {
    outcome: Result<Answer, LoopFault>,
    shown: Option<Shown>,
    candidates: Vec<String>,
    after: Option<Box<After<'a>>>,
}

impl Ended<'_> {
    fn of(outcome: Result<Answer, LoopFault>, shown: Option<Shown>, candidates: Vec<String>) -> Self {
        Self { outcome, shown, candidates, after: None }
    }
}

/// What every looper is given.
struct AtWork<'r, 'a> {
    request: &'r ChatRequest,
    calls: &'a LiveCalls,
    site: Site<'a>,
    events: &'a dyn LoopEvents,
}

impl<'r> AtWork<'r, '_> {
    async fn fusion(&self, plan: &'r FusionPlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = FusionTrace::default();
        let turn = Turn {
            plan,
            ask: self.request,
            decision: self.site.decision.to_owned(),
            states: Arc::clone(&self.calls.mom.workflow_states),
        };
        let outcome = match turn.take_up().await {
            Some(kept) => {
                fusion_follow_up(plan, self.request, &kept, self.calls, &mut trace, self.events).await
            }
            None => {
                let by_meaning = meaning::grounded(&self.calls.mom, plan);
                let plan = by_meaning.as_ref().unwrap_or(plan);
                fusion(plan, self.request, self.calls, &mut trace, self.events).await
            }
        };
        keep(draft, "fusion", &trace.bare(), words(&trace.degraded_by));
        if let Ok(Answer::Finished(reply)) = &outcome {
            let calls: Vec<String> = reply.reply.tool_calls.iter().map(|call| call.id.clone()).collect();
            turn.keep(&trace, &calls).await;
        }
        let shown = trace.shown(plan.include_analysis, plan.include_intermediate_responses);
        let candidates = trace.responses.iter().map(|response| response.content.clone()).collect();
        let after = matches!(outcome, Ok(Answer::Live(_))).then(|| Box::new(After { turn, trace }));
        Ended { outcome, shown: show("fusion", &shown), candidates, after }
    }

    async fn confidence(&self, plan: &ConfidencePlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = ConfidenceTrace::default();
        let outcome = confidence(plan, self.request, self.calls, &mut trace, self.events).await;
        keep(draft, "confidence", &trace, Vec::new());
        Ended::of(outcome, show("confidence", &trace), Vec::new())
    }

    async fn ratings(&self, plan: &RatingsPlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = RatingsTrace::default();
        let outcome = ratings(plan, self.request, self.calls, &mut trace, self.events).await;
        keep(draft, "ratings", &bare_ratings(&trace), Vec::new());
        let candidates = trace.responses.iter().map(|response| response.content.clone()).collect();
        Ended::of(outcome, show("ratings", &trace), candidates)
    }

    async fn remom(&self, plan: &RemomPlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = RemomTrace::default();
        let outcome = remom(plan, self.request, self.calls, &mut trace, self.events).await;
        keep(draft, "remom", &trace.shown(false), trace.degraded_by.clone());
        let rounds = plan.include_intermediate_responses.then_some(&trace.rounds);
        let shown = rounds.and_then(|rounds| show("reasoning_mom_responses", rounds));
        let last = trace.rounds.last().into_iter().flat_map(|round| &round.responses);
        Ended::of(outcome, shown, last.map(|response| response.content.clone()).collect())
    }

    async fn poll(&self, plan: &PollPlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = PollTrace::default();
        let outcome = poll(plan, self.request, self.calls, &mut trace, self.events).await;
        keep(draft, "poll", &trace.bare(), Vec::new());
        let shown = show("poll", &trace);
        Ended::of(outcome, shown, trace.answers)
    }

    async fn workflows(&self, plan: &WorkflowPlan, draft: &mut Draft) -> Ended<'r> {
        let mut trace = WorkflowTrace::default();
        let fresh_id = state_id(self.site.run);
        let suspension = Suspension {
            states: &*self.calls.mom.workflow_states,
            fresh_id: &fresh_id,
            decision: self.site.decision,
        };
        let outcome = workflows(plan, self.request, self.calls, &mut trace, self.events, &suspension).await;
        keep(draft, "workflows", &trace.shown(false), trace.degraded_by.clone());
        let shown = show("flow", &trace.shown(plan.include_intermediate_responses));
        let last = trace.steps.last().into_iter().flat_map(|step| &step.responses);
        Ended::of(outcome, shown, last.map(|response| response.content.clone()).collect())
    }
}

/// Digits of a waiting workflow's id. Source: contract §2.6.
const STATE_ID_DIGITS: usize = 24;

/// The last digits of a run's id, which hold all of its random ones: nobody else has them, and nobody can guess them.
fn state_id(run: &str) -> String {
    run.chars().skip(run.chars().count().saturating_sub(STATE_ID_DIGITS)).collect()
}

/// The answer of a run, or what the budget says instead of it where the budget is spent.
async fn settle<'a>(
    ended: Ended<'a>,
    request: &ChatRequest,
    calls: &LiveCalls,
    draft: &mut Draft,
) -> Result<Worked<'a>, Fault> {
    let Ended { outcome, shown, candidates, after } = ended;
    let (answer, ended) = spent::settle(outcome.map_err(|it| fault::of(&it)), request, calls).await;
    draft.budget(Arc::clone(&calls.budget), ended);
    draft.degraded(ended.word());
    Ok(Worked { answer: answer?, shown, candidates, after })
}

/// A trace in the record: answers' texts stay out of it.
fn keep(draft: &mut Draft, name: &str, trace: &impl Serialize, degraded: Vec<String>) {
    draft.looped(name, serde_json::to_value(trace).ok(), degraded);
}

fn show(field: &'static str, trace: &impl Serialize) -> Option<Shown> {
    serde_json::to_value(trace).ok().map(|value| (field, value))
}

fn bare_ratings(trace: &RatingsTrace) -> RatingsTrace {
    let mut bare = trace.clone();
    for response in &mut bare.responses {
        response.content.clear();
        response.reasoning = None;
    }
    bare
}

/// Words of a trace's own enumeration.
fn words<T: Serialize>(reasons: &[T]) -> Vec<String> {
    let values = reasons.iter().filter_map(|reason| serde_json::to_value(reason).ok());
    values.map(|word| word.as_str().map_or_else(|| word.to_string(), str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_collab::fusion::{GroundingScore, GroundingTrace};
    use chorus_spec::GroundingSettings;

    #[test]
    fn no_sentence_of_an_answer_is_kept_in_the_record() {
        let GroundingSettings { reference, policy, .. } = GroundingSettings::default();
        let score = GroundingScore {
            model: "a".to_owned(),
            seat: 0,
            score: Some(0.2),
            flagged_spans: vec!["a private sentence".to_owned()],
            dropped: false,
        };
        let grounding = GroundingTrace { reference_mode: reference, policy, scores: vec![score] };
        let trace = FusionTrace { grounding: Some(grounding), ..FusionTrace::default() };
        let kept = serde_json::to_string(&trace.bare()).unwrap_or_default();
        assert!(kept.contains("grounding") && !kept.contains("private"), "{kept}");
    }
}
