//! Tool calls go to the client, and the run goes on where it called.

use crate::stage::{ID, NEXT_ID, Shelf, fixed, role, run_on};
use crate::support::{Script, Step, ask, body, message, says, text};
use chorus_collab::{Answer, CallRole, LoopFault};
use chorus_spec::{OnError, WorkflowSettings};
use chorus_wire::ChatRequest;
use serde_json::{Value, json};

const TOOLS: &str =
    r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"required""#;
const USER: &str = r#"{"role":"user","content":"Measure it."}"#;

fn settings() -> WorkflowSettings {
    fixed(vec![role("Worker", &["a", "b"], None)])
}

fn calls_tools(ids: &[&str]) -> Step {
    let call =
        |id: &&str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let calls: Vec<Value> = ids.iter().map(call).collect();
    message(&json!({"role": "assistant", "content": "One moment.", "tool_calls": calls}), "stop")
}

fn first() -> ChatRequest {
    ask(USER, TOOLS)
}

/// The follow-up with a result a call.
fn follow_up(ids: &[&str], fields: &str) -> ChatRequest {
    let result =
        |id: &&str| json!({"role": "tool", "tool_call_id": id, "content": format!("of {id}")}).to_string();
    let results: Vec<String> = ids.iter().map(result).collect();
    let calls: Vec<Value> = ids
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}}))
        .collect();
    let assistant = json!({"role": "assistant", "content": null, "tool_calls": calls});
    ask(&format!("{USER},{assistant},{}", results.join(",")), fields)
}

fn called(answer: Result<Answer, LoopFault>) -> Vec<String> {
    let Ok(Answer::Finished(reply)) = answer else { panic!("no reply") };
    assert_eq!(reply.reply.finish_reason.as_deref(), Some("tool_calls"), "b17");
    let sent: Value = serde_json::from_slice(&reply.reply.to_bytes()).unwrap();
    let ids: Vec<String> = reply.reply.tool_calls.iter().map(|call| call.id.clone()).collect();
    for (at, id) in ids.iter().enumerate() {
        assert_eq!(sent["choices"][0]["message"]["tool_calls"][at]["id"], **id);
    }
    ids
}

fn id(state: &str, seq: usize, own: &str) -> String {
    format!("flowtool_{state}__{seq}__{own}")
}

#[tokio::test(start_paused = true)]
async fn a_run_goes_on_at_the_worker_that_called() {
    let script = Script::new([
        ("a", vec![says("a is done")]),
        ("b", vec![calls_tools(&["c1", "c2"]), says("b measured")]),
        ("w", vec![says("final")]),
    ]);
    let shelf = Shelf::default();
    let (answer, trace) = run_on(&settings(), &first(), &script, &shelf, ID).await;
    let ids = called(answer);
    assert_eq!(ids, [id(ID, 1, "c1"), id(ID, 2, "c2")]);
    let pending = serde_json::to_value(trace.pending_tool_call).unwrap();
    assert_eq!(
        pending,
        json!({"phase": "worker", "state_id": ID, "agent_id": "worker:1:b", "step_id": "worker",
            "role": "Worker", "model": "b", "tool_call_ids": ids})
    );

    // The results come in another order.
    let back = follow_up(&[&ids[1], &ids[0]], TOOLS);
    let (answer, trace) = run_on(&settings(), &back, &script, &shelf, NEXT_ID).await;
    assert_eq!(text(&answer.unwrap()), "final");
    let workers = script.asked(CallRole::Worker);
    let models: Vec<_> = workers.iter().map(|call| &*call.model).collect();
    assert_eq!(models, ["a", "b", "b"], "g25: `a` is not asked again");
    let messages = body(&workers[2])["messages"].clone();
    assert_eq!(messages[2]["tool_calls"][0]["id"], "c1");
    assert_eq!((&messages[3]["tool_call_id"], &messages[4]["tool_call_id"]), (&json!("c1"), &json!("c2")));
    assert_eq!(messages[3]["content"], format!("of {}", ids[0]));
    assert_eq!(messages.as_array().unwrap().len(), 5);
    let shown = serde_json::to_value(&trace).unwrap();
    let trajectory = &shown["steps"][0]["responses"][1]["tool_trajectory"];
    assert_eq!(*trajectory, json!([{ "tool_call_ids": ids }]));
    assert!(trace.pending_tool_call.is_none() && shelf.len() == 0);
}

#[tokio::test(start_paused = true)]
async fn workers_may_call_and_are_not_forced_to() {
    let script = Script::new([("a", vec![says("x")]), ("b", vec![says("y")]), ("w", vec![says("final")])]);
    run_on(&settings(), &first(), &script, &Shelf::default(), ID).await.0.unwrap();
    assert_eq!(script.peak(), 1, "one after the other");
    for call in script.asked(CallRole::Worker) {
        assert!(body(&call).get("tools").is_some() && body(&call).get("tool_choice").is_none());
    }
    assert_eq!(body(&script.only(CallRole::Synthesis))["tool_choice"], "required");
}

