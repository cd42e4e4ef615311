//! Workflows: bounded steps, by fixed roles or by a planner, and one final answer.
//!
//! Steps run in order; the workers of a step see the results that its access list allows. Without tools they work side
//! by side; with tools one after the other, and a worker's tool calls go to the client: the run is put away and taken
//! up again by the follow-up request. It knows no clock and no randomness: the store forgets runs by its own time, and
//! ids come in. Source: contract §2.6.
//!
//! **Invariant:** the number of calls is bounded by the plan; a plan that a model made is checked before it is
//! followed.

mod asking;
mod plan;
mod planner;
mod state;
mod step;
mod steps;
mod suspension;
mod trace;
mod writing;

use crate::calls::{Answer, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use asking::Asking;
use chorus_wire::ChatRequest;
use step::Ended;

pub use plan::{WorkflowPlan, WorkflowPlanFault};
pub use state::{Awaited, Belongs, Failed, StateFault, WorkResult, WorkflowState, WorkflowStates};
pub use steps::{Last, Plan, Step};
pub use suspension::Suspension;
pub use trace::{FailedWorker, PendingToolCall, ResponseTrace, StepTrace, ToolTurn, WorkflowTrace};

/// Runs it, or goes on with the run whose tool results the request brings.
///
/// An answer that calls tools is [`Answer::Finished`], also for a client that streams; the run then waits under
/// `suspension`.
///
/// # Errors
/// [`LoopFault::Planner`] and [`LoopFault::Plan`] without a plan, [`LoopFault::Member`] and [`LoopFault::Quorum`] when a
/// step gives too little (under `on_error: skip` when all of them give nothing), [`LoopFault::Resume`] and
/// [`LoopFault::State`] for a run that cannot be taken up or put away; [`LoopFault::Overflow`],
/// [`LoopFault::Synthesis`].
pub async fn workflows(
    plan: &WorkflowPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut WorkflowTrace,
    events: &dyn LoopEvents,
    suspension: &Suspension<'_>,
) -> Result<Answer, LoopFault> {
    trace.open(plan);
    let (mut state, began) = match suspension.take_up(plan, ask).await? {
        Some((state, began)) => (state, began),
        None => (begun(&Asking { plan, ask, calls }, suspension).await?, ask.clone()),
    };
    let asking = Asking { plan, ask: &began, calls };
    events.tell(LoopEvent::Planned { steps: state.plan.steps.len() });
    let outcome = follow(&asking, &mut state, trace, events, suspension).await;
    trace.show(&state);
    outcome
}

/// A new run, its plan made.
async fn begun(asking: &Asking<'_>, suspension: &Suspension<'_>) -> Result<WorkflowState, LoopFault> {
    let (plan, problem) = match &asking.plan.fixed {
        Some(plan) => (plan.clone(), None),
        None => planner::plan(asking).await?,
    };
    let mut state = WorkflowState::new(suspension.belongs(asking.plan), plan);
    state.degraded_by.extend(problem);
    Ok(state)
}

/// The steps that are left, and the answer.
async fn follow(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    trace: &mut WorkflowTrace,
    events: &dyn LoopEvents,
    suspension: &Suspension<'_>,
) -> Result<Answer, LoopFault> {
    while let Some(step) = state.current().cloned() {
        events.tell(LoopEvent::StepStarted { step: &step.id, workers: &step.models });
        match step::run(asking, state, &step).await? {
            Ended::Done => state.next_step(),
            Ended::CallsTools(reply) => return suspension.put_away(state, asking.ask, reply, trace).await,
        }
    }
    match writing::write(asking, state, trace, events).await? {
        Answer::Finished(reply) if asking.offers_tools() && !reply.reply.tool_calls.is_empty() => {
            suspension.put_away(state, asking.ask, reply, trace).await
        }
        answer => Ok(answer),
    }
}
