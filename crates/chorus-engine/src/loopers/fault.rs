//! Why a looper gave no answer, as a fault of the engine.

use crate::fault::{Code, Fault};
use chorus_collab::LoopFault;

/// The fault of a run.
#[must_use]
pub(super) fn of(fault: &LoopFault) -> Fault {
    if let Some(call) = fault.call() {
        return Fault { public: fault.to_string(), ..Fault::from(call.clone()) };
    }
    let code = match fault {
        LoopFault::Quorum { .. } => Code::QuorumNotReached,
        LoopFault::Overflow { .. } => Code::ContextLengthExceeded,
        LoopFault::Resume(_) => Code::InvalidRequest,
        LoopFault::State(_) => Code::Internal,
        _ => Code::UpstreamFailed,
    };
    let mut text = fault.to_string();
    if let LoopFault::Quorum { failures, .. } = fault {
        let reasons: Vec<String> = failures.iter().map(|(model, _, why)| format!("{model}: {why}")).collect();
        text = format!("{text} ({})", reasons.join("; "));
    }
    Fault::new(code, text)
}
