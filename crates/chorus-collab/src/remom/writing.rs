//! The last round: one call that sees the client's conversation as it is, tools included, and streams.

use super::plan::RemomPlan;
use super::round;
use super::trace::RemomTrace;
use crate::answers::Survivor;
use crate::calls::{Answer, Call, CallRole, FaultKind, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::finish;
use crate::question;
use chorus_spec::OnError;
use chorus_wire::ChatRequest;

/// Writes the answer. Under `on_error: skip` the longest answer of the round before stands in for a writer that failed,
/// unless the client has left.
///
/// # Errors
/// [`LoopFault::Overflow`], [`LoopFault::Synthesis`].
pub(super) async fn write(
    plan: &RemomPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    references: Vec<Survivor>,
    trace: &mut RemomTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    events.tell(LoopEvent::SynthesisStarted(&plan.writer));
    trace.writer.clone_from(&plan.writer);
    let fault = match attempt(plan, ask, calls, &references).await {
        Ok(answer) => return Ok(answer),
        Err(fault) => fault,
    };
    let spare =
        references.into_iter().max_by_key(|answer| (answer.text.len(), std::cmp::Reverse(answer.seat)));
    match spare {
        Some(answer) if plan.on_error == OnError::Skip && !left(&fault) => {
            trace.writer_lost(&fault, &answer.reply.model);
            Ok(Answer::Finished(Box::new(answer.reply)))
        }
        _ => Err(fault),
    }
}

fn left(fault: &LoopFault) -> bool {
    fault.call().is_some_and(|call| call.kind == FaultKind::Cancelled)
}

async fn attempt(
    plan: &RemomPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    references: &[Survivor],
) -> Result<Answer, LoopFault> {
    let mut base = ask.clone();
    base.remove("plugins");
    base.remove("fusion");
    let question = question::original(ask);
    let round = plan.rounds.len();
    let ask = round::shown(plan, &base, &question, calls, &plan.writer, round, references)?;
    let stream = ask.stream();
    let call =
        Call { model: plan.writer.clone(), role: CallRole::Synthesis, ask, timeout: plan.round_timeout };
    if stream {
        // A stream that has begun is not cut by the round's time.
        let call = Call { timeout: None, ..call };
        return calls
            .stream(call)
            .await
            .map(|live| Answer::Live(finish::live(live)))
            .map_err(LoopFault::Synthesis);
    }
    let mut reply = calls.complete(call).await.map_err(LoopFault::Synthesis)?;
    finish::whole(&mut reply.reply);
    Ok(Answer::Finished(Box::new(reply)))
}
