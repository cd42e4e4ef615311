//! From a decision's candidates to a looper's plan: who may work, and what a looper may know of them.
//!
//! **Invariant:** constraints remove candidates before a plan is made; a plan never names one that was removed.

use super::LooperPlan;
use super::automix::AutomixServer;
use crate::constrain::{Needs, Removed, constrain, nobody_left};
use crate::fault::{Code, Fault};
use crate::mom::Mom;
use chorus_collab::confidence::{ConfidencePlan, Verifier};
use chorus_collab::poll::PollPlan;
use chorus_collab::ratings::RatingsPlan;
use chorus_collab::remom::RemomPlan;
use chorus_collab::workflows::WorkflowPlan;
use chorus_collab::{Candidate, unsupported_param};
use chorus_spec::{Algorithm, ConfidenceMethod, Model, ModelId, ModelRef};
use chorus_wire::ChatRequest;
use std::sync::Arc;

/// A plan, the candidates that constraints left, and those that they removed.
type Planned = (LooperPlan, Vec<ModelRef>, Vec<Removed>);

/// Plans the looper of a decision; Fusion, which a request can change, has its own way.
///
/// # Errors
/// A request that several models cannot answer as one, nobody who can work, or settings that make no plan.
pub(crate) fn plan(
    mom: &Mom,
    algorithm: &Algorithm,
    refs: &[ModelRef],
    whole: Needs,
    request: &ChatRequest,
) -> Result<Planned, Fault> {
    check_request(request)?;
    let (kept, removed) = constrain(&mom.spec, refs, needs(algorithm, whole));
    if kept.is_empty() {
        return Err(nobody_left(&removed));
    }
    let candidates: Vec<Candidate> = kept.iter().filter_map(|it| candidate(mom, it)).collect();
    let plan = match algorithm {
        Algorithm::Confidence(settings) => {
            let mut plan = ConfidencePlan::from_settings(settings, &candidates).map_err(bad)?;
            let asked = settings.method == ConfidenceMethod::AutomixEntailment;
            plan.verifier = verifier(mom, settings.verifier_url.as_deref().filter(|_| asked))?;
            plan.scorer = settings.scorer.as_deref().and_then(|file| mom.scorers.get(file));
            LooperPlan::Confidence(Box::new(plan))
        }
        Algorithm::Remom(settings) => {
            let mut settings = settings.clone();
            // A writer that cannot serve this request was removed with the others; the first that can writes.
            settings.synthesis_model.take_if(|writer| !is_among(&kept, writer));
            LooperPlan::Remom(Box::new(RemomPlan::from_settings(&settings, &candidates).map_err(bad)?))
        }
        Algorithm::Ratings(settings) => {
            let mut plan = RatingsPlan::from_settings(settings, &candidates).map_err(bad)?;
            plan.verifier = verifier(mom, settings.verifier_url.as_deref())?;
            plan.scorer = settings.scorer.as_deref().and_then(|file| mom.scorers.get(file));
            LooperPlan::Ratings(Box::new(plan))
        }
        Algorithm::Workflows(settings) => {
            LooperPlan::Workflows(Box::new(WorkflowPlan::from_settings(settings, &candidates).map_err(bad)?))
        }
        Algorithm::Poll(settings) => {
            LooperPlan::Poll(Box::new(PollPlan::from_settings(settings, &candidates).map_err(bad)?))
        }
        other => {
            let text =
                format!("the algorithm `{}` is no looper that is planned from candidates", other.kind());
            return Err(Fault::new(Code::Internal, text));
        }
    };
    Ok((plan, kept, removed))
}

/// The verifier that the settings name; the model itself verifies where they name none.
fn verifier(mom: &Mom, url: Option<&str>) -> Result<Option<Arc<dyn Verifier>>, Fault> {
    let Some(url) = url else { return Ok(None) };
    let server = mom.backends.server(url, "/verify")?;
    Ok(Some(Arc::new(AutomixServer(server))))
}

/// Refuses what several models cannot honour when they write one answer (case B12).
///
/// # Errors
/// [`Code::InvalidRequest`], with the field.
pub(crate) fn check_request(request: &ChatRequest) -> Result<(), Fault> {
    let Some(param) = unsupported_param(request) else { return Ok(()) };
    let text = format!("`{param}` cannot be honoured when several models write one answer");
    Err(Fault::new(Code::InvalidRequest, text).at(param))
}

/// A cascade's models see the whole request, a workflow's workers all but the shape of the visible answer; members of
/// other teams see neither that nor tools.
fn needs(algorithm: &Algorithm, whole: Needs) -> Needs {
    match algorithm {
        Algorithm::Confidence(_) => whole,
        Algorithm::Workflows(_) => Needs { structured: false, ..whole },
        _ => whole.of_member(),
    }
}

fn is_among(refs: &[ModelRef], model: &ModelId) -> bool {
    refs.iter().any(|candidate| candidate.model == *model)
}

fn candidate(mom: &Mom, candidate: &ModelRef) -> Option<Candidate> {
    let model: &Model = mom.spec.models.get(&candidate.model)?;
    let price = model.pricing.completion_micro_usd_per_1m;
    Some(Candidate {
        model: candidate.model.to_string(),
        weight: candidate.weight,
        parameters: model.card.param_size.as_deref().and_then(parameters),
        price: (model.pricing != chorus_spec::Pricing::default()).then_some(price as f64 / 1e6),
        quality: model.card.quality_score,
        rating: None,
    })
}

/// `7b` is 7 billion parameters, `350M` 350 million; a bare number counts billions, as model cards do.
fn parameters(size: &str) -> Option<f64> {
    let size = size.trim().to_ascii_lowercase();
    let (number, unit) = match size.strip_suffix(['k', 'm', 'b', 't']) {
        Some(number) => (number, size.chars().last()),
        None => (size.as_str(), None),
    };
    let factor = match unit {
        Some('k') => 1e3,
        Some('m') => 1e6,
        Some('t') => 1e12,
        _ => 1e9,
    };
    // A mixture of experts, `8x7b`, has the parameters of all of them.
    let mut parts = number.split('x').map(|part| part.trim().parse::<f64>().ok());
    let product = parts.try_fold(1.0, |all, part| part.map(|part| all * part))?;
    Some(product * factor).filter(|n| n.is_finite() && *n > 0.0)
}

fn bad(fault: impl std::fmt::Display) -> Fault {
    Fault::new(Code::Misconfigured, fault.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_as_cards_write_them() {
        for (written, expect) in [
            ("7b", Some(7e9)),
            ("0.5B", Some(5e8)),
            ("350M", Some(3.5e8)),
            ("8x7b", Some(5.6e10)),
            ("1T", Some(1e12)),
            ("70", Some(7e10)),
            ("large", None),
            ("", None),
        ] {
            assert_eq!(parameters(written), expect, "{written}");
        }
    }
}
