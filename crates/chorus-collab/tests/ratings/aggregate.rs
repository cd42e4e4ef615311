//! Candidates, and what is made of their answers.

use crate::stage::{candidates, choices, plan, run, settings};
use crate::support::{Script, ask, body, fails, message, question, says, text};
use chorus_collab::ratings::{RatingsPlan, RatingsPlanFault};
use chorus_collab::{Answer, CallRole, Candidate, FaultKind, LoopFault};
use chorus_spec::{Aggregate, ModelId, OnError, Raters, RatingsSettings};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn without_raters_every_answer_is_a_choice() {
    let script = Script::new([
        ("a", vec![says("alpha").after_ms(50)]),
        ("b", vec![fails(FaultKind::Status)]),
        ("c", vec![says("gamma")]),
    ]);
    let plan = plan(&RatingsSettings::default(), &["a", "b", "c"]);
    let (outcome, trace) = run(&plan, &question("q"), &script).await;
    let answer = outcome.unwrap();
    let Answer::Finished(reply) = &answer else { panic!("a stream") };
    assert_eq!(reply.model, "a,c");
    assert_eq!(reply.reply.body().read::<String>("model").unwrap().as_deref(), Some("a,c"));
    let choices = choices(answer);
    for (at, (model, content)) in [("a", "alpha"), ("c", "gamma")].into_iter().enumerate() {
        assert_eq!(choices[at]["index"], at);
        assert_eq!(choices[at]["model"], model);
        assert_eq!(choices[at]["message"]["content"], content);
        assert!(choices[at].get("rating").is_none());
    }
    assert_eq!((choices.len(), trace.failed_models.len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn g17_choices_take_what_all_of_them_took() {
    let script =
        Script::new([("a", vec![says("alpha").taking(10, 5)]), ("b", vec![says("beta").taking(11, 7)])]);
    let (outcome, _) = run(&plan(&RatingsSettings::default(), &["a", "b"]), &question("q"), &script).await;
    let Ok(Answer::Finished(reply)) = outcome else { panic!("no answer") };
    assert_eq!((reply.usage.prompt_tokens, reply.usage.completion_tokens), (21, 12));
    assert_eq!(reply.reply.usage, Some(reply.usage));
}

#[tokio::test(start_paused = true)]
async fn g27_candidates_keep_what_shapes_the_visible_answer_and_see_no_tools() {
    let fields = r#""tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","stop":["x"],
        "max_tokens":5,"response_format":{"type":"json_object"},"logprobs":true,"seed":3"#;
    let script = Script::new([("a", vec![says("one")])]);
    let plan = plan(&RatingsSettings::default(), &["a", "a"]);
    let _ = run(&plan, &ask(r#"{"role":"user","content":"q"}"#, fields), &script).await;
    let sent: Vec<_> = script.asked(CallRole::Panel).iter().map(body).collect();
    for body in &sent {
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
        assert_eq!((&body["stop"], &body["max_tokens"]), (&json!(["x"]), &json!(5)));
        assert_eq!(body["response_format"], json!({"type": "json_object"}));
        assert_eq!(body["logprobs"], true);
    }
    assert_eq!((&sent[0]["seed"], &sent[1]["seed"]), (&json!(3), &json!(4)));
}

#[tokio::test(start_paused = true)]
async fn g01_an_answer_that_says_nothing_is_none() {
    let call = json!([{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let calls = json!({"role": "assistant", "content": null, "tool_calls": call});
    let script = Script::new([("a", vec![says("  ")]), ("b", vec![message(&calls, "tool_calls")])]);
    let (outcome, trace) =
        run(&plan(&RatingsSettings::default(), &["a", "b"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Quorum { wanted: 1, got: 0, failures }) if failures.len() == 2));
    assert!(trace.failed_models.iter().all(|failed| failed.kind == FaultKind::Empty));
}

#[tokio::test(start_paused = true)]
async fn on_error_fail_ends_at_a_failed_candidate_but_not_at_a_spent_budget() {
    for (kind, fails_with) in [(FaultKind::Timeout, true), (FaultKind::Budget, false)] {
        let script = Script::new([("a", vec![says("alpha")]), ("b", vec![fails(kind)])]);
        let settings = RatingsSettings { on_error: OnError::Fail, ..RatingsSettings::default() };
        let (outcome, _) = run(&plan(&settings, &["a", "b"]), &question("q"), &script).await;
        assert_eq!(matches!(outcome, Err(LoopFault::Member(_))), fails_with, "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn g14_the_round_ends_in_time() {
    let script = Script::new([("a", vec![says("alpha")]), ("b", vec![says("beta").after_ms(60_000)])]);
    let settings =
        RatingsSettings { round_timeout: Some(Duration::from_secs(5)), ..RatingsSettings::default() };
    let began = tokio::time::Instant::now();
    let (outcome, trace) = run(&plan(&settings, &["a", "b"]), &question("q"), &script).await;
    assert!(outcome.is_ok() && began.elapsed() < Duration::from_secs(6));
    assert_eq!(trace.failed_models[0].kind, FaultKind::Timeout);
}

#[tokio::test(start_paused = true)]
async fn g28_a_vote_counts_answers_not_their_form() {
    let script = Script::new([
        ("a", vec![says("41")]),
        ("b", vec![says("42.")]),
        ("c", vec![says("Six by seven.\nThe answer is 42")]),
    ]);
    let plan = plan(&settings(Raters::None, Aggregate::Vote), &["a", "b", "c"]);
    let (outcome, trace) = run(&plan, &question("q"), &script).await;
    assert_eq!(text(&outcome.unwrap()), "42.");
    assert_eq!((trace.answered_by.as_deref(), trace.vote_share), (Some("b"), Some(2.0 / 3.0)));
}

#[tokio::test(start_paused = true)]
async fn strengths_weigh_votes_and_choose_the_best() {
    let rated = |model: &str, rating: Option<f64>| Candidate {
        model: model.to_owned(),
        rating,
        ..Candidate::default()
    };
    let team = [rated("a", Some(0.0)), rated("b", Some(0.0)), rated("c", Some(2.0))];
    let script = || Script::new([("a", vec![says("1")]), ("b", vec![says("1")]), ("c", vec![says("2")])]);
    for (aggregate, want) in [(Aggregate::Vote, "2"), (Aggregate::Best, "2")] {
        let plan = RatingsPlan::from_settings(&settings(Raters::Components, aggregate), &team).unwrap();
        let (outcome, trace) = run(&plan, &question("q"), &script()).await;
        assert_eq!(text(&outcome.unwrap()), want);
        assert!((trace.responses.iter().filter_map(|r| r.rating).sum::<f64>() - 1.0).abs() < 1e-12);
    }
    let unknown = candidates(&["a", "b", "c"]);
    let plan = RatingsPlan::from_settings(&settings(Raters::Components, Aggregate::Vote), &unknown).unwrap();
    let (outcome, _) = run(&plan, &question("q"), &script()).await;
    assert_eq!(text(&outcome.unwrap()), "1", "equal weights are a majority");
}

#[tokio::test(start_paused = true)]
async fn ties_go_to_the_lower_seat() {
    let script = Script::new([("a", vec![says("1")]), ("b", vec![says("2")])]);
    for (raters, aggregate) in [(Raters::None, Aggregate::Vote), (Raters::Components, Aggregate::Best)] {
        let (outcome, _) =
            run(&plan(&settings(raters, aggregate), &["a", "b"]), &question("q"), &script).await;
        assert_eq!(text(&outcome.unwrap()), "1");
    }
}

#[test]
fn plans_are_checked() {
    let of = |settings: &RatingsSettings, models: &[&str]| {
        RatingsPlan::from_settings(settings, &candidates(models)).map(|plan| plan.panel)
    };
    let judged = settings(Raters::Judge, Aggregate::Best);
    let by = |judge: &str| RatingsSettings { judge: Some(ModelId::new(judge)), ..judged.clone() };
    assert_eq!(of(&by("j"), &["a", "b"]).unwrap(), ["a", "b"]);
    assert_eq!(of(&judged, &["a", "b", "c"]).unwrap(), ["b", "c"], "g12: the judge gives no answer");
    for (settings, models, fault) in [
        (by("b"), vec!["a", "b"], RatingsPlanFault::TooFew { raters: "judge", wanted: 2, got: 1 }),
        (
            settings(Raters::Peers, Aggregate::Best),
            vec!["a", "b"],
            RatingsPlanFault::TooFew { raters: "peers", wanted: 3, got: 2 },
        ),
        (RatingsSettings::default(), vec![], RatingsPlanFault::TooFew { raters: "none", wanted: 1, got: 0 }),
        (RatingsSettings::default(), vec!["a"; 27], RatingsPlanFault::TooMany { got: 27 }),
        (settings(Raters::None, Aggregate::Best), vec!["a", "b"], RatingsPlanFault::BestOfUnrated),
    ] {
        assert_eq!(of(&settings, &models), Err(fault));
    }
}
