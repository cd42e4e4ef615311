//! The loopers that are simulated, and what must hold in every run.

use crate::dice::Dice;
use crate::team::{Book, Team};
use crate::workflow::{draw_planned, draw_roles};
use chorus_collab::calls::CallRole;
use chorus_collab::poll::{PollPlan, PollTrace, poll};
use chorus_collab::{
    Answer, Candidate, ConfidencePlan, ConfidenceTrace, FusionPlan, FusionTrace, LoopFault, RatingsPlan,
    RatingsTrace, RemomPlan, RemomTrace, confidence, fusion, ratings, remom,
};
use chorus_spec::{
    Aggregate, ConfidenceMethod, ConfidenceSettings, EscalationOrder, FusionSettings, ModelId, OnError,
    Raters, RatingsSettings, RemomSettings,
};
use chorus_wire::{ChatRequest, RequestLimits};
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use std::time::Duration;

const MODELS: [&str; 5] = ["a", "b", "c", "d", "e"];

/// One looper.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Draws a plan and runs it.
    run: for<'a> fn(&mut Dice, &'a ChatRequest, &'a Team) -> Drawn<'a>,
}

/// A run that has not begun.
pub(crate) struct Drawn<'a> {
    pub(crate) run: BoxFuture<'a, Result<Answer, LoopFault>>,
    /// Most calls that it may make.
    pub(crate) max_calls: usize,
    /// Most calls at once.
    pub(crate) max_concurrent: usize,
    /// Usable answers of its panel without which there is no answer.
    pub(crate) required: usize,
    /// Roles that may see answers of others, and roles that may see tools.
    pub(crate) sees_answers: &'static [CallRole],
    pub(crate) sees_tools: &'static [CallRole],
    /// Who may not see whose answers, whatever the role.
    pub(crate) hidden: Vec<(&'static str, &'static str)>,
}

/// All of them.
pub(crate) const ALL: [Case; 7] = [
    Case { name: "fusion", run: draw_fusion },
    Case { name: "confidence", run: draw_confidence },
    Case { name: "ratings", run: draw_ratings },
    Case { name: "remom", run: draw_remom },
    Case { name: "poll", run: draw_poll },
    Case { name: "workflows, roles", run: draw_roles },
    Case { name: "workflows, planned", run: draw_planned },
];

/// What became of the runs of a simulation.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) answers: usize,
    pub(crate) faults: usize,
    /// Runs whose client left.
    pub(crate) left: usize,
    pub(crate) calls: usize,
}

/// That many runs, each with its own seed, plan and team.
pub(crate) fn simulate(case: &Case, runs: u64) -> Seen {
    let clock =
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut seen = Seen::default();
    for seed in 0..runs {
        clock.block_on(one(case, seed, &mut seen));
    }
    seen
}

async fn one(case: &Case, seed: u64, seen: &mut Seen) {
    let mut dice = Dice::new(seed);
    let ask = request(&mut dice);
    let team = Team::new(&mut dice);
    let book = team.book();
    let drawn = (case.run)(&mut dice, &ask, &team);
    let Drawn { run, max_calls, max_concurrent, required, sees_answers, sees_tools, hidden } = drawn;
    let patience = if dice.percent(25) { dice.latency_ms() } else { 360_000_000 };
    let outcome = tokio::time::timeout(Duration::from_millis(patience), run).await;
    let at = format!("{} with seed {seed}", case.name);
    match outcome {
        Err(_) => seen.left += 1,
        Ok(Err(_)) => seen.faults += 1,
        Ok(Ok(answer)) => {
            seen.answers += 1;
            assert!(book.lock().unwrap().usable >= required, "{at}: an answer without its quorum");
            consume(answer, &mut dice).await;
        }
    }
    let book = book.lock().unwrap();
    holds(&book, &at, sees_answers, sees_tools);
    let stray = book.sights.iter().find(|(who, whose)| hidden.contains(&(who, whose)));
    assert_eq!(stray, None, "{at}: sees an answer that is hidden from it");
    assert!(book.started <= max_calls, "{at}: {} calls, at most {max_calls} allowed", book.started);
    assert!(book.peak <= max_concurrent, "{at}: {} at once, at most {max_concurrent} allowed", book.peak);
    assert!(team.budget().is_none_or(|budget| book.started <= budget), "{at}: more calls than its budget");
    seen.calls += book.started;
}

