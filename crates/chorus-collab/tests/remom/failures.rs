//! What a round, a member or a writer that fails does.

use crate::stage::{plan, planned, run, settings};
use crate::support::{Script, fails, prompt, question, says, text};
use chorus_collab::{CallRole, FaultKind, LoopFault};
use chorus_spec::{OnError, RemomSettings};
use std::time::Duration;

fn quorum(n: usize) -> RemomSettings {
    RemomSettings { min_successful_responses: Some(n), ..settings(&[3]) }
}

#[tokio::test(start_paused = true)]
async fn g01_blank_answers_are_no_quorum() {
    let script = Script::new([
        ("a", vec![says("answer")]),
        ("b", vec![says("   ")]),
        ("c", vec![fails(FaultKind::Status)]),
    ]);
    let (outcome, _) = run(&planned(&quorum(2), &["a", "b", "c"]), &question("q"), &script).await;
    let Err(LoopFault::Quorum { wanted, got, failures }) = outcome else { panic!("an answer") };
    assert_eq!((wanted, got), (2, 1));
    let failed: Vec<_> = failures.iter().map(|(model, kind, _)| (&**model, *kind)).collect();
    assert_eq!(failed, [("b", FaultKind::Empty), ("c", FaultKind::Status)]);
    assert!(script.asked(CallRole::Synthesis).is_empty());
}

#[tokio::test(start_paused = true)]
async fn g06_nobody_writes_when_every_member_failed() {
    let script = Script::new([("a", vec![fails(FaultKind::Status)])]);
    let (outcome, _) = run(&plan(&[3], &["a"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Quorum { wanted: 1, got: 0, .. })));
    assert_eq!(script.all().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn g07_failed_members_are_no_reference() {
    let script =
        Script::new([("a", vec![says("alpha"), says("final")]), ("b", vec![fails(FaultKind::Transport)])]);
    let (_, trace) = run(&plan(&[2], &["a", "b"]), &question("q"), &script).await;
    let last = script.only(CallRole::Synthesis);
    assert_eq!(prompt(&last).matches("<reference-").count(), 1);
    assert!(!prompt(&last).contains("failed"), "{}", prompt(&last));
    assert_eq!(trace.degraded_by, ["round 1: 1 of 2 answers are usable"]);
}

#[tokio::test(start_paused = true)]
async fn g14_a_slow_member_is_not_waited_for() {
    let script = Script::new([
        ("a", vec![says("alpha").after_ms(300), says("final")]),
        ("b", vec![says("beta").after_ms(200)]),
        ("c", vec![says("gamma").after_ms(60_000)]),
    ]);
    let begun = tokio::time::Instant::now();
    let (answer, trace) = run(&planned(&quorum(2), &["a", "b", "c"]), &question("q"), &script).await;
    assert!(answer.is_ok() && begun.elapsed() < Duration::from_secs(1));
    let models: Vec<_> = trace.rounds[0].responses.iter().map(|r| &*r.model).collect();
    assert_eq!(models, ["a", "b"], "in the order of seats");
}

#[tokio::test(start_paused = true)]
async fn a_round_that_runs_out_of_time_gives_what_is_there() {
    let script =
        Script::new([("a", vec![says("alpha"), says("final")]), ("b", vec![says("beta").after_ms(60_000)])]);
    let settings = RemomSettings { round_timeout: Some(Duration::from_secs(2)), ..settings(&[2]) };
    let (answer, trace) = run(&planned(&settings, &["a", "b"]), &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(trace.rounds[0].responses.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_lost_round_falls_back_to_the_one_before() {
    let script = Script::new([
        ("a", vec![says("first"), fails(FaultKind::Status), says("final")]),
        ("b", vec![says("other"), fails(FaultKind::Timeout)]),
    ]);
    let (answer, trace) = run(&plan(&[2, 2, 2], &["a", "b"]), &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert!(prompt(&script.only(CallRole::Synthesis)).contains("first"));
    assert_eq!(trace.rounds.len(), 1);
    assert!(trace.degraded_by[0].starts_with("round 2 failed, the one before it counts"));
}

#[tokio::test(start_paused = true)]
async fn a_round_that_cannot_be_asked_falls_back_too() {
    let long = "long ".repeat(2000);
    let script = Script::new([("a", vec![says(&long), says("final")]), ("tiny", vec![says(&long)])])
        .window("tiny", 300);
    let (answer, trace) = run(&plan(&[2, 2], &["a", "tiny"]), &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert!(trace.degraded_by[0].contains("does not fit"), "{:?}", trace.degraded_by);
}

#[tokio::test(start_paused = true)]
async fn the_longest_answer_stands_in_for_a_writer_that_failed() {
    for kind in [FaultKind::Status, FaultKind::Empty, FaultKind::Budget] {
        let script =
            Script::new([("a", vec![says("short"), fails(kind)]), ("b", vec![says("the longest answer")])]);
        let (answer, trace) = run(&plan(&[2], &["a", "b"]), &question("q"), &script).await;
        assert_eq!(text(&answer.unwrap()), "the longest answer");
        assert_eq!(trace.writer, "b");
        assert!(trace.degraded_by[0].starts_with("an answer of `b` stands in"));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_stands_in_for_a_client_that_left() {
    let script = Script::new([("a", vec![says("x"), fails(FaultKind::Cancelled)])]);
    let (outcome, _) = run(&plan(&[1], &["a"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Synthesis(_))));
}

#[tokio::test(start_paused = true)]
async fn on_error_fail_fails_at_the_first_fault() {
    let strict = RemomSettings { on_error: OnError::Fail, ..settings(&[2]) };
    let script = Script::new([("a", vec![says("x")]), ("b", vec![fails(FaultKind::Status)])]);
    let (outcome, _) = run(&planned(&strict, &["a", "b"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Member(_))));
    let script = Script::new([("a", vec![says("x"), fails(FaultKind::Status)]), ("b", vec![says("y")])]);
    let (outcome, _) = run(&planned(&strict, &["a", "b"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Synthesis(_))));
}
