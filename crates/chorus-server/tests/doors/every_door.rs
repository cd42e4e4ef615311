//! What must hold at every door alike: the same history, options, constraints and readiness.

use crate::support::{House, Setup};
use chorus_testkit::Script;
use serde_json::{Value, json};

/// A small and a large model; only the large one writes by a schema.
const TWO: &str = r#"
version: v0.3
providers:
  defaults: { default_model: tight }
  models:
    - { name: tight, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: wide, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards:
    - { name: tight, context_window_size: 2048, capabilities: [tools] }
    - { name: wide, context_window_size: 32768, capabilities: [tools, json_schema] }
  signals:
    keywords: [{ name: any, keywords: [continue, weather, ship] }]
  decisions:
    - name: chatter
      priority: 10
      rules: { type: keyword, name: any }
      modelRefs: [{ model: tight }, { model: wide }]
      algorithm: { type: static }
"#;

const DOORS: [&str; 3] = ["/v1/chat/completions", "/v1/messages", "/v1/responses"];

/// The same user text, behind as much history, in the words of each door.
fn ask(door: &str, history: &str, text: &str) -> Value {
    let turns = json!([
        {"role": "user", "content": history}, {"role": "assistant", "content": "yes"}, {"role": "user", "content": text},
    ]);
    match door {
        "/v1/messages" => json!({"model": "vllm-sr/auto", "max_tokens": 10, "messages": turns}),
        "/v1/responses" => json!({"model": "vllm-sr/auto", "max_output_tokens": 10, "input": turns}),
        _ => json!({"model": "vllm-sr/auto", "max_tokens": 10, "messages": turns}),
    }
}

async fn house() -> House {
    let house = House::open(TWO).await;
    for model in ["tight", "wide"] {
        house.up.on(model, Script::reply(model));
    }
    house
}

#[tokio::test]
async fn c06_a_long_chat_goes_to_the_model_that_it_fits() {
    let house = house().await;
    for door in DOORS {
        let short = house.post(door, ask(door, "hi", "ok, continue").to_string()).await;
        assert_eq!(short.header("x-vsr-selected-model"), Some("tight"), "{door}");
        let long = house.post(door, ask(door, &"word ".repeat(5000), "ok, continue").to_string()).await;
        assert_eq!(long.header("x-vsr-selected-model"), Some("wide"), "{door}: {}", long.json());
        let calls = house.up.requests().len();
        let too_long = house.post(door, ask(door, &"word ".repeat(40_000), "ok, continue").to_string()).await;
        let error = too_long.json();
        assert_eq!(
            (too_long.status, &error["error"]["code"]),
            (400, &json!("context_length_exceeded")),
            "{door}"
        );
        assert_eq!(house.up.requests().len(), calls, "{door}: nobody is called");
    }
}

#[tokio::test]
async fn b05_a_schema_goes_to_the_model_that_can_or_is_refused() {
    let house = house().await;
    let schema = json!({"type": "object", "properties": {"knots": {"type": "number"}}});
    let named = json!({"name": "ship", "strict": true, "schema": schema});
    for (door, field, form) in [
        (DOORS[0], "response_format", json!({"type": "json_schema", "json_schema": named})),
        (DOORS[1], "output_config", json!({"format": {"type": "json_schema", "schema": schema}})),
        (
            DOORS[2],
            "text",
            json!({"format": {"type": "json_schema", "name": "ship", "strict": true, "schema": schema}}),
        ),
    ] {
        let mut request = ask(door, "hi", "a ship");
        request[field] = form;
        let answer = house.post(door, request.to_string()).await;
        assert_eq!(answer.header("x-vsr-selected-model"), Some("wide"), "{door}: {}", answer.json());
        let sent = house.up.requests_for("wide").pop().unwrap().json();
        assert_eq!(sent["response_format"]["json_schema"]["schema"], schema, "{door}: b04, no layer is lost");
    }
}

#[tokio::test]
async fn b03_c05_a_history_with_tools_is_the_same_at_every_door() {
    let house = house().await;
    let called = json!({"id": "c1", "type": "function", "function": {"name": "sky", "arguments": "{}"}});
    let chat = json!({"model": "vllm-sr/auto", "messages": [
        {"role": "user", "content": "weather?"}, {"role": "assistant", "content": null, "tool_calls": [called]},
        {"role": "tool", "tool_call_id": "c1", "content": "8C"}, {"role": "user", "content": "weather tomorrow?"}]});
    let messages = json!({"model": "vllm-sr/auto", "max_tokens": 10, "messages": [
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "sky", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "8C"},
            {"type": "text", "text": "weather tomorrow?"}]}]});
    let responses = json!({"model": "vllm-sr/auto", "input": [
        {"role": "user", "content": "weather?"},
        {"type": "function_call", "call_id": "c1", "name": "sky", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "8C"},
        {"role": "user", "content": "weather tomorrow?"}]});
    for (door, request) in DOORS.into_iter().zip([chat.clone(), messages, responses]) {
        let answer = house.post(door, request.to_string()).await;
        assert_eq!(answer.status, 200, "{door}: {}", answer.json());
        let sent = house.up.requests_for("tight").pop().unwrap().json();
        assert_eq!(sent["messages"], chat["messages"], "{door}");
    }
}

#[tokio::test]
async fn b10_stop_reaches_the_backend_from_every_entrance_that_has_it() {
    let house = house().await;
    for (door, field) in [(DOORS[0], "stop"), (DOORS[1], "stop_sequences"), (DOORS[2], "stop")] {
        let mut request = ask(door, "hi", "continue");
        request[field] = json!(["END7"]);
        assert_eq!(house.post(door, request.to_string()).await.status, 200);
        let sent = house.up.requests_for("tight").pop().unwrap().json();
        assert_eq!(sent["stop"], json!(["END7"]), "{door}");
    }
}

#[tokio::test]
async fn c14_ready_is_apart_from_alive_and_ends_with_a_stop() {
    let house = Setup::of(TWO).open().await;
    assert_eq!(house.get("/health").await.status, 200);
    let ready = house.get("/ready").await;
    assert_eq!((ready.status, &ready.json()["status"]), (200, &json!("ready")));
    // No backend has been called for it: readiness is this process's own.
    assert!(house.up.requests().is_empty());
}
