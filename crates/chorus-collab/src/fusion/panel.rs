//! The panel: what its members are asked, and which of their answers count.
//!
//! **Invariant:** a member never sees tools, the shape that the visible answer must have, or another member's answer
//! (DESIGN.md §5.5; cases G26, G27).

use super::plan::FusionPlan;
use super::trace::{FusionTrace, Stage, StageStatus};
use crate::answers::Survivor;
use crate::calls::{Call, CallRole, FaultKind, Gathered};
use crate::fault::{LoopFault, MemberFailure};
use crate::member::without_tools;
use chorus_spec::OnError;
use chorus_wire::ChatRequest;

/// Sampling temperature of a model's further seats, where the client asks for 0 and the plan says nothing. Source: the
/// usual temperature of sampled self-consistency, 2203.11171.
const SELF_PANEL_TEMPERATURE: f64 = 0.7;

/// One call a seat.
pub(super) fn calls(plan: &FusionPlan, ask: &ChatRequest) -> Vec<Call> {
    let base = without_tools(ask, &plan.prompts.panel);
    let call = |(seat, model): (usize, &String)| Call {
        model: model.clone(),
        role: CallRole::Panel,
        ask: seated(plan, &base, seat),
        timeout: plan.round_timeout,
    };
    plan.panel.iter().enumerate().map(call).collect()
}

/// The usable answers in seat order.
///
/// # Errors
/// [`LoopFault::Member`] with the first fault under `on_error: fail`, [`LoopFault::Quorum`] with too few answers.
pub(super) fn admit(
    plan: &FusionPlan,
    gathered: Gathered,
    trace: &mut FusionTrace,
) -> Result<Vec<Survivor>, LoopFault> {
    let mut survivors = Vec::new();
    let mut failures: Vec<MemberFailure> = Vec::new();
    let mut first_fault = None;
    for member in gathered.members {
        match member.outcome.and_then(|reply| Survivor::new(member.seat, reply)) {
            Ok(survivor) => survivors.push(survivor),
            Err(fault) => {
                trace.member_lost(&member.model, &fault);
                failures.push((member.model, fault.kind, fault.public.clone()));
                if fault.kind != FaultKind::Cancelled {
                    first_fault.get_or_insert(fault);
                }
            }
        }
    }
    trace.survivors(&survivors);
    let fault = match first_fault {
        Some(fault) if plan.on_error == OnError::Fail => LoopFault::Member(fault),
        _ if survivors.len() < plan.required() => {
            LoopFault::Quorum { wanted: plan.required(), got: survivors.len(), failures }
        }
        _ => {
            trace.stage(Stage::Panel, None, StageStatus::Ok);
            return Ok(survivors);
        }
    };
    trace.stage_failed(Stage::Panel, None, fault.to_string());
    Err(fault)
}

/// A seat's own settings: its override, else the plan's, else (temperature only) the client's.
///
/// A model that sits several times gets a seed of its own a seat: equal seeds would make equal answers.
/// A temperature for a further seat of one model whose client asks for none: at 0 it would say the same again.
fn apart(plan: &FusionPlan, base: &ChatRequest, seat: usize) -> Option<f64> {
    let asked = base.body().read::<Option<f64>>("temperature").ok().flatten().flatten();
    (plan.sitting(seat) > 0 && asked == Some(0.0)).then_some(SELF_PANEL_TEMPERATURE)
}

fn seated(plan: &FusionPlan, base: &ChatRequest, seat: usize) -> ChatRequest {
    let mut ask = base.clone();
    let own = plan.override_of(seat);
    let wanted = own.and_then(|o| o.temperature).or(plan.temperature);
    if let Some(temperature) = wanted.or_else(|| apart(plan, base, seat)) {
        ask.set("temperature", &temperature);
    }
    if let Some(cap) = own.and_then(|o| o.max_completion_tokens).or(plan.max_completion_tokens) {
        ask.set("max_completion_tokens", &cap);
    }
    let sitting = i64::try_from(plan.sitting(seat)).unwrap_or_default();
    if sitting > 0
        && let Ok(Some(Some(seed))) = base.body().read::<Option<i64>>("seed")
    {
        ask.set("seed", &seed.wrapping_add(sitting));
    }
    ask
}
