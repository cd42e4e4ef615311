//! Poll: models of different kinds answer in steps, cheap ones first; their short answers are weighted votes, counted
//! after each step, until one answer is likely enough or nobody is left.
//!
//! One step of equal weights is a majority vote, one step of learned weights a rating-weighted vote, and several steps
//! are a cascade by agreement. The stages are files: `plan` holds steps, weights and thresholds, `ballot` counts. Source:
//! log-odds weights of independent voters, Nitzan and Paroush (1982); a cascade by agreement, 2310.03094.
//!
//! It knows no topic: who knows the topic picks the plan by it. Tool calls are no votes; a voter gets no tools.
//!
//! **Invariant:** the answer is one voter's own, unchanged, and no voter sees another's.

mod ballot;
mod plan;
mod trace;

use crate::calls::{Answer, Call, CallRole, FaultKind, GatherRule, Gathered, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::member::{VISIBLE, without_tools};
use ballot::Ballots;
use chorus_spec::OnError;
use chorus_wire::ChatRequest;

pub use ballot::{Manner, VoteWeights};
pub use plan::{PollPlan, PollPlanFault, PollPolicy, PollStep, PollStopped};
pub use trace::{PollTrace, StepRow};

/// What a voter is told of a conversation with tools or a system message of its own.
const VOTER: &str = include_str!("../../prompts/poll-v1/voter.md");

/// Runs the poll. The answer is whole: it is known only after the count.
///
/// # Errors
/// [`LoopFault::Quorum`] when nobody gave a usable answer; [`LoopFault::Member`] with the first failed call under
/// `on_error: fail`, for a client that left, and for a budget that refused the first call.
pub async fn poll(
    plan: &PollPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut PollTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    let voter = voters_request(ask);
    let mut ballots = Ballots::default();
    for (at, step) in plan.steps().iter().enumerate() {
        let (round, rounds) = (at + 1, plan.steps().len());
        events.tell(LoopEvent::RoundStarted { round, rounds, seats: &step.models });
        let gathered = calls.gather(seats(plan, step, &voter), everyone(step)).await;
        let refused = ballots.take(gathered, plan.on_error)?;
        let count = ballots.count(&step.weights, plan.alternatives());
        events.tell(LoopEvent::RoundFinished { round, usable: ballots.usable(), seats: step.models.len() });
        let stopped = step.stops(count.as_ref(), round == rounds, refused);
        trace.step(step, count.as_ref(), stopped);
        if stopped.is_some() {
            return ballots.answer(count, trace);
        }
    }
    ballots.answer(None, trace)
}

/// The client's question as every voter gets it.
fn voters_request(ask: &ChatRequest) -> ChatRequest {
    let mut voter = without_tools(ask, VOTER.trim());
    for field in VISIBLE {
        if let Some(value) = ask.body().get(field) {
            voter.set(field, value);
        }
    }
    voter
}

fn seats(plan: &PollPlan, step: &PollStep, ask: &ChatRequest) -> Vec<Call> {
    let call = |model: &String| Call {
        model: model.clone(),
        role: CallRole::Panel,
        ask: ask.clone(),
        timeout: plan.step_timeout,
    };
    step.models.iter().map(call).collect()
}

fn everyone(step: &PollStep) -> GatherRule {
    let seats = step.models.len();
    GatherRule { quorum: seats, max_concurrent: seats, timeout: None }
}

impl Ballots {
    /// Takes the answers of a step; whether the budget refused a call of it.
    ///
    /// # Errors
    /// [`LoopFault::Member`].
    fn take(&mut self, gathered: Gathered, on_error: OnError) -> Result<bool, LoopFault> {
        let mut refused = None;
        for member in gathered.members {
            let Err(fault) = self.cast(member.seat, member.model, member.outcome) else { continue };
            let left = fault.kind == FaultKind::Cancelled;
            let spent = fault.kind == FaultKind::Budget;
            if left || (on_error == OnError::Fail && !spent) {
                return Err(LoopFault::Member(fault));
            }
            refused = refused.or(Some(fault).filter(|_| spent));
        }
        match refused {
            Some(fault) if self.usable() == 0 => Err(LoopFault::Member(fault)),
            refused => Ok(refused.is_some()),
        }
    }

    /// The reply of the leading answer's heaviest voter; the first usable reply where no answer could be read.
    ///
    /// # Errors
    /// [`LoopFault::Quorum`].
    fn answer(self, count: Option<ballot::Count>, trace: &mut PollTrace) -> Result<Answer, LoopFault> {
        trace.answers = self.texts().collect();
        match self.reply_of(count) {
            Ok(reply) => {
                trace.answered_by = Some(reply.model.clone());
                Ok(Answer::Finished(Box::new(reply)))
            }
            Err(failures) => Err(LoopFault::Quorum { wanted: 1, got: 0, failures }),
        }
    }
}
