//! From a choice to work: constraints, plugins and the algorithm turned into what will be called.

use crate::choosing;
use crate::constrain::{
    Needs, Removed, constrain, is_oversize, nobody_left, refuse_unshortened, shortens, widest,
};
use crate::fault::{Code, Fault};
use crate::loopers::{self, LooperPlan, preset};
use crate::mom::Mom;
use crate::plugins;
use crate::route::{Choice, Routed};
use crate::selection::Trace;
use crate::tailor::{OutputRule, output_rule};
use chorus_collab::contract::Form;
use chorus_collab::fusion::FusionPlan;
use chorus_policy::Verdict;
use chorus_spec::{
    Algorithm, BudgetSettings, Decision, Family, FusionSettings, ModelId, ModelRef, SignalKey,
};
use chorus_wire::ChatRequest;
use std::sync::Arc;

/// What will be done.
#[derive(Debug)]
pub struct Work {
    /// Who does it.
    pub kind: WorkKind,
    /// The request after all plugins.
    pub request: ChatRequest,
    /// Headers for its upstream calls.
    pub headers: Vec<(String, String)>,
    /// How each candidate is to be called (reasoning, adapters).
    pub candidates: Vec<ModelRef>,
    /// Candidates that constraints removed.
    pub removed: Vec<Removed>,
    /// What the decision allows to be spent.
    pub budget: BudgetSettings,
    /// What the visible answer's author is told about its form.
    pub output_contract: Option<OutputRule>,
    /// The form that the answer is held to.
    pub form: Option<Form>,
    /// How the one model was chosen among several.
    pub selection: Option<Arc<Trace>>,
    /// Whether the request is too long for whoever does the work until a plugin has shortened it.
    pub to_shorten: bool,
}

impl Work {
    /// Work without a budget or an output contract of its own.
    fn of(kind: WorkKind, request: ChatRequest, candidates: Vec<ModelRef>, removed: Vec<Removed>) -> Self {
        let (headers, budget) = (Vec::new(), BudgetSettings::default());
        Self {
            kind,
            request,
            headers,
            candidates,
            removed,
            budget,
            output_contract: None,
            form: None,
            selection: None,
            to_shorten: false,
        }
    }
}

/// Who does the work.
#[derive(Debug)]
pub enum WorkKind {
    /// Nobody: the answer is given.
    Fast(String),
    /// One model.
    One(ModelId),
    /// Several models together.
    Looper(LooperPlan),
}

/// Plans the work of a routed request.
///
/// # Errors
/// Nobody may serve it, or the route needs what this version does not run.
pub fn plan(mom: &Mom, routed: &Routed, request: &ChatRequest) -> Result<Work, Fault> {
    let mut work = unformed(mom, routed, request)?;
    if work.form.is_none() && matches!(work.kind, WorkKind::Looper(_)) {
        // One model keeps to the client's format by itself, or its backend refuses it; a team is held to it.
        work.form = Form::wished(&work.request)
            .map_err(|fault| Fault::new(Code::InvalidRequest, fault.to_string()).at("response_format"))?;
    }
    Ok(work)
}

fn unformed(mom: &Mom, routed: &Routed, request: &ChatRequest) -> Result<Work, Fault> {
    match &routed.choice {
        Choice::Nobody(fault) => Err(fault.clone()),
        Choice::Direct(model) | Choice::Default(model) => {
            one_of(mom, &[bare(model.clone())], Needs::of(request), request.clone())
        }
        Choice::RequestPanel => fusion(mom, routed, None, Vec::new(), Needs::of(request), request.clone()),
        Choice::Decision(_) => {
            let decision =
                routed.decision(mom).ok_or_else(|| Fault::new(Code::Internal, "the decision is gone"))?;
            by_decision(mom, decision, routed, request.clone())
        }
    }
}

