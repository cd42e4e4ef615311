//! Workflows in simulation: steps by roles, and steps by a planner that is often wrong.

use crate::cases::{Drawn, candidates, maybe, on_error, round_timeout};
use crate::dice::Dice;
use crate::team::Team;
use chorus_collab::calls::CallRole;
use chorus_collab::workflows::StateFault;
use chorus_collab::{Answer, LoopFault, Suspension, WorkflowPlan, WorkflowStates, WorkflowTrace, workflows};
use chorus_spec::{ModelId, OnError, WorkflowMode, WorkflowRole, WorkflowSettings};
use chorus_wire::ChatRequest;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;

/// Every model works in one step only, so that it shows who saw which step.
const STEPS: [(&str, &[&str]); 3] = [("one", &["a", "b"]), ("two", &["c"]), ("three", &["d", "e"])];

/// A store for runs that never wait.
struct Nowhere;

impl WorkflowStates for Nowhere {
    fn put<'a>(&'a self, _id: &'a str, _state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        async { Err(StateFault("nobody calls a tool here".to_owned())) }.boxed()
    }

    fn take<'a>(&'a self, _id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        async { Ok(None) }.boxed()
    }
}

pub(crate) fn draw_roles<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let count = 1 + dice.below(STEPS.len() as u64) as usize;
    let mut hidden = mates();
    let mut roles = Vec::new();
    for (at, (name, models)) in STEPS.iter().take(count).enumerate() {
        let access_list = access(dice, at);
        for (earlier, theirs) in STEPS.iter().take(at) {
            if access_list.as_ref().is_some_and(|list| !list.contains(&(*earlier).to_owned())) {
                hidden.extend(pairs(models, theirs));
            }
        }
        let models = models.iter().map(|model| ModelId::new(*model)).collect();
        roles.push(WorkflowRole { name: (*name).to_owned(), models, prompt: None, access_list });
    }
    let settings = WorkflowSettings { roles, ..settings(dice) };
    let usable = |workers: usize| settings.min_successful_responses.map_or(1, |n| n.min(workers));
    let required = match settings.on_error {
        OnError::Skip => 1,
        OnError::Fail => STEPS.iter().take(count).map(|(_, models)| usable(models.len())).sum(),
    };
    drawn(&settings, required, hidden, ask, team)
}

pub(crate) fn draw_planned<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let settings =
        WorkflowSettings { mode: WorkflowMode::Dynamic, planner: Some(ModelId::new("p")), ..settings(dice) };
    // What the simulated planner's third step, `d` alone, and its first one may not see.
    let mut hidden = mates();
    hidden.extend(pairs(&["d"], &["a", "b", "c"]));
    hidden.extend(pairs(&["c"], &["d"]));
    drawn(&settings, 1, hidden, ask, team)
}

fn settings(dice: &mut Dice) -> WorkflowSettings {
    WorkflowSettings {
        final_model: Some(ModelId::new("w")),
        max_parallel: 2 + dice.below(2) as usize,
        min_successful_responses: maybe(dice, 2),
        round_timeout: round_timeout(dice),
        on_error: on_error(dice),
        ..WorkflowSettings::default()
    }
}

/// What the step at that place may see: all, nothing, or the step before.
fn access(dice: &mut Dice, at: usize) -> Option<Vec<String>> {
    match dice.below(3) {
        0 => None,
        1 => Some(Vec::new()),
        _ => Some(STEPS[..at].last().map(|(name, _)| (*name).to_owned()).into_iter().collect()),
    }
}

/// Workers of one step never see each other.
fn mates() -> Vec<(&'static str, &'static str)> {
    let of = |models: &'static [&'static str]| {
        pairs(models, models).into_iter().filter(|(who, whose)| who != whose).collect::<Vec<_>>()
    };
    STEPS.iter().flat_map(|(_, models)| of(models)).collect()
}

fn pairs(who: &[&'static str], whose: &[&'static str]) -> Vec<(&'static str, &'static str)> {
    who.iter().flat_map(|one| whose.iter().map(|other| (*one, *other))).collect()
}

fn drawn<'a>(
    settings: &WorkflowSettings,
    required: usize,
    hidden: Vec<(&'static str, &'static str)>,
    ask: &'a ChatRequest,
    team: &'a Team,
) -> Drawn<'a> {
    let plan = WorkflowPlan::from_settings(settings, &candidates(&["a", "b", "c", "d", "e"])).unwrap();
    Drawn {
        max_calls: plan.max_calls(),
        max_concurrent: settings.max_parallel,
        required,
        sees_answers: &[CallRole::Worker, CallRole::Synthesis],
        sees_tools: &[CallRole::Worker, CallRole::Synthesis],
        hidden,
        run: Box::pin(async move { run(&plan, ask, team).await }),
    }
}

async fn run(plan: &WorkflowPlan, ask: &ChatRequest, team: &Team) -> Result<Answer, LoopFault> {
    let suspension = Suspension { states: &Nowhere, fresh_id: "00112233445566778899aabb", decision: "d" };
    workflows(plan, ask, team, &mut WorkflowTrace::default(), &(), &suspension).await
}
