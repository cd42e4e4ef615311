//! One step: its workers side by side, or one after the other where tools are offered.
//!
//! **Invariant:** at most one worker of a run waits for tools.

use super::asking::Asking;
use super::state::{Failed, WorkResult, WorkflowState};
use super::steps::Step;
use crate::answers::Survivor;
use crate::calls::{CallFault, FaultKind, Reply};
use crate::fault::LoopFault;
use chorus_spec::OnError;

/// How a step ended.
pub(super) enum Ended {
    /// Its workers are done.
    Done,
    /// A worker calls tools.
    CallsTools(Box<Reply>),
}

/// Runs what is left of the step.
///
/// # Errors
/// Under `on_error: fail`: [`LoopFault::Member`], [`LoopFault::Quorum`], [`LoopFault::Overflow`].
pub(super) async fn run(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    step: &Step,
) -> Result<Ended, LoopFault> {
    if asking.offers_tools() {
        if let Some(reply) = in_turn(asking, state, step).await? {
            return Ok(Ended::CallsTools(reply));
        }
    } else {
        side_by_side(asking, state, step).await?;
    }
    close(asking, state, step)?;
    Ok(Ended::Done)
}

async fn side_by_side(asking: &Asking<'_>, state: &mut WorkflowState, step: &Step) -> Result<(), LoopFault> {
    let mut calls = Vec::new();
    let mut workers = Vec::new();
    for worker in 0..step.models.len() {
        match asking.worker(state, step, worker) {
            Ok(call) => {
                calls.push(call);
                workers.push(worker);
            }
            Err(fault) => unasked(asking, state, step, worker, fault)?,
        }
    }
    if calls.is_empty() {
        return Ok(());
    }
    let gathered = asking.calls.gather(calls, asking.plan.gather_rule(workers.len())).await;
    for (worker, member) in workers.into_iter().zip(gathered.members) {
        admit(asking, state, step, worker, member.outcome)?;
    }
    Ok(())
}

/// The reply that calls tools, if one does.
async fn in_turn(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    step: &Step,
) -> Result<Option<Box<Reply>>, LoopFault> {
    let workers = step.models.len();
    while state.worker < workers && state.of_step(&step.id).count() < asking.plan.enough(workers) {
        let worker = state.worker;
        match asking.worker(state, step, worker) {
            Ok(call) => {
                let outcome = asking.calls.complete(call).await;
                match outcome {
                    Ok(reply) if !reply.reply.tool_calls.is_empty() => return Ok(Some(Box::new(reply))),
                    outcome => admit(asking, state, step, worker, outcome)?,
                }
            }
            Err(fault) => unasked(asking, state, step, worker, fault)?,
        }
        state.next_worker();
    }
    Ok(None)
}

/// A worker that could not be asked.
fn unasked(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    step: &Step,
    worker: usize,
    fault: LoopFault,
) -> Result<(), LoopFault> {
    if asking.plan.on_error == OnError::Fail {
        return Err(fault);
    }
    let public = fault.to_string();
    admit(asking, state, step, worker, Err(CallFault { kind: FaultKind::Ineligible, public, status: None }))
}

/// Takes what a worker gave.
fn admit(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    step: &Step,
    worker: usize,
    outcome: Result<Reply, CallFault>,
) -> Result<(), LoopFault> {
    let model = step.models.get(worker).cloned().unwrap_or_default();
    match outcome.and_then(|reply| Survivor::new(worker, reply)) {
        Ok(answer) => state.results.push(WorkResult {
            step: step.id.clone(),
            agent: step.agent(worker),
            model,
            text: answer.text,
            reasoning: answer.reasoning,
            trajectory: state.trajectory.clone(),
        }),
        Err(fault) if asking.plan.on_error == OnError::Fail && fault.kind != FaultKind::Cancelled => {
            return Err(LoopFault::Member(fault));
        }
        Err(fault) => {
            state.failed.push(Failed { step: step.id.clone(), model, kind: fault.kind, error: fault.public });
        }
    }
    Ok(())
}

/// Whether enough was found; under `on_error: skip` the run goes on with less, and says so.
fn close(asking: &Asking<'_>, state: &mut WorkflowState, step: &Step) -> Result<(), LoopFault> {
    let (workers, got) = (step.models.len(), state.of_step(&step.id).count());
    let wanted = asking.plan.required(workers);
    let failed: Vec<&Failed> = state.failed.iter().filter(|failed| failed.step == step.id).collect();
    if got < wanted {
        let failures = failed.iter().map(|it| (it.model.clone(), it.kind, it.error.clone())).collect();
        let fault = LoopFault::Quorum { wanted, got, failures };
        if asking.plan.on_error == OnError::Fail {
            return Err(fault);
        }
        state.degraded_by.push(format!("step `{}`: {fault}", step.id));
    } else if failed.iter().any(|it| it.kind != FaultKind::Cancelled) {
        state.degraded_by.push(format!("step `{}`: {got} of {workers} answers are usable", step.id));
    }
    Ok(())
}
