//! `ReMoM`: rounds of parallel reasoning, each shown the one before, and one last answer.
//!
//! A round asks its seats the client's question, from the second round on with the answers of the round before as
//! fenced, anonymous references. The last round is one call, which streams. Source: `PaCoRe` (arXiv 2601.05593) for
//! rounds, shuffled references and compaction; contract §2.4 for parameters.
//!
//! **Invariant:** within a round nobody sees another's answer; images, tool results and every part of the conversation
//! reach every round.

mod certain;
mod distribution;
mod plan;
mod reference;
mod round;
mod shuffle;
mod trace;
mod writing;

use crate::answers::Survivor;
use crate::calls::{Answer, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use chorus_spec::OnError;
use chorus_wire::ChatRequest;

pub use plan::{MAX_CALLS, RemomPlan, RemomPlanFault};
pub use trace::{RemomTrace, Response, Round};

/// Runs it.
///
/// # Errors
/// [`LoopFault::Quorum`] or [`LoopFault::Member`] when a round gives too little, and [`LoopFault::Overflow`] when one
/// cannot be asked (under `on_error: skip` only of the first round: for later ones, and for a last one that fails, what
/// the round before gave counts); [`LoopFault::Synthesis`].
pub async fn remom(
    plan: &RemomPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut RemomTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    let mut references: Vec<Survivor> = Vec::new();
    for (round, seats) in plan.rounds.iter().enumerate() {
        let (number, rounds) = (round + 1, plan.rounds.len() + 1);
        events.tell(LoopEvent::RoundStarted { round: number, rounds, seats });
        let answers = match round::run(plan, ask, calls, round, &references).await {
            Ok(answers) => answers,
            Err(fault) if plan.on_error == OnError::Skip && !references.is_empty() => {
                trace.lost_round(number, &fault);
                break;
            }
            Err(fault) => return Err(fault),
        };
        events.tell(LoopEvent::RoundFinished { round: number, usable: answers.len(), seats: seats.len() });
        trace.round(number, seats.len(), &answers, plan);
        references = answers;
    }
    writing::write(plan, ask, calls, references, trace, events).await
}
