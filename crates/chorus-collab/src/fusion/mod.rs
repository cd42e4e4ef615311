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
mod kept;
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
pub use grounding::{
    GroundingScore, GroundingTrace, KnownText, MeaningScorer, OverlapScorer, Support, SupportScorer,
    TextVectors,
};
pub use kept::{KeptPanel, answered_calls, panel_key};
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
    let survivors = grounded(plan, ask, survivors, trace).await?;
    let seats = plan.panel.len();
    events.tell(LoopEvent::RoundFinished { round: 1, usable, seats });

    if plan.single_answer_passthrough && survivors.len() == 1 {
        return synthesis::hand_through(survivors, trace);
    }
    let judge = plan.judge_among(&survivors);
    let material = material(plan, ask, &survivors, trace);
    let analysis = Judge { plan, calls, events }.analyse(&judge, &material, trace).await?;
    let writing = Writing { plan, ask, material: &material, analysis: analysis.as_ref(), calls, events };
    conclude(&writing, &Writers::new(&judge, &survivors), trace).await
}

/// Goes on with a question whose tool results have come: the writer sees what the panel said then, and nobody else is
/// asked (case G25). Everything else is as in [`fusion()`].
///
/// # Errors
/// [`LoopFault`]: no writer, or a prompt that cannot fit the writer's context window.
pub async fn fusion_follow_up(
    plan: &FusionPlan,
    ask: &ChatRequest,
    kept: &KeptPanel,
    calls: &dyn ModelCalls,
    trace: &mut FusionTrace,
    events: &dyn LoopEvents,
) -> Result<Answer, LoopFault> {
    let survivors = kept.survivors();
    trace.open(plan);
    trace.take_up(&survivors, kept.judge(), kept.analysis(), kept.grounding());
    let material = material(plan, ask, &survivors, trace);
    let analysis = kept.analysis();
    let writing = Writing { plan, ask, material: &material, analysis, calls, events };
    conclude(&writing, &Writers::new(kept.judge(), &survivors), trace).await
}

fn material(
    plan: &FusionPlan,
    ask: &ChatRequest,
    survivors: &[Survivor],
    trace: &mut FusionTrace,
) -> Material {
    let mut material = Material::new(ask, survivors, plan.panel.len());
    trace.tell_support(&mut material);
    trace.identical(&material);
    material
}

async fn conclude(
    writing: &Writing<'_>,
    writers: &Writers<'_>,
    trace: &mut FusionTrace,
) -> Result<Answer, LoopFault> {
    let answer = writing.write(writers, trace).await?;
    if let Answer::Finished(reply) = &answer {
        trace.resolve(&reply.reply.content);
    }
    Ok(answer)
}

/// The answers that grounding leaves; all of them where the plan has none.
async fn grounded(
    plan: &FusionPlan,
    ask: &ChatRequest,
    survivors: Vec<Survivor>,
    trace: &mut FusionTrace,
) -> Result<Vec<Survivor>, LoopFault> {
    let Some(settings) = &plan.grounding else { return Ok(survivors) };
    let (kept, found) = grounding::ground(settings, &plan.scorer, ask, survivors).await?;
    trace.grounding = Some(found);
    Ok(kept)
}
