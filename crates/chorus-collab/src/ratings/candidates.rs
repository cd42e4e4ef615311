//! The candidates: what they are asked, and which of their answers count.
//!
//! Their answers are the visible ones, so that they get what shapes a visible answer; tools they do not get.

use super::plan::{Rating, RatingsPlan};
use super::trace::RatingsTrace;
use crate::answers::Survivor;
use crate::calls::{Call, CallFault, CallRole, FaultKind, Gathered};
use crate::confidence::{ask_for_logprobs, hide_logprobs};
use crate::fault::{LoopFault, MemberFailure};
use crate::finish;
use crate::member::{NO_TOOLS, VISIBLE, without_tools};
use chorus_spec::OnError;
use chorus_wire::ChatRequest;

/// One call a seat. A model with several seats gets a seed of its own for each: equal seeds make equal answers.
pub(super) fn calls(plan: &RatingsPlan, ask: &ChatRequest) -> Vec<Call> {
    let mut base = without_tools(ask, NO_TOOLS.trim());
    for field in VISIBLE {
        if let Some(raw) = ask.body().get(field) {
            base.set(field, raw);
        }
    }
    if plan.rating == Rating::Scorer {
        ask_for_logprobs(&mut base);
    }
    let seed = base.body().read::<Option<i64>>("seed").ok().flatten().flatten();
    let call = |(seat, model): (usize, &String)| {
        let mut ask = base.clone();
        let sitting = plan.panel.iter().take(seat).filter(|other| *other == model).count();
        if let Some(seed) = seed.filter(|_| sitting > 0) {
            ask.set("seed", &seed.wrapping_add(i64::try_from(sitting).unwrap_or_default()));
        }
        Call { model: model.clone(), role: CallRole::Panel, ask, timeout: plan.round_timeout }
    };
    plan.panel.iter().enumerate().map(call).collect()
}

/// The answers as the client may see them: log-probabilities only where it asked for them.
pub(super) fn shown(plan: &RatingsPlan, ask: &ChatRequest, mut answers: Vec<Survivor>) -> Vec<Survivor> {
    if plan.rating == Rating::Scorer {
        answers.iter_mut().for_each(|answer| hide_logprobs(ask, &mut answer.reply.reply));
    }
    answers
}

/// The usable answers in seat order; at least one.
///
/// # Errors
/// [`LoopFault::Member`] with the first fault under `on_error: fail`, [`LoopFault::Quorum`] without any answer. A call
/// that the budget refused is no fault while there is an answer.
pub(super) fn admit(
    plan: &RatingsPlan,
    gathered: Gathered,
    trace: &mut RatingsTrace,
) -> Result<Vec<Survivor>, LoopFault> {
    let mut answers = Vec::new();
    let mut faults: Vec<CallFault> = Vec::new();
    let mut failures: Vec<MemberFailure> = Vec::new();
    for member in gathered.members {
        match member.outcome.and_then(|reply| Survivor::new(member.seat, reply)) {
            Ok(mut answer) => {
                finish::whole(&mut answer.reply.reply);
                answers.push(answer);
            }
            Err(fault) => {
                trace.unusable(&member.model, &fault);
                failures.push((member.model, fault.kind, fault.public.clone()));
                faults.push(fault);
            }
        }
    }
    let harmless = |fault: &CallFault| fault.kind == FaultKind::Budget && !answers.is_empty();
    match faults.into_iter().find(|fault| !harmless(fault)) {
        Some(fault) if plan.on_error == OnError::Fail => Err(LoopFault::Member(fault)),
        _ if answers.is_empty() => Err(LoopFault::Quorum { wanted: 1, got: 0, failures }),
        _ => Ok(answers),
    }
}