fn by_decision(
    mom: &Mom,
    decision: &Decision,
    routed: &Routed,
    mut request: ChatRequest,
) -> Result<Work, Fault> {
    plugins::edit_request(decision, &mut request)?;
    let headers = plugins::header_mutation::headers(decision, &mom.env)?;
    if let Some(message) = plugins::fast_response(decision) {
        let kind = WorkKind::Fast(message.to_owned());
        return Ok(Work { headers, ..Work::of(kind, request, Vec::new(), Vec::new()) });
    }
    let needs = Needs::of(&request);
    let to_shorten = is_to_shorten(mom, decision, needs);
    let needs = if to_shorten { needs.of_shortened() } else { needs };
    let work = match &decision.algorithm {
        Algorithm::Static | Algorithm::Selector(_) => {
            let verdict = routed.decided.as_ref().map(|d| &*d.verdict);
            let order = static_order(mom, routed, decision, verdict);
            let mut work = one_of(mom, &order, needs, request)?;
            if to_shorten {
                work.candidates = widest(&mom.spec, &work.candidates);
            }
            let tokens = chorus_wire::tokens::of_request(&work.request);
            let pool = choosing::pool(mom, routed, decision, &work.request);
            let trace = choosing::choose(mom, routed, decision, &work.candidates, &pool, tokens)?;
            let chosen = |it: &&ModelRef| it.model.as_str() == trace.selected;
            // Whoever comes from another decision is called as that one says.
            work.candidates.extend(pool.others.iter().filter(chosen).cloned());
            if let Some(chosen) = work.candidates.iter().find(chosen) {
                work.kind = WorkKind::One(chosen.model.clone());
            }
            work.selection = Some(Arc::new(trace));
            work
        }
        Algorithm::Fusion(settings) => {
            fusion(mom, routed, Some(settings), decision.model_refs.clone(), needs, request)?
        }
        looper => {
            let (plan, kept, removed) = loopers::plan(mom, looper, &decision.model_refs, needs, &request)?;
            Work::of(WorkKind::Looper(plan), request, kept, removed)
        }
    };
    let budget = decision.algorithm.budget();
    let form = decision.output_contract_spec.clone().map(|contract| Form::Contract(Box::new(contract)));
    Ok(Work { headers, budget, output_contract: output_rule(decision), form, to_shorten, ..work })
}

/// Whether a request is too long for every candidate of a route that shortens long requests: the window is judged then once
/// it has.
fn is_to_shorten(mom: &Mom, decision: &Decision, needs: Needs) -> bool {
    shortens(&decision.plugins) && is_oversize(&mom.spec, &decision.model_refs, needs.tokens)
}

/// Judges the windows of a request that had to be shortened, now that its plugins have been at work.
///
/// # Errors
/// [`Code::ContextLengthExceeded`].
pub(crate) fn judge_shortened(mom: &Mom, work: &Work) -> Result<(), Fault> {
    if !work.to_shorten {
        return Ok(());
    }
    match &work.kind {
        WorkKind::Fast(_) => Ok(()),
        WorkKind::One(model) => refuse_unshortened(&mom.spec, std::iter::once(model), &work.request),
        WorkKind::Looper(_) => {
            let models = work.candidates.iter().map(|candidate| &candidate.model);
            refuse_unshortened(&mom.spec, models, &work.request)
        }
    }
}

/// The first candidate that constraints leave.
fn one_of(mom: &Mom, candidates: &[ModelRef], needs: Needs, request: ChatRequest) -> Result<Work, Fault> {
    let (kept, removed) = constrain(&mom.spec, candidates, needs);
    let Some(first) = kept.first() else {
        return Err(nobody_left(&removed));
    };
    let kind = WorkKind::One(first.model.clone());
    Ok(Work::of(kind, request, kept, removed))
}

