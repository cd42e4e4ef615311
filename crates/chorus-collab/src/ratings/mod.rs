//! Ratings: candidates answer side by side, somebody rates the answers, and the ratings decide.
//!
//! The stages are files: `candidates` asks, `review` has the answers rated (read by `ballot`), `aggregate` makes one answer
//! of them, or hands all of them over. Sources: contract §2.3 for the shape of several choices; the council of models for
//! the anonymous cross-review and the mean rank.
//!
//! **Invariant:** nobody rates an answer of its own, no rater learns who wrote what, and no candidate sees another's answer.

mod aggregate;
mod ballot;
mod bradley_terry;
mod candidates;
mod measure;
mod plan;
mod review;
mod strengths;
mod trace;

use crate::calls::{Answer, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use chorus_wire::ChatRequest;
use review::Review;

pub use bradley_terry::bradley_terry;
pub use plan::{MAX_CANDIDATES, Rating, RatingsPlan, RatingsPlanFault};
pub use trace::{Ballot, RatedResponse, RatingsTrace, Unusable};

/// Runs the ensemble. The answer is always whole: nothing can be shown before all of it is rated.
///
/// # Errors
/// [`LoopFault::Quorum`] when nobody gave a usable answer; under `on_error: fail` [`LoopFault::Member`] for a failed
/// candidate and [`LoopFault::Judge`] for a review that gave nothing.
pub async fn ratings(
    plan: &RatingsPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut RatingsTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    trace.open(plan);
    let seats = plan.panel.len();
    events.tell(LoopEvent::RoundStarted { round: 1, rounds: 1, seats: &plan.panel });
    let gathered = calls.gather(candidates::calls(plan, ask), plan.gather_rule(seats)).await;
    let answers = candidates::admit(plan, gathered, trace)?;
    events.tell(LoopEvent::RoundFinished { round: 1, usable: answers.len(), seats });
    let ratings = Review { plan, ask, calls, events, answers: &answers }.rate(trace).await?;
    trace.responses(&answers, &ratings);
    let answers = candidates::shown(plan, ask, answers);
    aggregate::answer(plan, answers, &ratings, trace)
}