/// What holds for every looper.
fn holds(book: &Book, at: &str, sees_answers: &[CallRole], sees_tools: &[CallRole]) {
    assert_eq!(book.started, book.ended, "{at}: somebody still works, or was forgotten");
    assert_eq!(book.over_cap, 0, "{at}: more at once than the gathering allows");
    let stray = book.saw_answers.iter().find(|role| !sees_answers.contains(role));
    assert_eq!(stray, None, "{at}: sees another's answer");
    let stray = book.saw_tools.iter().find(|role| !sees_tools.contains(role));
    assert_eq!(stray, None, "{at}: sees tools");
}

/// Reads a stream to its end, or leaves in the middle of it.
async fn consume(answer: Answer, dice: &mut Dice) {
    let Answer::Live(mut live) = answer else { return };
    let patience = if dice.percent(50) { usize::MAX } else { dice.below(3) as usize };
    let mut read = 0;
    while read < patience && live.chunks.next().await.is_some() {
        read += 1;
    }
}

fn request(dice: &mut Dice) -> ChatRequest {
    let tools = r#","tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;
    let tools = if dice.percent(50) { tools } else { "" };
    let stream = dice.percent(50);
    let body = format!(
        r#"{{"model":"m","stream":{stream},"messages":[{{"role":"system","content":"Be kind."}},{{"role":"user","content":"A, B or C?"}}]{tools}}}"#
    );
    ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap()
}

fn some_models(dice: &mut Dice, least: u64) -> Vec<&'static str> {
    let count = least + dice.below(MODELS.len() as u64 + 1 - least);
    MODELS[..count as usize].to_vec()
}

pub(crate) fn candidates(models: &[&str]) -> Vec<Candidate> {
    models.iter().map(|m| Candidate { model: (*m).to_owned(), ..Candidate::default() }).collect()
}

pub(crate) fn on_error(dice: &mut Dice) -> OnError {
    if dice.percent(80) { OnError::Skip } else { OnError::Fail }
}

pub(crate) fn maybe(dice: &mut Dice, end: u64) -> Option<usize> {
    dice.percent(50).then(|| 1 + dice.below(end) as usize)
}

pub(crate) fn round_timeout(dice: &mut Dice) -> Option<Duration> {
    dice.percent(50).then(|| Duration::from_millis(dice.latency_ms()))
}

fn draw_fusion<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let panel = some_models(dice, 1);
    let settings = FusionSettings {
        judge: dice.percent(50).then(|| ModelId::new("j")),
        max_concurrent: maybe(dice, 5),
        min_successful_responses: maybe(dice, panel.len() as u64),
        round_timeout: round_timeout(dice),
        on_error: on_error(dice),
        panel: panel.iter().map(|m| ModelId::new(*m)).collect(),
        ..FusionSettings::default()
    };
    let plan = FusionPlan::from_settings(&settings, &[]).unwrap();
    Drawn {
        // The judge, the writer, and another writer where the first one fails.
        max_calls: panel.len() + 3,
        max_concurrent: settings.max_concurrent.unwrap_or(panel.len()),
        required: plan.required(),
        sees_answers: &[CallRole::Judge, CallRole::Synthesis],
        sees_tools: &[CallRole::Synthesis],
        hidden: Vec::new(),
        run: Box::pin(async move { fusion(&plan, ask, team, &mut FusionTrace::default(), &()).await }),
    }
}

