//! Among whom verdicts on past runs may move a choice: the decision's candidates, those of its tier, or all of its recipe.
//!
//! It knows no verdicts. **Invariant:** whoever comes from another decision has passed the same constraints, and a decision
//! that guards something is widened only where it says so itself.

use super::terms::{adaptation_mode, guards};
use crate::constrain::{Needs, constrain};
use crate::mom::Mom;
use crate::route::Routed;
use chorus_spec::{AdaptationMode, CandidateSet, Decision, ModelRef};
use chorus_wire::ChatRequest;

/// Who may answer, by what was learnt; nothing of it where nothing is learnt.
#[derive(Default)]
pub(crate) struct Pool<'a> {
    /// From how far they come.
    pub(super) set: CandidateSet,
    /// The decisions whose verdicts count, by name; the chosen one first.
    pub(super) decisions: Vec<&'a str>,
    /// Candidates of other decisions, which constraints left.
    pub(crate) others: Vec<ModelRef>,
}

/// The pool of a decision; its own candidates are left to who asks.
pub(crate) fn pool<'a>(
    mom: &'a Mom,
    routed: &Routed,
    decision: &'a Decision,
    request: &ChatRequest,
) -> Pool<'a> {
    if !mom.spec.global.adaptation.enabled {
        return Pool::default();
    }
    let set = set(mom, decision);
    let mut pool = Pool { set, decisions: vec![decision.name.as_str()], others: Vec::new() };
    let recipe = routed.recipe.and_then(|at| mom.recipes.get(at));
    let all = recipe.map(|it| it.recipe.decisions.as_slice()).unwrap_or_default();
    let shares = |it: &&Decision| match set {
        CandidateSet::Decision => false,
        CandidateSet::Tier => it.tier == decision.tier,
        CandidateSet::Global => true,
    };
    for other in all.iter().filter(|it| it.name != decision.name).filter(shares) {
        pool.decisions.push(&other.name);
        for candidate in &other.model_refs {
            let known = decision.model_refs.iter().chain(&pool.others).any(|it| it.model == candidate.model);
            if !known {
                pool.others.push(candidate.clone());
            }
        }
    }
    if !pool.others.is_empty() {
        pool.others = constrain(&mom.spec, &pool.others, Needs::of(request)).0;
    }
    pool
}

/// How far a decision's choice may reach. One without a tier has no others of its tier; and what the whole file wishes
/// does not widen a decision that its rules make a guard: its candidates are the point of it.
fn set(mom: &Mom, decision: &Decision) -> CandidateSet {
    if adaptation_mode(decision) == AdaptationMode::Bypass {
        return CandidateSet::Decision;
    }
    let own = decision.adaptations.as_ref().and_then(|it| it.candidates);
    let of_all = (!guards(decision)).then_some(mom.spec.global.adaptation.candidates);
    match own.or(of_all).unwrap_or_default() {
        CandidateSet::Tier if decision.tier <= 0 => CandidateSet::Decision,
        wished => wished,
    }
}
