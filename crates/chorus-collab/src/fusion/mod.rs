//! Fusion: a panel answers, a judge compares, one writer answers.
//!
//! The stages are files: `panel` asks the members, `judge` compares their answers, `synthesis` writes. It knows
//! no tokenizer and no clock, and does not count usage: that is the work of [`ModelCalls`].
//!
//! **Invariant:** only the synthesis may emit tool calls; whatever a member wrote is shown fenced, as data.

mod analysis;
mod fault;
mod grounding;
mod judge;
mod overlay;
mod panel;
mod plan;
mod plugin;
mod prompts;
mod resolution;
mod synthesis;
mod trace;

use crate::answers::Survivor;
use crate::calls::{Answer, ModelCalls};
use crate::events::{LoopEvent, LoopEvents};
use crate::fault::LoopFault;
use crate::fence::Material;
use chorus_wire::ChatRequest;
use judge::Judge;
use synthesis::{Writers, Writing};

pub use analysis::{Analysis, Finding, Findings, Stance, Unparsed};
pub use fault::PlanFault;
pub use grounding::{GroundingScore, GroundingTrace, OverlapScorer, Support, SupportScorer};
pub use overlay::FusionOverlay;
pub use plan::{FusionPlan, MAX_PANEL, SeatOverride};
pub use prompts::Prompts;
pub use resolution::{Disagreement, Gap, Resolution, StanceFate};
pub use trace::{
    Compacted, Degradation, FailedModel, FusionTrace, Identical, PanelResponse, Quorum, Stage, StageRow,
    StageStatus,
};

/// Answers `ask` by `plan`.
///
/// The trace is filled as far as the run came, also when it ends in a fault. The answer is a stream when `ask` wants
/// one, except for a single answer that is handed through whole.
///
/// # Errors
/// [`LoopFault`]: too few usable answers, a failed stage under `on_error: fail`, no writer, or a prompt that cannot
/// fit the writer's context window.
pub async fn fusion(
    plan: &FusionPlan,
    ask: &ChatRequest,
    calls: &dyn ModelCalls,
    trace: &mut FusionTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    trace.open(plan);
    events.tell(LoopEvent::RoundStarted { round: 1, rounds: 1, seats: &plan.panel });
    let gathered = calls.gather(panel::calls(plan, ask), plan.gather_rule()).await;
    let survivors = panel::admit(plan, gathered, trace)?;
    let usable = survivors.len();
    let survivors = grounded(plan, ask, survivors, trace)?;
    let seats = plan.panel.len();
    events.tell(LoopEvent::RoundFinished { round: 1, usable, seats });

    if plan.single_answer_passthrough && survivors.len() == 1 {
        return synthesis::hand_through(survivors, trace);
    }
    let judge = plan.judge_among(&survivors);
    let mut material = Material::new(ask, &survivors, plan.panel.len());
    trace.tell_support(&mut material);
    trace.identical(&material);
    let analysis = Judge { plan, calls, events }.analyse(&judge, &material, trace).await?;
    let writing = Writing { plan, ask, material: &material, analysis: analysis.as_ref(), calls, events };
    let answer = writing.write(&Writers::new(&judge, &survivors), trace).await?;
    if let Answer::Finished(reply) = &answer {
        trace.resolve(&reply.reply.content);
    }
    Ok(answer)
}

/// The answers that grounding leaves; all of them where the plan has none.
fn grounded(
    plan: &FusionPlan,
    ask: &ChatRequest,
    survivors: Vec<Survivor>,
    trace: &mut FusionTrace,
) -> Result<Vec<Survivor>, LoopFault> {
    let Some(settings) = &plan.grounding else { return Ok(survivors) };
    let (kept, found) = grounding::ground(settings, &*plan.scorer, ask, survivors)?;
    trace.grounding = Some(found);
    Ok(kept)
}
