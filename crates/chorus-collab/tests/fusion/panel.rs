//! What members are asked, and which of their answers count.

use crate::support::{
    Script, ask, body, fails, judge, judged_by, message, prompt, question, run, says, settings, text,
};
use chorus_collab::{CallRole, FaultKind, LoopFault};
use chorus_spec::{FusionOverride, FusionSettings, ModelId};
use serde_json::json;
use std::time::Duration;

#[tokio::test(start_paused = true)]
async fn g01_too_few_usable_answers_end_before_the_judge() {
    let script = Script::new([
        ("a", vec![says("answer")]),
        ("b", vec![says("   ")]),
        ("c", vec![fails(FaultKind::Status)]),
    ]);
    let settings = FusionSettings { min_successful_responses: Some(2), ..settings(&["a", "b", "c"]) };
    let (outcome, trace) = run(&settings, &question("q"), &script).await;
    let Err(LoopFault::Quorum { wanted: 2, got: 1, failures }) = outcome else { panic!("no quorum fault") };
    let kinds: Vec<_> = failures.iter().map(|(model, kind, _)| (model.as_str(), *kind)).collect();
    assert_eq!(kinds, [("b", FaultKind::Empty), ("c", FaultKind::Status)]);
    assert!(script.asked(CallRole::Judge).is_empty() && script.asked(CallRole::Synthesis).is_empty());
    assert_eq!((trace.failed_models.len(), trace.responses.len()), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn g01_reasoning_without_text_is_usable_and_a_lone_tool_call_is_not() {
    let call = json!([{"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    let thought = json!({"role": "assistant", "content": null, "reasoning_content": "I think 7"});
    let script = Script::new([
        ("a", vec![message(&thought, "length")]),
        (
            "b",
            vec![message(&json!({"role": "assistant", "content": null, "tool_calls": call}), "tool_calls")],
        ),
        ("j", judge()),
    ]);
    let (_, trace) = run(&judged_by("j", &["a", "b"]), &question("q"), &script).await;
    assert_eq!(trace.responses[0].content, "I think 7");
    assert_eq!(trace.failed_models[0].kind, FaultKind::Empty);
}

#[tokio::test(start_paused = true)]
async fn g06_a_dead_panel_ends_at_once() {
    let script =
        Script::new([("a", vec![fails(FaultKind::Status)]), ("b", vec![fails(FaultKind::Transport)])]);
    let (outcome, _) = run(&judged_by("j", &["a", "b"]), &question("q"), &script).await;
    let fault = outcome.err().unwrap();
    assert_eq!(fault.to_string(), "1 usable answers of members are needed, and 0 came");
    assert!(matches!(fault, LoopFault::Quorum { .. }));
    assert!(script.asked(CallRole::Judge).is_empty());
}

#[tokio::test(start_paused = true)]
async fn g14_a_straggler_is_not_waited_for_and_the_order_is_the_seats() {
    let script = Script::new([
        ("a", vec![says("alpha").after_ms(300)]),
        ("b", vec![says("beta").after_ms(200)]),
        ("c", vec![says("gamma").after_ms(20_000)]),
        ("j", judge()),
    ]);
    let settings = FusionSettings { min_successful_responses: Some(2), ..judged_by("j", &["a", "b", "c"]) };
    let began = tokio::time::Instant::now();
    let (_, trace) = run(&settings, &question("q"), &script).await;
    assert!(began.elapsed() < Duration::from_millis(400));
    assert_eq!(trace.cancelled_models, ["c"]);
    assert!(!trace.degraded && trace.failed_models.is_empty());
    let judge = script.only(CallRole::Judge);
    assert!(prompt(&judge).find("alpha").unwrap() < prompt(&judge).find("beta").unwrap());
}

#[tokio::test(start_paused = true)]
async fn the_round_ends_in_time_with_what_is_there() {
    let script = Script::new([
        ("a", vec![says("alpha").after_ms(100)]),
        ("b", vec![says("beta").after_ms(60_000)]),
        ("j", judge()),
    ]);
    let settings =
        FusionSettings { round_timeout: Some(Duration::from_secs(1)), ..judged_by("j", &["a", "b"]) };
    let (answer, trace) = run(&settings, &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "final");
    assert_eq!(trace.failed_models[0].kind, FaultKind::Timeout);
    assert_eq!(script.only(CallRole::Judge).timeout, Some(Duration::from_secs(1)));
    assert_eq!(script.only(CallRole::Synthesis).timeout, None);
}

#[tokio::test(start_paused = true)]
async fn g26_members_get_the_conversation_and_no_tools() {
    let script = Script::trio();
    let messages =
        r#"{"role":"system","content":"answer in French"},{"role":"user","content":"q","name":"u"}"#;
    let fields = r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"auto",
        "parallel_tool_calls":true,"response_format":{"type":"json_object"},"stop":["END7"],"logprobs":true,
        "top_logprobs":2,"max_completion_tokens":40,"plugins":[{"id":"fusion"}],"seed":7,"top_p":0.5,"user":"u1""#;
    run(&judged_by("j", &["a", "b"]), &ask(messages, fields), &script).await.0.unwrap();
    let kept = ["model", "messages", "stream", "seed", "top_p", "user"];
    for call in script.asked(CallRole::Panel) {
        let body = body(&call);
        let strays: Vec<_> =
            body.as_object().unwrap().keys().filter(|key| !kept.contains(&key.as_str())).collect();
        assert!(strays.is_empty(), "{strays:?}");
        let system = body["messages"][0]["content"].as_str().unwrap();
        assert!(system.starts_with("answer in French\n\n") && system.contains("You have no tools"));
        assert_eq!(body["messages"][1], json!({"role": "user", "content": "q", "name": "u"}));
        assert_eq!((&body["seed"], &body["top_p"]), (&json!(7), &json!(0.5)));
    }
}

#[tokio::test(start_paused = true)]
async fn a_system_message_of_parts_keeps_its_parts() {
    let script = Script::trio();
    let part = json!({"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}});
    let system = json!({"role": "system", "content": [part]});
    let ask = ask(&format!(r#"{system},{{"role":"user","content":"q"}}"#), "");
    run(&judged_by("j", &["a"]), &ask, &script).await.0.unwrap();
    let content = body(&script.only(CallRole::Panel))["messages"][0]["content"].clone();
    assert_eq!(content[0], part);
    assert!(content[1]["text"].as_str().unwrap().contains("You have no tools"));
}

#[tokio::test(start_paused = true)]
async fn a_bare_question_reaches_members_unchanged() {
    let script = Script::trio();
    run(&judged_by("j", &["a", "b"]), &question("q"), &script).await.0.unwrap();
    let member = body(&script.asked(CallRole::Panel)[0]);
    assert_eq!(member["messages"], json!([{"role": "user", "content": "q"}]));
}

#[tokio::test(start_paused = true)]
async fn tool_traffic_is_retold_to_members_and_kept_for_the_writer() {
    let script = Script::trio();
    let messages = r#"{"role":"user","content":"q"},
        {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"web_search","arguments":"{\"q\":1}"}}]},
        {"role":"tool","tool_call_id":"c1","content":"first result"},
        {"role":"tool","tool_call_id":"c2","content":"second result"}"#;
    let fields = r#""tools":[{"type":"function","function":{"name":"web_search","parameters":{}}}]"#;
    run(&judged_by("j", &["a", "b"]), &ask(messages, fields), &script).await.0.unwrap();
    let member = body(&script.asked(CallRole::Panel)[0]);
    let roles: Vec<_> =
        member["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "user"]);
    let told = r#"(I called the tool `web_search` as call c1 with the arguments {"q":1})"#;
    assert_eq!(member["messages"][2], json!({"role": "assistant", "content": told}));
    let results = member["messages"][3]["content"].as_str().unwrap();
    assert!(results.contains("first result\n</tool-result-") && results.contains("second result"));
    let writer = body(&script.only(CallRole::Synthesis));
    assert_eq!(writer["messages"][1]["tool_calls"][0]["id"], "c1");
    assert_eq!(writer["messages"][2]["role"], "tool");
    assert!(prompt(&script.only(CallRole::Judge)).contains("tool: first result"));
}

#[tokio::test(start_paused = true)]
async fn temperature_is_the_seat_s_else_the_plan_s_else_the_client_s() {
    let own = |model: &str, temperature| FusionOverride {
        model: ModelId::new(model),
        temperature: Some(temperature),
        max_completion_tokens: None,
    };
    let temperatures = async |settings: &FusionSettings| {
        let script = Script::trio();
        let ask = ask(r#"{"role":"user","content":"q"}"#, r#""temperature":0.9"#);
        run(settings, &ask, &script).await.0.unwrap();
        let panel = script.asked(CallRole::Panel);
        panel.iter().map(|call| body(call)["temperature"].as_f64().unwrap()).collect::<Vec<_>>()
    };
    let plain = judged_by("j", &["a", "b"]);
    assert_eq!(temperatures(&plain).await, [0.9, 0.9]);
    let planned = FusionSettings { temperature: Some(0.2), ..plain };
    assert_eq!(temperatures(&planned).await, [0.2, 0.2]);
    let seated = FusionSettings { overrides: vec![own("b", 0.0)], ..planned };
    assert_eq!(temperatures(&seated).await, [0.2, 0.0]);
    let spread =
        FusionSettings { overrides: vec![own("a", 0.1), own("a", 0.7)], ..judged_by("j", &["a"; 3]) };
    assert_eq!(temperatures(&spread).await, [0.1, 0.7, 0.7]);
}

#[tokio::test(start_paused = true)]
async fn a_self_panel_gets_a_seed_a_seat() {
    let script = Script::trio();
    let ask = ask(r#"{"role":"user","content":"q"}"#, r#""seed":5"#);
    run(&judged_by("j", &["a", "b", "a"]), &ask, &script).await.0.unwrap();
    let seeds: Vec<_> = script.asked(CallRole::Panel).iter().map(|call| body(call)["seed"].clone()).collect();
    assert_eq!(seeds, [json!(5), json!(5), json!(6)]);
}

#[tokio::test(start_paused = true)]
async fn d21_a_member_s_reasoning_block_stays_out_of_the_prompts() {
    let script = Script::new([("a", vec![says("<think>hidden</think>shown")]), ("j", judge())]);
    let (_, trace) = run(&judged_by("j", &["a"]), &question("q"), &script).await;
    assert!(!prompt(&script.only(CallRole::Judge)).contains("hidden"));
    assert_eq!(trace.responses[0].content, "shown");
    assert_eq!(trace.responses[0].reasoning.as_deref(), Some("hidden"));
}

#[tokio::test(start_paused = true)]
async fn a_further_seat_of_one_model_is_sampled_where_the_client_asks_for_zero() {
    for (fields, plan, want) in [
        (r#""temperature":0"#, None, [Some(0.0), Some(0.7)]),
        (r#""temperature":0.3"#, None, [Some(0.3), Some(0.3)]),
        (r#""temperature":0"#, Some(0.2), [Some(0.2), Some(0.2)]),
        (r#""user":"u""#, None, [None, None]),
    ] {
        let script = Script::trio();
        let settings = FusionSettings { temperature: plan, ..judged_by("j", &["a", "a"]) };
        run(&settings, &ask(r#"{"role":"user","content":"q"}"#, fields), &script).await.0.unwrap();
        let asked: Vec<Option<f64>> =
            script.asked(CallRole::Panel).iter().map(|call| body(call)["temperature"].as_f64()).collect();
        assert_eq!(asked, want, "{fields}");
    }
}
