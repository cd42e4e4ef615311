//! Plans that a model makes.

use crate::stage::{dynamic, run};
use crate::support::{Script, body, fails, prompt, question, says, text};
use chorus_collab::{CallRole, FaultKind, LoopFault};
use chorus_spec::{OnError, WorkflowSettings};

const PLAN: &str = r#"{"steps":[{"id":"think","role":"thinker","models":["a"],"prompt":"List the traps."},
    {"id":"solve","role":"worker","models":["a","b"],"access_list":["think"]}],
    "final":{"model":"b","prompt":"Be brief."}}"#;
const TASK: &str = "translate to Dutch AND count the words";

fn skip() -> WorkflowSettings {
    WorkflowSettings { on_error: OnError::Skip, ..dynamic() }
}

fn script<const N: usize>(planner: [&str; N]) -> Script {
    Script::new([
        ("p", planner.iter().map(|text| says(text)).collect()),
        ("a", vec![says("found by a")]),
        ("b", vec![says("found by b")]),
        ("w", vec![says("final")]),
    ])
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_followed() {
    let script = script([PLAN]);
    let (answer, trace) = run(&dynamic(), &question(TASK), &script).await;
    assert_eq!(text(&answer.unwrap()), "found by b");
    let planner = script.only(CallRole::Planner);
    let sent = body(&planner);
    assert_eq!((&sent["temperature"], &sent["max_completion_tokens"]), (&0.0.into(), &2048.into()));
    assert_eq!(sent["response_format"]["type"], "json_object");
    assert!(prompt(&planner).contains("a, b") && prompt(&planner).contains("at most 3 steps"));
    let workers = script.asked(CallRole::Worker);
    assert_eq!(workers.len(), 3);
    assert!(prompt(&workers[0]).contains("List the traps.") && prompt(&workers[0]).contains(TASK));
    let last = script.only(CallRole::Synthesis);
    assert_eq!(last.model, "b");
    assert!(prompt(&last).contains("Be brief."));
    assert_eq!((trace.planner_model.as_deref(), &*trace.mode, trace.degraded), (Some("p"), "dynamic", false));
    assert_eq!(trace.plan.unwrap().steps[1].access_list.as_deref(), Some(&["think".to_owned()][..]));
}

#[tokio::test(start_paused = true)]
async fn d21_plans_in_prose_fences_and_thought_are_read() {
    for said in [
        format!("<think>{{\"steps\":[]}}</think>Here it is:\n```json\n{PLAN}\n```\nDone."),
        format!("The user quoted {{\"steps\":[{{\"models\":[\"z\"]}}]}}; my plan: {PLAN}"),
        PLAN.replace("]}],", "],}],").replace("\"models\":[\"a\"],", "\"models\":\"a\","),
    ] {
        let script = script([&said]);
        let (_, trace) = run(&dynamic(), &question(TASK), &script).await;
        assert_eq!(trace.plan.unwrap().steps.len(), 2, "{said}");
    }
}

#[tokio::test(start_paused = true)]
async fn g23_a_broken_plan_is_sent_back_once() {
    let script = script(["not json", PLAN]);
    let (answer, trace) = run(&dynamic(), &question(TASK), &script).await;
    assert!(answer.is_ok() && !trace.degraded);
    let again = &script.asked(CallRole::Planner)[1];
    assert!(prompt(again).contains("it is not a JSON object with `steps`"), "{}", prompt(again));
    assert!(body(again).to_string().contains("not json"));
}

#[tokio::test(start_paused = true)]
async fn g23_the_whole_task_is_done_when_there_is_no_plan() {
    let script = script(["not json"]);
    let (answer, trace) = run(&skip(), &question(TASK), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(script.asked(CallRole::Planner).len(), 2);
    let worker = script.only(CallRole::Worker);
    assert!(prompt(&worker).contains(TASK) && !prompt(&worker).contains("not json"));
    assert_eq!(trace.steps[0].step.id, "fallback_solve");
    assert!(trace.degraded && trace.degraded_by[0].starts_with("one step stands in for the plan"));
}

#[tokio::test(start_paused = true)]
async fn g16_a_plan_names_candidates_only_and_fails_by_policy() {
    let script = script([r#"{"steps":[{"models":["vllm-sr/flow"]}]}"#]);
    let (outcome, trace) = run(&dynamic(), &question(TASK), &script).await;
    let Err(LoopFault::Plan(why)) = outcome else { panic!("a plan") };
    assert!(why.contains("`vllm-sr/flow`"), "{why}");
    assert!(trace.plan.is_none() && script.asked(CallRole::Worker).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_fails() {
    for (kind, settings, answered) in [
        (FaultKind::Status, dynamic(), false),
        (FaultKind::Status, skip(), true),
        (FaultKind::Cancelled, skip(), false),
    ] {
        let script =
            Script::new([("p", vec![fails(kind)]), ("a", vec![says("x")]), ("w", vec![says("final")])]);
        let (outcome, _) = run(&settings, &question(TASK), &script).await;
        assert_eq!(outcome.is_ok(), answered);
        assert!(answered || matches!(outcome, Err(LoopFault::Planner(_))));
        assert_eq!(script.asked(CallRole::Planner).len(), 1);
    }
}