#[tokio::test(start_paused = true)]
async fn tool_choice_none_offers_no_tools() {
    let script = Script::new([("a", vec![says("x")]), ("b", vec![says("y")]), ("w", vec![says("final")])]);
    let ask = ask(USER, &TOOLS.replace("required", "none"));
    run_on(&settings(), &ask, &script, &Shelf::default(), ID).await.0.unwrap();
    assert!(script.asked(CallRole::Worker).iter().all(|call| body(call).get("tools").is_none()));
}

#[tokio::test(start_paused = true)]
async fn the_writer_s_calls_come_back_to_the_writer() {
    let script = Script::new([
        ("a", vec![says("x")]),
        ("b", vec![says("y")]),
        ("w", vec![calls_tools(&["c1"]), calls_tools(&["c1"]), says("final")]),
    ]);
    let shelf = Shelf::default();
    let stream = format!("{TOOLS},\"stream\":true");
    let (answer, trace) = run_on(&settings(), &ask(USER, &stream), &script, &shelf, ID).await;
    let ids = called(answer);
    assert_eq!(trace.pending_tool_call.unwrap().phase, "final");
    let (answer, _) = run_on(&settings(), &follow_up(&[&ids[0]], TOOLS), &script, &shelf, NEXT_ID).await;
    let ids = called(answer);
    assert_eq!(ids, [id(NEXT_ID, 2, "c1")], "ids stay unique over a run");
    let (answer, trace) = run_on(&settings(), &follow_up(&[&ids[0]], TOOLS), &script, &shelf, ID).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(trace.final_tool_trajectory.len(), 2);
    assert_eq!(script.asked(CallRole::Worker).len(), 2);
    assert!(script.streamed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_run_is_taken_up_once() {
    let script = Script::new([
        ("a", vec![calls_tools(&["c1"]), says("x")]),
        ("b", vec![says("y")]),
        ("w", vec![says("final")]),
    ]);
    let shelf = Shelf::default();
    let ids = called(run_on(&settings(), &first(), &script, &shelf, ID).await.0);
    let back = follow_up(&[&ids[0]], TOOLS);
    assert!(run_on(&settings(), &back, &script, &shelf, NEXT_ID).await.0.is_ok());
    let calls = script.all().len();
    let (outcome, _) = run_on(&settings(), &back, &script, &shelf, NEXT_ID).await;
    let Err(LoopFault::Resume(why)) = outcome else { panic!("taken twice") };
    assert!(why.contains("was taken up before"), "{why}");
    assert_eq!(script.all().len(), calls);
}

#[tokio::test(start_paused = true)]
async fn results_that_do_not_fit_leave_the_run_where_it_was() {
    let script = Script::new([
        ("a", vec![calls_tools(&["c1", "c2"]), says("x")]),
        ("b", vec![says("y")]),
        ("w", vec![says("final")]),
    ]);
    let shelf = Shelf::default();
    let ids = called(run_on(&settings(), &first(), &script, &shelf, ID).await.0);
    let (one, two) = (&*ids[0], &*ids[1]);
    let other = WorkflowSettings { template: "other".to_owned(), ..settings() };
    for (settings, results, why) in [
        (settings(), vec![one], "is missing"),
        (settings(), vec![one, two, two], "more than one result"),
        (settings(), vec![one, two, "c9"], "did not call `c9`"),
        (other, vec![one, two], "another decision"),
    ] {
        let (outcome, _) = run_on(&settings, &follow_up(&results, TOOLS), &script, &shelf, NEXT_ID).await;
        let Err(LoopFault::Resume(found)) = outcome else { panic!("taken up") };
        assert!(found.contains(why), "{found}");
        assert_eq!(shelf.len(), 1);
    }
    let (answer, _) = run_on(&settings(), &follow_up(&[one, two], TOOLS), &script, &shelf, NEXT_ID).await;
    assert!(answer.is_ok());
}

#[tokio::test(start_paused = true)]
async fn old_results_and_foreign_ids_begin_a_new_run() {
    let script = Script::new([("a", vec![says("x")]), ("b", vec![says("y")]), ("w", vec![says("final")])]);
    let old = id(ID, 1, "c1");
    let goes_on = format!(
        r#"{USER},{{"role":"tool","tool_call_id":"{old}","content":"3"}},{{"role":"user","content":"And now?"}}"#
    );
    for ask in [ask(&goes_on, TOOLS), follow_up(&["c1"], TOOLS), follow_up(&["flowtool_xyz__1__c1"], TOOLS)] {
        let (answer, _) = run_on(&settings(), &ask, &script, &Shelf::default(), ID).await;
        assert_eq!(text(&answer.unwrap()), "final");
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_before_the_tools_is_not_forgotten() {
    let script = Script::new([
        ("a", vec![says(" ")]),
        ("b", vec![calls_tools(&["c1"]), says("b measured")]),
        ("w", vec![says("final")]),
    ]);
    let settings = WorkflowSettings { on_error: OnError::Skip, ..settings() };
    let shelf = Shelf::default();
    let ids = called(run_on(&settings, &first(), &script, &shelf, ID).await.0);
    let (_, trace) = run_on(&settings, &follow_up(&[&ids[0]], TOOLS), &script, &shelf, NEXT_ID).await;
    assert_eq!(trace.failed_models[0].model, "a");
    assert_eq!(trace.degraded_by, ["step `worker`: 1 of 2 answers are usable"]);
}
