//! Who is asked, whose vote wins, and what a failure does.

use crate::support::{Script, ask, body, fails, question, says, text};
use chorus_collab::poll::{PollPlan, PollStopped, PollTrace, VoteWeights, poll};
use chorus_collab::{CallRole, FaultKind, LoopFault};
use chorus_spec::OnError;

fn agreement() -> PollPlan {
    PollPlan::agreement(&["a", "b"], "c", 10).unwrap()
}

async fn run(plan: &PollPlan, script: &Script) -> (Result<String, LoopFault>, PollTrace) {
    let mut trace = PollTrace::default();
    let answer = poll(plan, &question("2+2?"), script, &mut trace, &()).await;
    (answer.map(|answer| text(&answer).to_owned()), trace)
}

#[tokio::test(start_paused = true)]
async fn whoever_agrees_spares_the_arbiter() {
    let script = Script::new([("a", vec![says("ANSWER: 4")]), ("b", vec![says("4.")])]);
    let (answer, trace) = run(&agreement(), &script).await;
    assert_eq!(answer.unwrap(), "ANSWER: 4");
    assert_eq!((trace.stopped, trace.steps.len()), (Some(PollStopped::Accepted), 1));
    assert_eq!(trace.answered_by.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn the_arbiter_has_the_last_word() {
    for b in [says("Answer: 5"), fails(FaultKind::Timeout), says("I cannot tell.\nReally not.")] {
        let script =
            Script::new([("a", vec![says("ANSWER: 4")]), ("b", vec![b]), ("c", vec![says("answer: 6")])]);
        let (answer, trace) = run(&agreement(), &script).await;
        assert_eq!(answer.unwrap(), "answer: 6");
        assert_eq!(trace.stopped, Some(PollStopped::Accepted));
        assert_eq!(trace.answered_by.as_deref(), Some("c"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_heavy_vote_outweighs_two_light_ones() {
    let weights = VoteWeights::even([("a", 0.5), ("b", 0.5), ("c", 2.0)]);
    let plan = PollPlan::vote(&["a", "b", "c"], weights, 10).unwrap();
    let script = Script::new([("a", vec![says("4")]), ("b", vec![says("4")]), ("c", vec![says("5")])]);
    assert_eq!(run(&plan, &script).await.0.unwrap(), "5");
}

#[tokio::test(start_paused = true)]
async fn what_answers_nothing_is_no_vote_but_better_than_silence() {
    let prose = "It depends on many things.\nWho knows.";
    let script = Script::new([
        ("a", vec![says(prose)]),
        ("b", vec![fails(FaultKind::Transport)]),
        ("c", vec![fails(FaultKind::Transport)]),
    ]);
    let (answer, trace) = run(&agreement(), &script).await;
    assert_eq!(answer.unwrap(), prose);
    assert_eq!(trace.steps[1].leader, None);
}

#[tokio::test(start_paused = true)]
async fn failures_are_told_apart() {
    let of = |a, b, c| Script::new([("a", vec![fails(a)]), ("b", vec![fails(b)]), ("c", vec![fails(c)])]);
    let (transport, budget) = (FaultKind::Transport, FaultKind::Budget);
    let (nobody, _) = run(&agreement(), &of(transport, transport, transport)).await;
    assert!(matches!(nobody, Err(LoopFault::Quorum { got: 0, failures, .. }) if failures.len() == 3));
    let (refused, _) = run(&agreement(), &of(budget, budget, budget)).await;
    assert!(matches!(refused, Err(LoopFault::Member(fault)) if fault.kind == budget));
    let mut strict = agreement();
    strict.on_error = OnError::Fail;
    let (first, _) = run(&strict, &of(transport, transport, transport)).await;
    assert!(matches!(first, Err(LoopFault::Member(fault)) if fault.kind == transport));
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_answers_with_what_is_there() {
    let script = Script::new([("a", vec![says("4")]), ("b", vec![fails(FaultKind::Budget)])]);
    let (answer, trace) = run(&agreement(), &script).await;
    assert_eq!(answer.unwrap(), "4");
    assert_eq!(trace.stopped, Some(PollStopped::BudgetSpent));
}

#[tokio::test(start_paused = true)]
async fn g26_a_voter_sees_no_tools_but_the_shape_of_the_answer() {
    let tool = r#""tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}]"#;
    let fields = format!(r#"{tool},"tool_choice":"auto","response_format":{{"type":"json_object"}}"#);
    let ask = ask(r#"{"role":"user","content":"hi"}"#, &fields);
    let script = Script::new([("a", vec![says("1")]), ("b", vec![says("1")])]);
    poll(&agreement(), &ask, &script, &mut PollTrace::default(), &()).await.unwrap();
    for call in script.asked(CallRole::Panel) {
        let body = body(&call);
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
        assert_eq!(body["response_format"]["type"], "json_object");
    }
}
