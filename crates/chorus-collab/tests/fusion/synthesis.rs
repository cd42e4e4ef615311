//! Who writes the answer, with which options, and how it ends.

use crate::support::{
    ANALYSIS, IMAGE, Script, Step, ask, body, fails, judged_by, message, question, run, says, text,
};
use chorus_collab::fusion::{Degradation, Stage, StageStatus};
use chorus_collab::{Answer, CallRole, FaultKind};
use chorus_spec::FusionSettings;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

/// A tool call whose backend says `stop`.
fn tool_call() -> Step {
    let call = json!([{"id": "c1", "type": "function", "function": {"name": "mark", "arguments": "{}"}}]);
    message(&json!({"role": "assistant", "content": null, "tool_calls": call}), "stop")
}

#[tokio::test(start_paused = true)]
async fn g05_a_writer_without_eyes_gets_the_conversation_without_images() {
    let script = Script::new([
        ("a", vec![says("red")]),
        ("j", vec![says(ANALYSIS), fails(FaultKind::Ineligible), says("It is red.")]),
    ]);
    let messages = format!(r#"{{"role":"user","content":[{{"type":"text","text":"colour?"}},{IMAGE}]}}"#);
    let (answer, trace) = run(&judged_by("j", &["a"]), &ask(&messages, ""), &script).await;
    assert_eq!(text(&answer.unwrap()), "It is red.");
    assert_eq!(trace.degraded_by, [Degradation::ImagesWithheld]);
    let second = &script.asked(CallRole::Synthesis)[1];
    assert_eq!(second.ask.messages()[0].text, "colour?\n(with 1 image, not shown here)");
    assert_eq!(second.ask.messages()[0].images, 0);
}

#[tokio::test(start_paused = true)]
async fn a_failed_writer_is_replaced_once() {
    let script = Script::new([
        ("a", vec![says("alpha"), says("written by a")]),
        ("j", vec![says(ANALYSIS), fails(FaultKind::Status)]),
    ]);
    let (answer, trace) = run(&judged_by("j", &["a"]), &question("q"), &script).await;
    assert_eq!(text(&answer.unwrap()), "written by a");
    assert_eq!(trace.degraded_by, [Degradation::WriterReplaced]);
    let rows = trace.stages.iter().filter(|row| row.stage == Stage::Synthesis);
    assert_eq!(rows.map(|row| row.status).collect::<Vec<_>>(), [StageStatus::Failed, StageStatus::Ok]);
}

#[tokio::test(start_paused = true)]
async fn nobody_writes_for_a_client_that_left_or_a_budget_that_is_spent() {
    for kind in [FaultKind::Cancelled, FaultKind::Budget] {
        let script = Script::new([("a", vec![says("alpha")]), ("j", vec![says(ANALYSIS), fails(kind)])]);
        let (outcome, _) = run(&judged_by("j", &["a"]), &question("q"), &script).await;
        assert_eq!(outcome.err().unwrap().call().unwrap().kind, kind);
        assert_eq!(script.asked(CallRole::Synthesis).len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn g27_b10_b11_the_writer_keeps_every_option_of_the_visible_answer() {
    let script = Script::trio();
    let fields = r#""tools":[{"type":"function","function":{"name":"f","parameters":{}}}],"tool_choice":"auto",
        "response_format":{"type":"json_object"},"stop":["END7"],"logprobs":true,"max_completion_tokens":40,
        "temperature":0.3,"plugins":[{"id":"fusion"}]"#;
    let settings = FusionSettings { max_completion_tokens: Some(500), ..judged_by("j", &["a", "b"]) };
    run(&settings, &ask(r#"{"role":"user","content":"q"}"#, fields), &script).await.0.unwrap();
    let writer = body(&script.only(CallRole::Synthesis));
    for (key, value) in [
        ("tool_choice", json!("auto")),
        ("response_format", json!({"type": "json_object"})),
        ("stop", json!(["END7"])),
        ("logprobs", json!(true)),
        ("max_completion_tokens", json!(40)),
        ("temperature", json!(0.3)),
    ] {
        assert_eq!(writer[key], value, "{key}");
    }
    assert_eq!(writer["tools"][0]["function"]["name"], "f");
    assert!(writer.get("plugins").is_none());
    let judge = body(&script.only(CallRole::Judge));
    assert_eq!(judge["max_completion_tokens"], 500);
    assert!(["stop", "response_format", "tools", "logprobs"].iter().all(|key| judge.get(*key).is_none()));
}

#[tokio::test(start_paused = true)]
async fn the_synthesis_streams_when_the_client_does() {
    let script = Script::trio();
    let fields = r#""stream":true,"stream_options":{"include_usage":true}"#;
    let ask = ask(r#"{"role":"user","content":"q"}"#, fields);
    let (answer, _) = run(&judged_by("j", &["a", "b"]), &ask, &script).await;
    let Ok(Answer::Live(live)) = answer else { panic!("no stream") };
    assert_eq!(live.model, "j");
    let chunks: Vec<_> = live.chunks.map(Result::unwrap).collect().await;
    let text: String = chunks.iter().flat_map(|c| &c.choices).filter_map(|c| c.content.clone()).collect();
    assert_eq!(text, "final");
    assert_eq!(script.streamed(), ["j"]);
    assert!(script.asked(CallRole::Panel).iter().all(|call| !call.ask.stream()));
}

#[tokio::test(start_paused = true)]
async fn b17_an_answer_with_tool_calls_ends_with_tool_calls() {
    let script = Script::new([("a", vec![says("alpha")]), ("j", vec![says(ANALYSIS), tool_call()])]);
    let (answer, _) = run(&judged_by("j", &["a"]), &question("q"), &script).await;
    let Ok(Answer::Finished(reply)) = answer else { panic!("no answer") };
    assert_eq!(reply.reply.finish_reason.as_deref(), Some("tool_calls"));
    let body: Value = serde_json::from_slice(&reply.reply.to_bytes()).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(body["choices"][0]["message"]["tool_calls"][0]["id"], "c1");
}

#[tokio::test(start_paused = true)]
async fn b17_a_streamed_answer_with_tool_calls_ends_with_tool_calls() {
    let script = Script::new([("a", vec![says("alpha")]), ("j", vec![says(ANALYSIS), tool_call()])]);
    let ask = ask(r#"{"role":"user","content":"q"}"#, r#""stream":true"#);
    let (answer, _) = run(&judged_by("j", &["a"]), &ask, &script).await;
    let Ok(Answer::Live(live)) = answer else { panic!("no stream") };
    let chunks: Vec<_> = live.chunks.map(Result::unwrap).collect().await;
    let last = chunks.last().unwrap();
    assert_eq!(last.choices[0].finish_reason.as_deref(), Some("tool_calls"));
    let body: Value = serde_json::from_slice(&last.to_bytes()).unwrap();
    assert_eq!(body["choices"][0]["finish_reason"], "tool_calls");
}
