//! Who is tried, whose answer it is, and why the cascade ends.

use crate::stage::{candidates, plan, run, settings, weighed};
use crate::support::{Script, ask, body, fails, message, question, says, text};
use chorus_collab::confidence::{ConfidencePlan, ConfidencePlanFault, Stopped};
use chorus_collab::{Answer, CallRole, FaultKind, LoopFault};
use chorus_spec::{ConfidenceMethod, ConfidenceSettings, EscalationOrder, OnError, TokenFilter};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

const SURE: [(f64, f64); 2] = [(-0.01, 6.0), (-0.02, 5.0)];
const UNSURE: [(f64, f64); 2] = [(-1.0, 0.4), (-1.4, 0.2)];
const LOST: [(f64, f64); 2] = [(-2.9, 0.1), (-2.9, 0.1)];

#[tokio::test(start_paused = true)]
async fn a_trusted_answer_ends_the_cascade() {
    let script = Script::new([("small", vec![weighed("yes", &SURE)])]);
    let plan = plan(&settings(ConfidenceMethod::AvgLogprob), &["small", "large"]);
    let (outcome, trace) = run(&plan, &question("q"), &script).await;
    assert_eq!(text(&outcome.unwrap()), "yes");
    assert_eq!((trace.stopped, trace.attempts.len()), (Some(Stopped::Accepted), 1));
    assert!((trace.attempts[0].confidence.unwrap() - 0.995).abs() < 1e-9 && trace.attempts[0].accepted);
    assert_eq!(trace.answered_by.as_deref(), Some("small"));
}

