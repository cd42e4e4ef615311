//! Confidence: a cascade. Models answer one after the other, small ones first, until an answer is trusted.
//!
//! The stages are files: `attempt` asks one model and has its answer measured (by a `rule` over `logprobs`, by `verify`, or by
//! `agreement`), `plan` decides what follows from that, and `held` keeps the best answer so far. Sources: Chow's rule and FrugalGPT (2305.05176) for the cascade, AutoMix (2310.12963) for the verifier
//! and for questions that are hopeless, contract §2.2 for the parameters.
//!
//! **Invariant:** an answer without evidence is never accepted; only a candidate with nobody above it answers unmeasured.

mod agreement;
mod attempt;
mod evidence;
mod held;
mod logprobs;
mod order;
mod plan;
mod quantiles;
mod rule;
mod scorer;
mod trace;
mod verifier;
mod verify;

use crate::calls::{Answer, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use chorus_wire::ChatRequest;
use evidence::Tried;
use held::Held;
use plan::Next;

pub use evidence::NoEvidence;
pub(crate) use logprobs::{ask_for as ask_for_logprobs, hide as hide_logprobs};
pub use plan::{ConfidencePlan, ConfidencePlanFault, MAX_SAMPLES, Measure};
pub use rule::LogprobRule;
pub use scorer::{FEATURES, Features, Logistic, LogisticScorer, Scorer, ScorerFault};
pub use trace::{Attempt, ConfidenceTrace, Stopped};
pub use verifier::{Check, Verifier};

/// Runs the cascade.
///
/// The last candidate is not measured, because nothing could follow from it: its answer streams where `ask` wants a
/// stream. Answers of the others are held until they are measured. The trace is filled as far as the run came.
///
/// # Errors
/// [`LoopFault::Quorum`] when nobody gave an answer; [`LoopFault::Member`] or [`LoopFault::Judge`] for a failed attempt
/// or measurement under `on_error: fail`, for a client that left, and for a budget that refused the first call.
pub async fn confidence(
    plan: &ConfidencePlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut ConfidenceTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    trace.open(plan);
    let mut held = Held::default();
    for model in &plan.steps {
        let tried = attempt::measured(plan, ask, calls, model).await;
        let next = plan.next(&tried);
        events.tell(LoopEvent::Tried {
            model,
            confidence: tried.as_ref().ok().and_then(Tried::confidence),
            accepted: next == Next::Accept,
        });
        trace.attempt(model, &tried, next);
        match next {
            Next::Fail => return Err(held::fault(model, tried)),
            Next::Escalate => held.keep(model, tried),
            Next::Accept | Next::Hopeless | Next::Spent => {
                held.keep(model, tried);
                return held.answer(trace);
            }
        }
    }
    match attempt::last(plan, ask, calls).await {
        Ok(answer) => {
            events.tell(LoopEvent::Tried { model: &plan.last, confidence: None, accepted: true });
            trace.last(&plan.last);
            Ok(answer)
        }
        Err(fault) => {
            events.tell(LoopEvent::Tried { model: &plan.last, confidence: None, accepted: false });
            trace.last_failed(&plan.last, &fault);
            held.without_last(plan, fault, trace)
        }
    }
}
