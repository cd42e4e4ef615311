//! What would happen to a request, without calling a model: the evaluation endpoint and `chorus explain`.
//!
//! Same code as a live request up to the plan; no upstream call, no record, no counter (case H09).

use crate::choosing;
use crate::fault::Fault;
use crate::mom::Mom;
use crate::plan::{self, WorkKind};
use crate::route::{Choice, Routed, route};
use crate::selection::Trace;
use crate::served::{Asked, Depth, ServedRecipe};
use chorus_signals::KnowledgeUse;
use chorus_spec::SignalKey;
use chorus_wire::ChatRequest;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What would happen.
#[derive(Debug)]
pub struct Evaluation {
    /// The way of the request.
    pub routed: Routed,
    /// The recipe that was asked.
    pub recipe: Option<String>,
    /// The decision that was chosen.
    pub decision: Option<String>,
    /// The contract's word for its algorithm.
    pub algorithm: String,
    /// The contract's words for its plugins.
    pub plugins: Vec<String>,
    /// Candidates, in order.
    pub recommended: Vec<String>,
    /// The model that would answer, where that is known before a call.
    pub selected: Option<String>,
    /// How far selection came.
    pub status: SelectionStatus,
    /// Why, for people.
    pub reason: String,
    /// Why the request would fail, if it would.
    pub fault: Option<Fault>,
    /// Where the knowledge bases of the recipe came from.
    pub knowledge: Vec<KnowledgeUse>,
    /// The models whose vocabularies count tokens for `context`; none where tokens are estimated.
    pub counters: Vec<String>,
    /// The encoder's own cosine behind each score that is on the scale of configuration files.
    pub cosines: BTreeMap<SignalKey, f64>,
    /// How the candidate would be chosen.
    pub selection: Option<Arc<Trace>>,
}

/// How far selection came. Source: contract §4.2 (`selection_status`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SelectionStatus {
    /// One model.
    Selected,
    /// A looper whose last stage is known.
    PlannedFinal,
    /// The default model.
    Fallback,
    /// Only known once it runs.
    ExecutionRequired,
    /// Nobody.
    Unavailable,
}

/// Evaluates a request.
///
/// # Errors
/// As [`route`].
pub async fn evaluate(mom: &Mom, request: ChatRequest) -> Result<Evaluation, Fault> {
    let request = Arc::new(request);
    let asked = Asked::dry(Arc::clone(&request));
    let mut routed = route(mom, &asked, Depth::Everything).await?;
    choosing::see(mom, &mut routed, &asked).await;
    let planned = plan::plan(mom, &routed, &request);
    let decision = routed.decision(mom);
    let (status, selected) = match (&planned, &routed.choice) {
        (Ok(work), choice) => match (&work.kind, choice) {
            (WorkKind::Looper(plan), _) => match plan.writer() {
                Some(writer) => (SelectionStatus::PlannedFinal, Some(writer.to_owned())),
                None => (SelectionStatus::ExecutionRequired, None),
            },
            (WorkKind::One(model), Choice::Default(_)) => {
                (SelectionStatus::Fallback, Some(model.to_string()))
            }
            (WorkKind::One(_), _) if work.selection.as_ref().is_some_and(|it| it.open) => {
                (SelectionStatus::ExecutionRequired, None)
            }
            (WorkKind::One(model), _) => (SelectionStatus::Selected, Some(model.to_string())),
            (WorkKind::Fast(_), _) => (SelectionStatus::Selected, None),
        },
        (Err(_), _) => (SelectionStatus::Unavailable, None),
    };
    let recommended = match (&routed.choice, decision) {
        (Choice::Direct(model) | Choice::Default(model), _) => vec![model.to_string()],
        (_, Some(decision)) => decision.model_refs.iter().map(|r| r.model.to_string()).collect(),
        _ => Vec::new(),
    };
    let served = routed.recipe.and_then(|at| mom.recipes.get(at));
    Ok(Evaluation {
        recipe: routed.recipe_name(mom).map(String::from),
        decision: decision.map(|d| d.name.clone()),
        algorithm: routed.algorithm(mom).to_owned(),
        plugins: decision
            .map(|d| d.plugins.iter().map(|p| p.kind().to_owned()).collect())
            .unwrap_or_default(),
        recommended,
        selected,
        status,
        reason: routed.reason.clone(),
        selection: planned.as_ref().ok().and_then(|work| work.selection.clone()),
        fault: planned.err(),
        knowledge: served.map(ServedRecipe::knowledge).unwrap_or_default(),
        counters: served.map(ServedRecipe::counters).unwrap_or_default(),
        cosines: served
            .zip(routed.decided.as_ref())
            .map(|(served, decided)| served.cosines(&decided.evidence))
            .unwrap_or_default(),
        routed,
    })
}