/// `static`: the domain's best known candidate first, else the order as written. Source: contract §1.7.
fn static_order(mom: &Mom, routed: &Routed, decision: &Decision, verdict: Option<&Verdict>) -> Vec<ModelRef> {
    let mut order = decision.model_refs.clone();
    let recipe = routed.recipe.and_then(|at| mom.recipes.get(at));
    let (Some(recipe), Some(verdict)) = (recipe, verdict) else {
        return order;
    };
    let scores = recipe.recipe.signals.iter().filter_map(|signal| match &signal.kind {
        chorus_spec::SignalKind::Domain(domain) if !domain.model_scores.is_empty() => {
            let key = SignalKey::new(Family::Domain, signal.name.clone());
            verdict.matched.iter().find(|(have, _)| *have == key).map(|(_, confidence)| (*confidence, domain))
        }
        _ => None,
    });
    let Some((_, domain)) = scores.max_by(|a, b| a.0.total_cmp(&b.0)) else {
        return order;
    };
    let score = |r: &ModelRef| {
        domain
            .model_scores
            .iter()
            .find(|s| s.model == r.model.as_str())
            .map_or(f64::NEG_INFINITY, |s| s.score)
    };
    order.sort_by(|a, b| score(b).total_cmp(&score(a)));
    order
}

/// The panel that constraints leave, under the policy's settings and the request's own.
fn fusion(
    mom: &Mom,
    routed: &Routed,
    base: Option<&FusionSettings>,
    candidates: Vec<ModelRef>,
    needs: Needs,
    request: ChatRequest,
) -> Result<Work, Fault> {
    loopers::check_request(&request)?;
    let names: Vec<ModelId> = candidates.iter().map(|c| c.model.clone()).collect();
    let invalid =
        |fault: &dyn std::fmt::Display| Fault::new(Code::InvalidRequest, fault.to_string()).at("plugins");
    let mut settings = match (&routed.overlay, base) {
        (Some(overlay), base) => overlay.apply(base, &names).map_err(|fault| invalid(&fault))?,
        (None, Some(base)) => base.clone(),
        (None, None) => return Err(Fault::new(Code::Internal, "a panel without settings")),
    };
    if let Some(preset) = preset::wanted(routed.overlay.as_ref(), base) {
        preset::seat(preset, &mom.spec.models, &names, &mut settings);
    }
    if settings.panel.is_empty() {
        settings.panel = names;
    }
    known_models(mom, &settings)?;
    let removed = constrain_panel(mom, needs, &mut settings)?;
    let plan = FusionPlan::from_settings(&settings, &settings.panel).map_err(|fault| invalid(&fault))?;
    let kind = WorkKind::Looper(LooperPlan::Fusion(Box::new(plan)));
    Ok(Work::of(kind, request, candidates, removed))
}

/// Every member and the judge must be a concrete model: no auto name, no slug, no stranger (DESIGN.md §5.3).
fn known_models(mom: &Mom, settings: &FusionSettings) -> Result<(), Fault> {
    for (name, field) in settings
        .panel
        .iter()
        .map(|m| (m, "analysis_models"))
        .chain(settings.judge.iter().map(|m| (m, "model")))
    {
        if mom.spec.models.contains_key(name) {
            continue;
        }
        let virtual_name = crate::identity::identify(&mom.spec, name.as_str()).is_ok();
        let text = if virtual_name {
            format!("`{name}` is itself routed: it cannot be a panel member or judge (recursion)")
        } else {
            format!("the model `{name}` does not exist; GET /v1/models lists those that do")
        };
        return Err(Fault::new(Code::InvalidRequest, text).at(format!("plugins.{field}")));
    }
    Ok(())
}

/// Takes members that cannot serve this request off the panel; the quorum stays what it was.
fn constrain_panel(mom: &Mom, needs: Needs, settings: &mut FusionSettings) -> Result<Vec<Removed>, Fault> {
    let seats: Vec<ModelRef> = settings.panel.iter().map(|m| bare(m.clone())).collect();
    let (kept, removed) = constrain(&mom.spec, &seats, needs.of_member());
    if kept.is_empty() {
        return Err(nobody_left(&removed));
    }
    settings.panel = kept.into_iter().map(|r| r.model).collect();
    Ok(removed)
}

/// A candidate without settings of its own.
pub(crate) fn bare(model: ModelId) -> ModelRef {
    ModelRef { model, lora_name: None, weight: None, use_reasoning: None, reasoning_effort: None }
}

/// Whether the work tells any model to reason.
#[must_use]
pub fn reasons(work: &Work) -> bool {
    work.candidates.iter().any(|c| c.use_reasoning == Some(true))
}
