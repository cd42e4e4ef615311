//! The final answer, by one model that sees the client's conversation as it is.
//!
//! It streams where the client wants a stream and no tools are offered; where they are, it is held, because the ids of
//! its tool calls must be rewritten before anybody sees them.

use super::asking::Asking;
use super::state::WorkflowState;
use super::trace::WorkflowTrace;
use crate::calls::{Answer, FaultKind, Reply};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::finish;
use chorus_spec::OnError;
use chorus_wire::{ChatReply, Usage};

/// Writes the answer. Under `on_error: skip` the last result stands in for a writer that failed, unless the client has
/// left.
///
/// # Errors
/// [`LoopFault::Quorum`] when no step gave a result; [`LoopFault::Overflow`], [`LoopFault::Synthesis`].
pub(super) async fn write(
    asking: &Asking<'_>,
    state: &mut WorkflowState,
    trace: &mut WorkflowTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    if state.results.is_empty() {
        let failures = state.failed.iter().map(|it| (it.model.clone(), it.kind, it.error.clone())).collect();
        return Err(LoopFault::Quorum { wanted: 1, got: 0, failures });
    }
    let planned = state.plan.last.as_ref().and_then(|last| last.model.clone());
    let writer = planned.unwrap_or_else(|| asking.plan.writer.clone());
    events.tell(LoopEvent::SynthesisStarted(&writer));
    trace.writer.clone_from(&writer);
    let fault = match attempt(asking, state, &writer).await {
        Ok(answer) => return Ok(answer),
        Err(fault) => fault,
    };
    let left = fault.call().is_some_and(|call| call.kind == FaultKind::Cancelled);
    let Some(last) = state.results.last().filter(|_| asking.plan.on_error == OnError::Skip && !left) else {
        return Err(fault);
    };
    let reply = ChatReply::text("flow", &last.model, 0, &last.text);
    trace.writer.clone_from(&last.model);
    state.degraded_by.push(format!("the result of `{}` stands in for the answer: {fault}", last.agent));
    // What it took was counted when it was made.
    Ok(Answer::Finished(Box::new(Reply { model: last.model.clone(), reply, usage: Usage::default() })))
}

async fn attempt(asking: &Asking<'_>, state: &WorkflowState, writer: &str) -> Result<Answer, LoopFault> {
    let mut call = asking.writer(state, writer)?;
    if asking.ask.stream() && !asking.offers_tools() {
        let live = asking.calls.stream(call).await.map_err(LoopFault::Synthesis)?;
        return Ok(Answer::Live(finish::live(live)));
    }
    call.ask.set_stream(false, false);
    call.timeout = asking.plan.round_timeout;
    let mut reply = asking.calls.complete(call).await.map_err(LoopFault::Synthesis)?;
    finish::whole(&mut reply.reply);
    Ok(Answer::Finished(Box::new(reply)))
}
