//! What a spent budget does.
//!
//! **Invariant:** a run whose budget refused a call ends in the way that the budget declares, never in another.

use crate::account::Ended;
use crate::calls::LiveCalls;
use crate::fault::{Code, Fault};
use chorus_collab::{Answer, Call, CallRole, ModelCalls};
use chorus_spec::WhenSpent;
use chorus_wire::ChatRequest;
use std::time::Instant;

/// The answer of the looper, or what the budget declares where it is spent.
pub(super) async fn settle(
    outcome: Result<Answer, Fault>,
    request: &ChatRequest,
    calls: &LiveCalls,
) -> (Result<Answer, Fault>, Ended) {
    let Some(spent) = calls.budget.spent(Instant::now()) else {
        return (outcome, Ended::Within);
    };
    let when = calls.budget.limits().when_spent;
    let answer = match when {
        WhenSpent::Answer => outcome.or_else(|fault| calls.best_so_far().ok_or(fault)),
        WhenSpent::Fallback => {
            drop(outcome);
            fall_back(request, calls).await
        }
        WhenSpent::Abstain => Err(Fault::new(Code::BudgetExceeded, spent.to_string())),
    };
    (answer, Ended::Spent(spent, when))
}

/// The first candidate answers, outside the declared budget.
async fn fall_back(request: &ChatRequest, calls: &LiveCalls) -> Result<Answer, Fault> {
    let outside = calls.outside_the_budget();
    let first = outside.candidates.first().map(|candidate| candidate.model.to_string());
    let model = first.ok_or_else(|| {
        Fault::new(Code::BudgetExceeded, "the budget is spent, and no candidate is there to answer instead")
    })?;
    let call = Call { model, role: CallRole::Direct, ask: request.clone(), timeout: None };
    if request.stream() {
        return Ok(Answer::Live(outside.stream(call).await?));
    }
    Ok(Answer::Finished(Box::new(outside.complete(call).await?)))
}
