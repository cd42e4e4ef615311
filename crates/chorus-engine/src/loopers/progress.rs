//! What a looper is doing, told to whoever watches the run.
//!
//! **Invariant:** progress is for the eye: when the door is slow, it is dropped rather than waited for.

use crate::calls::OnMember;
use crate::parts::Sender;
use crate::run::{Part, Progress};
use chorus_collab::{LoopEvent, LoopEvents};

/// Tells a door about each member as it is done.
#[must_use]
pub(crate) fn member_teller(parts: Sender<Part>) -> OnMember {
    Box::new(move |seat, model, fault, elapsed| {
        let failure = fault.map(|fault| fault.public.clone());
        let millis = u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX);
        tell(&parts, Progress::MemberDone { seat, model: model.to_owned(), failure, millis });
    })
}

/// Tells a door about each stage of a looper.
pub(super) struct Teller(pub(super) Option<Sender<Part>>);

impl LoopEvents for Teller {
    fn tell(&self, event: LoopEvent<'_>) {
        if let Some(parts) = &self.0 {
            tell(parts, seen(event));
        }
    }
}

fn tell(parts: &Sender<Part>, progress: Progress) {
    parts.offer(progress.into());
}

fn seen(event: LoopEvent<'_>) -> Progress {
    match event {
        LoopEvent::RoundStarted { round, rounds, seats } => {
            Progress::RoundStarted { round, rounds, seats: seats.to_vec() }
        }
        LoopEvent::RoundFinished { round, usable, seats } => Progress::RoundFinished { round, usable, seats },
        LoopEvent::JudgeStarted(model) => Progress::JudgeStarted { model: model.to_owned() },
        LoopEvent::JudgeFinished { analysed, disagreements } => {
            Progress::JudgeFinished { analysed, disagreements }
        }
        LoopEvent::Tried { model, confidence, accepted } => {
            Progress::Tried { model: model.to_owned(), confidence, accepted }
        }
        LoopEvent::Planned { steps } => Progress::Planned { steps },
        LoopEvent::StepStarted { step, workers } => {
            Progress::StepStarted { step: step.to_owned(), workers: workers.to_vec() }
        }
        LoopEvent::SynthesisStarted(model) => Progress::SynthesisStarted { model: model.to_owned() },
    }
}