#[tokio::test(start_paused = true)]
async fn every_log_probability_method_trusts_the_sure_and_escalates_the_unsure() {
    for method in [
        ConfidenceMethod::AvgLogprob,
        ConfidenceMethod::Margin,
        ConfidenceMethod::Hybrid,
        ConfidenceMethod::QuantileLogprob,
    ] {
        for (tokens, by) in [(SURE, "small"), (UNSURE, "large")] {
            let script = Script::new([("small", vec![weighed("yes", &tokens)]), ("large", vec![says("no")])]);
            let (outcome, trace) =
                run(&plan(&settings(method), &["small", "large"]), &question("q"), &script).await;
            assert!(outcome.is_ok());
            assert_eq!(trace.answered_by.as_deref(), Some(by), "{method:?} {:?}", trace.attempts);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn without_log_probabilities_nothing_is_accepted_even_at_zero() {
    let script = Script::new([("small", vec![says("yes")]), ("large", vec![says("no")])]);
    let settings = ConfidenceSettings { threshold: Some(0.0), ..settings(ConfidenceMethod::AvgLogprob) };
    let (outcome, trace) = run(&plan(&settings, &["small", "large"]), &question("q"), &script).await;
    assert_eq!(text(&outcome.unwrap()), "no");
    assert_eq!(trace.attempts[0].no_evidence.as_deref(), Some("the reply has no log-probabilities"));
    assert_eq!(trace.attempts[0].confidence, None);
}

#[tokio::test(start_paused = true)]
async fn without_log_probabilities_on_error_fail_says_so() {
    let script = Script::new([("small", vec![says("yes")])]);
    let settings = ConfidenceSettings { on_error: OnError::Fail, ..settings(ConfidenceMethod::Margin) };
    let (outcome, _) = run(&plan(&settings, &["small", "large"]), &question("q"), &script).await;
    let Err(LoopFault::Member(fault)) = outcome else { panic!("no fault") };
    assert_eq!(fault.kind, FaultKind::Ineligible);
    assert!(fault.public.contains("`small`") && fault.public.contains("log-probabilities"), "{fault}");
}

#[tokio::test(start_paused = true)]
async fn zero_can_be_said_and_an_absent_threshold_is_a_default_of_its_method() {
    let script = Script::new([("small", vec![weighed("yes", &LOST)])]);
    let zero = ConfidenceSettings { threshold: Some(0.0), ..settings(ConfidenceMethod::AvgLogprob) };
    let (_, trace) = run(&plan(&zero, &["small", "large"]), &question("q"), &script).await;
    assert_eq!(trace.stopped, Some(Stopped::Accepted));
    for (method, want) in [
        (ConfidenceMethod::AvgLogprob, 0.9),
        (ConfidenceMethod::Margin, 0.5),
        (ConfidenceMethod::Hybrid, 0.7),
        (ConfidenceMethod::SelfVerify, 0.7),
        (ConfidenceMethod::AutomixEntailment, 0.7),
        (ConfidenceMethod::QuantileLogprob, 0.75),
        (ConfidenceMethod::Agreement, 0.6),
        (ConfidenceMethod::Learned, 0.7),
    ] {
        let threshold = plan(&settings(method), &["a", "b"]).threshold;
        assert!((threshold - want).abs() < 1e-12, "g22: {method:?} {threshold}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hopeless_question_is_not_escalated() {
    let script =
        Script::new([("small", vec![weighed("hm", &UNSURE)]), ("middle", vec![weighed("eh", &LOST)])]);
    let settings = ConfidenceSettings { hopeless: Some(0.1), ..settings(ConfidenceMethod::AvgLogprob) };
    let (outcome, trace) =
        run(&plan(&settings, &["small", "middle", "large"]), &question("q"), &script).await;
    assert_eq!(text(&outcome.unwrap()), "hm", "the best so far, not the last one");
    assert_eq!(trace.stopped, Some(Stopped::Hopeless));
    assert_eq!(trace.answered_by.as_deref(), Some("small"));
    assert!(trace.attempts.iter().all(|attempt| !attempt.accepted));
}

#[tokio::test(start_paused = true)]
async fn a_failing_candidate_is_passed_over_and_a_failing_last_one_replaced() {
    let script = Script::new([
        ("a", vec![fails(FaultKind::Timeout)]),
        ("b", vec![weighed("better", &UNSURE)]),
        ("c", vec![weighed("worse", &LOST)]),
        ("d", vec![fails(FaultKind::Status)]),
    ]);
    let plan = plan(&settings(ConfidenceMethod::AvgLogprob), &["a", "b", "c", "d"]);
    let (outcome, trace) = run(&plan, &question("q"), &script).await;
    assert_eq!(text(&outcome.unwrap()), "better");
    assert_eq!(trace.stopped, Some(Stopped::LastFailed));
    let errors: Vec<bool> = trace.attempts.iter().map(|attempt| attempt.error.is_some()).collect();
    assert_eq!(errors, [true, false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn g06_when_nobody_answers_the_fault_names_all() {
    let script = Script::new([("a", vec![fails(FaultKind::Timeout)]), ("b", vec![fails(FaultKind::Status)])]);
    let (outcome, _) =
        run(&plan(&settings(ConfidenceMethod::AvgLogprob), &["a", "b"]), &question("q"), &script).await;
    let Err(LoopFault::Quorum { wanted: 1, got: 0, failures }) = outcome else { panic!("no fault") };
    assert_eq!(failures.iter().map(|(model, ..)| model.as_str()).collect::<Vec<_>>(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_spent_budget_ends_with_the_best_so_far_whatever_on_error_says() {
    for on_error in [OnError::Skip, OnError::Fail] {
        for (models, refused) in [(vec!["a", "b", "c"], "b"), (vec!["a", "b"], "b")] {
            let script = Script::new([
                ("a", vec![weighed("first", &UNSURE)]),
                (refused, vec![fails(FaultKind::Budget)]),
            ]);
            let settings = ConfidenceSettings { on_error, ..settings(ConfidenceMethod::AvgLogprob) };
            let (outcome, trace) = run(&plan(&settings, &models), &question("q"), &script).await;
            assert_eq!(text(&outcome.unwrap()), "first");
            assert_eq!(trace.stopped, Some(Stopped::BudgetSpent));
        }
    }
    let script = Script::new([("a", vec![fails(FaultKind::Budget)])]);
    let (outcome, _) =
        run(&plan(&settings(ConfidenceMethod::AvgLogprob), &["a", "b"]), &question("q"), &script).await;
    assert!(matches!(outcome, Err(LoopFault::Member(fault)) if fault.kind == FaultKind::Budget));
}

#[tokio::test(start_paused = true)]
async fn the_last_candidate_streams_and_an_accepted_one_is_held() {
    let streamed = ask(r#"{"role":"user","content":"q"}"#, r#""stream":true"#);
    let plan = plan(&settings(ConfidenceMethod::AvgLogprob), &["small", "large"]);
    let script = Script::new([("small", vec![weighed("yes", &UNSURE)]), ("large", vec![says("in pieces")])]);
    let (outcome, trace) = run(&plan, &streamed, &script).await;
    let Ok(Answer::Live(live)) = outcome else { panic!("not a stream") };
    assert_eq!((live.model.as_str(), live.chunks.count().await), ("large", 3));
    assert_eq!((script.streamed(), trace.stopped), (vec!["large".to_owned()], Some(Stopped::LastCandidate)));
    let script = Script::new([("small", vec![weighed("yes", &SURE)])]);
    let (outcome, _) = run(&plan, &streamed, &script).await;
    assert!(matches!(outcome, Ok(Answer::Finished(_))) && script.streamed().is_empty());
}

#[tokio::test(start_paused = true)]
async fn g27_an_attempt_keeps_the_clients_request_and_adds_log_probabilities_unseen() {
    let fields = r#""tools":[{"type":"function","function":{"name":"f"}}],"stop":["x"],"max_tokens":5,
        "response_format":{"type":"json_object"},"plugins":[{"id":"web"}]"#;
    let script = Script::new([("small", vec![weighed("yes", &SURE)]), ("large", vec![says("no")])]);
    let asked = ask(r#"{"role":"user","content":"q"}"#, fields);
    let plan_of = |models: &[&str]| plan(&settings(ConfidenceMethod::Margin), models);
    let (outcome, _) = run(&plan_of(&["small", "large"]), &asked, &script).await;
    let sent = body(&script.only(CallRole::Attempt));
    assert_eq!((&sent["logprobs"], &sent["top_logprobs"]), (&json!(true), &json!(2)));
    for field in ["tools", "stop", "max_tokens", "response_format"] {
        assert!(!sent[field].is_null(), "{field}");
    }
    assert!(sent.get("plugins").is_none());
    let Ok(Answer::Finished(reply)) = outcome else { panic!("no answer") };
    let choices = reply.reply.body().read::<Value>("choices").unwrap().unwrap();
    assert!(choices[0]["logprobs"].is_null());

    let (_, _) = run(&plan_of(&["large"]), &asked, &script).await;
    let last = body(&script.asked(CallRole::Attempt)[1]);
    assert!(last.get("logprobs").is_none(), "the last candidate is not measured");
}

#[tokio::test(start_paused = true)]
async fn b17_a_tool_call_is_judged_by_its_arguments_and_handed_on() {
    let call =
        json!([{ "id": "1", "type": "function", "function": { "name": "f", "arguments": "{\"x\":\"7\"}" } }]);
    let said = json!({ "role": "assistant", "content": null, "tool_calls": call });
    let token = |text: &str, logprob: f64| json!({ "token": text, "logprob": logprob });
    let tokens = [
        token("call f ", -2.0),
        token("{\"", -2.0),
        token("x", -0.1),
        token("\":\"", -2.0),
        token("7", -0.1),
        token("\"}", -2.0),
    ];
    let step = crate::support::message_with(&said, &json!({ "content": tokens }), "stop");
    for (filter, by) in [(TokenFilter::ToolCallArgs, "small"), (TokenFilter::All, "large")] {
        let script = Script::new([("small", vec![step.clone()]), ("large", vec![message(&said, "stop")])]);
        let settings = ConfidenceSettings { token_filter: filter, ..settings(ConfidenceMethod::AvgLogprob) };
        let (outcome, trace) = run(&plan(&settings, &["small", "large"]), &question("q"), &script).await;
        let Ok(Answer::Finished(reply)) = outcome else { panic!("no answer") };
        assert_eq!(reply.reply.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(trace.answered_by.as_deref(), Some(by));
    }
}

#[test]
fn plans_are_checked() {
    let of =
        |settings: &ConfidenceSettings| ConfidencePlan::from_settings(settings, &candidates(&["a", "b"]));
    let avg = settings(ConfidenceMethod::AvgLogprob);
    assert_eq!(ConfidencePlan::from_settings(&avg, &[]).err(), Some(ConfidencePlanFault::NoCandidates));
    let crossed = ConfidenceSettings { threshold: Some(0.2), hopeless: Some(0.3), ..avg.clone() };
    assert!(matches!(of(&crossed), Err(ConfidencePlanFault::ThresholdsCross { .. })));
    let high = ConfidenceSettings { threshold: Some(1.5), ..avg.clone() };
    assert!(matches!(of(&high), Err(ConfidencePlanFault::OutOfRange { field: "threshold", .. })));
    let lone = ConfidenceSettings { samples: 1, ..settings(ConfidenceMethod::Agreement) };
    assert!(matches!(of(&lone), Err(ConfidencePlanFault::Samples { least: 2, .. })));
    let sized = ConfidenceSettings { order: EscalationOrder::Size, ..avg };
    assert_eq!(of(&sized).unwrap().last, "b");
}
