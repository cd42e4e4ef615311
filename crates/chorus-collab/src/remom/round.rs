//! One round: what its seats are asked, and which of their answers count.

use super::certain;
use super::plan::RemomPlan;
use super::reference;
use crate::answers::Survivor;
use crate::calls::{Call, CallRole, FaultKind, Gathered, ModelCalls};
use crate::compact;
use crate::fault::{LoopFault, MemberFailure};
use crate::fence::Fence;
use crate::member::{NO_TOOLS, without_tools};
use crate::question;
use crate::template::fill;
use crate::window::{Window, prompt_tokens};
use chorus_spec::OnError;
use chorus_wire::{ChatRequest, Message, Role, tokens};

/// The usable answers of the round with that index.
///
/// # Errors
/// [`LoopFault::Quorum`], [`LoopFault::Overflow`], and under `on_error: fail` [`LoopFault::Member`].
pub(super) async fn run(
    plan: &RemomPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    round: usize,
    references: &[Survivor],
) -> Result<Vec<Survivor>, LoopFault> {
    let asked = seated(plan, ask, calls, round, references)?;
    let seats = asked.len();
    let gathered = calls.gather_until(asked, plan.gather_rule(seats), &certain::enough(plan, seats)).await;
    admit(plan, seats, gathered)
}

/// One call a seat of the round with that index.
///
/// A model that sits several times gets a seed of its own a seat: equal seeds would make equal answers.
///
/// # Errors
/// [`LoopFault::Overflow`]: the references do not fit a seat's window, however they are cut.
fn seated(
    plan: &RemomPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    round: usize,
    references: &[Survivor],
) -> Result<Vec<Call>, LoopFault> {
    let base = without_tools(ask, NO_TOOLS.trim());
    let question = question::original(ask);
    let seed = ask.body().read::<Option<i64>>("seed").ok().flatten().flatten();
    let seats = plan.rounds.get(round).map(Vec::as_slice).unwrap_or_default();
    let seats = seats.iter().enumerate();
    seats
        .map(|(seat, model)| {
            let mut ask = shown(plan, &base, &question, calls, model, round, references)?;
            if let Some(seed) = seed {
                ask.set("seed", &seed.wrapping_add(i64::try_from(seat).unwrap_or_default()));
            }
            ask.set("temperature", &plan.temperature);
            if let Some(cap) = plan.max_completion_tokens {
                ask.set("max_completion_tokens", &cap);
            }
            Ok(Call { model: model.clone(), role: CallRole::Panel, ask, timeout: plan.round_timeout })
        })
        .collect()
}

/// The conversation, with the question and the references after it where there are any, cut fairly to the window of `model`.
///
/// # Errors
/// [`LoopFault::Overflow`].
pub(super) fn shown(
    plan: &RemomPlan,
    base: &ChatRequest,
    question: &str,
    calls: &dyn ModelCalls,
    model: &str,
    round: usize,
    references: &[Survivor],
) -> Result<ChatRequest, LoopFault> {
    let mut ask = base.clone();
    if references.is_empty() {
        return Ok(ask);
    }
    let texts = reference::texts(plan, references, round);
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let window = Window::of(calls, model);
    let fixed = prompt_tokens(base) + tokens::of_text(&plan.prompt) + tokens::of_text(question);
    let cuts = compact::fit(&texts, window.room_bytes(fixed, base.max_output_tokens()));
    let cuts = cuts.ok_or_else(|| window.overflow())?;
    let texts: Vec<&str> = cuts.iter().map(|cut| cut.text.as_str()).collect();
    let fence = Fence::around(texts.iter().copied().chain([question]));
    let wrap = |(at, text): (usize, &&str)| fence.wrap("reference", &format!("number=\"{}\"", at + 1), text);
    let shown = texts.iter().enumerate().map(wrap).collect::<Vec<_>>().join("\n\n");
    let slots = [("original", &*fence.neutral(question)), ("references", &*shown), ("key", &*fence.key)];
    let prompt = fill(&plan.prompt, &slots);
    ask.set_messages(base.messages().iter().cloned().chain([Message::new(Role::User, &prompt)]).collect());
    Ok(ask)
}

/// The usable answers of a round.
///
/// # Errors
/// [`LoopFault::Quorum`], or under `on_error: fail` [`LoopFault::Member`].
fn admit(plan: &RemomPlan, seats: usize, gathered: Gathered) -> Result<Vec<Survivor>, LoopFault> {
    let mut usable = Vec::new();
    let mut failures: Vec<MemberFailure> = Vec::new();
    for member in gathered.members {
        match member.outcome.and_then(|reply| Survivor::new(member.seat, reply)) {
            Ok(answer) => usable.push(answer),
            Err(fault) if plan.on_error == OnError::Fail && fault.kind != FaultKind::Cancelled => {
                return Err(LoopFault::Member(fault));
            }
            Err(fault) => failures.push((member.model, fault.kind, fault.public)),
        }
    }
    let wanted = plan.required(seats);
    if usable.len() < wanted {
        return Err(LoopFault::Quorum { wanted, got: usable.len(), failures });
    }
    Ok(usable)
}