fn draw_confidence<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let models = some_models(dice, 1);
    let methods = [
        ConfidenceMethod::AvgLogprob,
        ConfidenceMethod::SelfVerify,
        ConfidenceMethod::AutomixEntailment,
        ConfidenceMethod::Agreement,
        ConfidenceMethod::QuantileLogprob,
    ];
    let settings = ConfidenceSettings {
        method: methods[dice.below(methods.len() as u64) as usize],
        order: EscalationOrder::Declared,
        hopeless: dice.percent(30).then_some(0.1),
        on_error: on_error(dice),
        ..ConfidenceSettings::default()
    };
    let plan = ConfidencePlan::from_settings(&settings, &candidates(&models)).unwrap();
    Drawn {
        // Every candidate but the last is measured: an answer and its checks, or that many samples.
        max_calls: (models.len() - 1) * (1 + settings.samples) + 1,
        max_concurrent: settings.samples,
        required: 0,
        // A check looks at the answer that it checks.
        sees_answers: &[CallRole::Verifier],
        // An attempt may be the visible answer; so may the further samples of it.
        sees_tools: &[CallRole::Attempt, CallRole::Verifier],
        hidden: Vec::new(),
        run: Box::pin(
            async move { confidence(&plan, ask, team, &mut ConfidenceTrace::default(), &()).await },
        ),
    }
}

fn draw_ratings<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let models = some_models(dice, 3);
    let (raters, aggregate) = [
        (Raters::None, Aggregate::Choices),
        (Raters::None, Aggregate::Vote),
        (Raters::Peers, Aggregate::Best),
        (Raters::Judge, Aggregate::Vote),
    ][dice.below(4) as usize];
    let settings = RatingsSettings {
        raters,
        aggregate,
        judge: Some(ModelId::new("j")),
        max_concurrent: maybe(dice, 5),
        round_timeout: round_timeout(dice),
        on_error: on_error(dice),
        ..RatingsSettings::default()
    };
    let plan = RatingsPlan::from_settings(&settings, &candidates(&models)).unwrap();
    Drawn {
        // Each answers once and rates once.
        max_calls: 2 * models.len(),
        max_concurrent: settings.max_concurrent.unwrap_or(models.len()),
        required: 1,
        sees_answers: &[CallRole::Rater, CallRole::Judge],
        sees_tools: &[],
        hidden: Vec::new(),
        run: Box::pin(async move { ratings(&plan, ask, team, &mut RatingsTrace::default(), &()).await }),
    }
}

fn draw_remom<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let models = some_models(dice, 1);
    let rounds = 1 + dice.below(3);
    let breadth: Vec<usize> = (0..rounds).map(|_| 1 + dice.below(5) as usize).collect();
    let settings = RemomSettings {
        max_concurrent: maybe(dice, 5),
        min_successful_responses: maybe(dice, 4),
        round_timeout: round_timeout(dice),
        stop_when_certain: dice.percent(30).then_some(0.9),
        on_error: on_error(dice),
        breadth_schedule: breadth.clone(),
        ..RemomSettings::default()
    };
    let plan = RemomPlan::from_settings(&settings, &candidates(&models)).unwrap();
    Drawn {
        // A seat of the last round stands in for a writer that fails.
        max_calls: plan.max_calls() + 1,
        max_concurrent: settings.max_concurrent.unwrap_or(breadth.iter().copied().max().unwrap_or(1)),
        required: 1,
        // From the second round on, a seat sees the round before.
        sees_answers: if rounds == 1 {
            &[CallRole::Synthesis]
        } else {
            &[CallRole::Panel, CallRole::Synthesis]
        },
        sees_tools: &[CallRole::Synthesis],
        hidden: Vec::new(),
        run: Box::pin(async move { remom(&plan, ask, team, &mut RemomTrace::default(), &()).await }),
    }
}

fn draw_poll<'a>(dice: &mut Dice, ask: &'a ChatRequest, team: &'a Team) -> Drawn<'a> {
    let models = some_models(dice, 3);
    let (arbiter, first) = models.split_last().unwrap();
    let mut plan = PollPlan::agreement(first, arbiter, 3).unwrap();
    plan.on_error = on_error(dice);
    plan.step_timeout = round_timeout(dice);
    Drawn {
        max_calls: models.len(),
        max_concurrent: first.len(),
        required: 1,
        sees_answers: &[],
        sees_tools: &[],
        hidden: Vec::new(),
        run: Box::pin(async move { poll(&plan, ask, team, &mut PollTrace::default(), &()).await }),
    }
}
