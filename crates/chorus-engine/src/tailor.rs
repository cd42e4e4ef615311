//! What a request becomes for one model: the backend's name for it, its reasoning dialect, and the words on the form of
//! the answer.

use crate::mom::Mom;
use crate::reasoning;
use chorus_collab::CallRole;
use chorus_spec::{Decision, LooperKind, ModelRef};
use chorus_wire::ChatRequest;

/// A decision's word on the form of the visible answer, and which roles may write that answer.
#[derive(Debug, Clone)]
pub struct OutputRule {
    /// The text.
    pub text: String,
    /// The roles.
    pub authors: &'static [CallRole],
}

/// The text of `output_contract`, for whoever may write the visible answer.
pub(crate) fn output_rule(decision: &Decision) -> Option<OutputRule> {
    let text = decision.output_contract.clone()?;
    let authors: &[CallRole] = match decision.algorithm.looper() {
        None => &[CallRole::Direct],
        Some(LooperKind::Confidence) => &[CallRole::Attempt, CallRole::Direct],
        Some(LooperKind::Ratings | LooperKind::Poll) => {
            &[CallRole::Panel, CallRole::Synthesis, CallRole::Direct]
        }
        Some(_) => &[CallRole::Synthesis, CallRole::Direct],
    };
    Some(OutputRule { text, authors })
}

/// A request as one backend of one model gets it: the backend's name for the model, its reasoning dialect, and
/// nothing that is ours.
pub(crate) fn for_model(
    mom: &Mom,
    model: &chorus_spec::Model,
    candidates: &[ModelRef],
    request: &mut ChatRequest,
) {
    let candidate = candidates.iter().find(|c| c.model == model.id);
    let adapter = candidate.and_then(|c| c.lora_name.as_deref());
    request.set_model(adapter.unwrap_or(&model.upstream_name));
    crate::overlay::strip(request);
    if let Some(candidate) = candidate {
        reasoning::apply(&mom.spec, model, candidate, request);
    }
}
