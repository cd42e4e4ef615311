//! The Fusion looper at work: its trace kept, its progress told, its faults turned into ours.

use crate::calls::{LiveCalls, OnMember};
use crate::fault::{Code, Fault};
use crate::record::Draft;
use crate::run::{Part, Progress};
use chorus_collab::fusion::{FusionEvents, FusionPlan, FusionTrace, LoopFault, fusion};
use chorus_collab::{Answer, Live, Reply};
use chorus_wire::{ChatRequest, Chunk};
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;

/// Runs it; the second value is the trace as the client may see it.
///
/// # Errors
/// Why there is no answer; the record then has the trace all the same.
pub(crate) async fn run(
    plan: &FusionPlan,
    request: &ChatRequest,
    calls: &LiveCalls,
    progress: Option<mpsc::Sender<Part>>,
    draft: &mut Draft,
) -> Result<(Answer, Option<serde_json::Value>), Fault> {
    let mut trace = FusionTrace::default();
    let outcome = fusion(plan, request, calls, &mut trace, &Teller(progress)).await;
    draft.fused(&trace);
    let answer = outcome.map_err(|it| fault(&it))?;
    let shown = trace.shown(plan.include_analysis, plan.include_intermediate_responses);
    Ok((answer, serde_json::to_value(shown).ok()))
}

/// Tells a door about each member as it is done.
#[must_use]
pub(crate) fn member_teller(parts: mpsc::Sender<Part>) -> OnMember {
    Box::new(move |seat, model, fault, elapsed| {
        let failure = fault.map(|fault| fault.public.clone());
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        tell(&parts, Progress::MemberDone { seat, model: model.to_owned(), failure, millis });
    })
}

struct Teller(Option<mpsc::Sender<Part>>);

impl Teller {
    fn tell(&self, progress: Progress) {
        if let Some(parts) = &self.0 {
            tell(parts, progress);
        }
    }
}

/// Progress is for the eye: when the door is slow, it is dropped rather than waited for.
fn tell(parts: &mpsc::Sender<Part>, progress: Progress) {
    let _ = parts.try_send(progress.into());
}

impl FusionEvents for Teller {
    fn panel_started(&self, seats: &[String]) {
        self.tell(Progress::PanelStarted(seats.to_vec()));
    }

    fn judge_started(&self, model: &str) {
        self.tell(Progress::JudgeStarted(model.to_owned()));
    }

    fn synthesis_started(&self, model: &str) {
        self.tell(Progress::SynthesisStarted(model.to_owned()));
    }
}

fn fault(fault: &LoopFault) -> Fault {
    if let Some(call) = fault.call() {
        return Fault { public: fault.to_string(), ..Fault::from(call.clone()) };
    }
    let code = match fault {
        LoopFault::Quorum { .. } => Code::QuorumNotReached,
        LoopFault::Overflow { .. } => Code::ContextLengthExceeded,
        LoopFault::Plan(_) => Code::InvalidRequest,
        LoopFault::Member(_) | LoopFault::Judge(_) | LoopFault::Synthesis(_) => Code::UpstreamFailed,
    };
    let mut text = fault.to_string();
    if let LoopFault::Quorum { failures, .. } = fault {
        let reasons: Vec<String> = failures.iter().map(|(model, _, why)| format!("{model}: {why}")).collect();
        text = format!("{text} ({})", reasons.join("; "));
    }
    Fault::new(code, text)
}

/// A whole answer as the stream that the client asked for.
#[must_use]
pub(crate) fn as_live(reply: Reply) -> Live {
    let body = &reply.reply;
    let finish = body.finish_reason.clone().unwrap_or_else(|| "stop".to_owned());
    let chunks = vec![Ok(Chunk::role()), Ok(Chunk::content(&body.content)), Ok(Chunk::finish(&finish))];
    Live { model: reply.model, chunks: stream::iter(chunks).boxed() }
}
