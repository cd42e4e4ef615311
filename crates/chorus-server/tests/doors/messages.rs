//! Anthropic's door: answers, streams, errors and loopers in its words; and a backend that speaks its dialect.

use crate::fusion::seat;
use crate::support::{HOUSE, House};
use bytes::Bytes;
use chorus_testkit::{ChatAnswer, Gate, Script, Step};
use chorus_wire::{SseDecoder, sse};
use serde_json::{Value, json};
use std::time::Duration;

const DOOR: &str = "/v1/messages";

fn ask(model: &str, text: &str) -> Value {
    json!({"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": text}]})
}

fn streamed(mut request: Value) -> String {
    request["stream"] = true.into();
    request.to_string()
}

/// The events of a stream, their names checked.
fn events(body: &Bytes) -> Vec<Value> {
    let (mut decoder, mut out) = (SseDecoder::new(sse::MAX_EVENT_BYTES), Vec::new());
    decoder.push(body, &mut out).unwrap();
    let read = |event: &chorus_wire::SseEvent| {
        let data: Value = serde_json::from_slice(&event.data).unwrap();
        assert_eq!(event.event.as_deref(), data["type"].as_str());
        data
    };
    out.iter().map(read).collect()
}

fn text(events: &[Value]) -> String {
    events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect()
}

#[tokio::test]
async fn an_answer_is_a_message_and_a_stream_its_events() {
    let house = House::open(HOUSE).await;
    house.up.on("acme/small-fp8", Script::chat(ChatAnswer::pieces(["Hi ", "you"]).usage(12, 6)));
    let whole = house.post(DOOR, ask("small", "x").to_string()).await;
    assert_eq!(whole.status, 200);
    let message = whole.json();
    assert_eq!(message["content"], json!([{"type": "text", "text": "Hi you"}]));
    assert_eq!(
        (&message["stop_reason"], &message["usage"]["input_tokens"]),
        (&json!("end_turn"), &json!(12))
    );
    assert!(message["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(whole.header("x-vsr-response-path"), Some("direct"));
    let all = events(&house.post(DOOR, streamed(ask("small", "x"))).await.body);
    assert_eq!(text(&all), "Hi you");
    let last: Vec<&str> = all.iter().rev().take(2).map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(last, ["message_stop", "message_delta"]);
    let sent = house.up.requests_for("acme/small-fp8");
    assert_eq!(sent[0].json()["max_tokens"], 50);
    assert_eq!(sent[1].json()["stream_options"]["include_usage"], true);
}

#[tokio::test]
async fn b23_a_rule_picks_the_same_target_at_every_door() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let text = "think deeply";
    let chat = json!({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}]});
    let responses = json!({"model": "vllm-sr/auto", "input": text, "store": false});
    let mut told = Vec::new();
    for (path, body) in
        [("/v1/chat/completions", chat), (DOOR, ask("vllm-sr/auto", text)), ("/v1/responses", responses)]
    {
        let answer = house.post(path, body.to_string()).await;
        assert_eq!(answer.status, 200, "{path}");
        assert!(answer.json().get("fusion").is_some(), "{path}: the trace is there");
        let header = |name| answer.header(name).map(str::to_owned);
        told.push(
            ["x-vsr-selected-decision", "x-vsr-selected-model", "x-vsr-looper-models-used"].map(header),
        );
    }
    assert!(told.iter().all(|it| *it == told[0] && it[0].as_deref() == Some("deep-fusion")), "{told:?}");
    let all = events(&house.post(DOOR, streamed(ask("vllm-sr/auto", text))).await.body);
    assert!(all[0]["message"]["fusion"].is_object(), "a looper's trace opens the stream");
    assert_eq!(all.last().unwrap()["type"], "message_stop");
}

#[tokio::test]
async fn b07_errors_have_the_shape_of_the_protocol() {
    let house = House::open(HOUSE).await;
    house.up.on("acme/small-fp8", Script::error(429, "sk-live-1 is limited"));
    for (body, status, kind) in [
        ("{".to_owned(), 400, "invalid_request_error"),
        (r#"{"model":"small","model":"b"}"#.to_owned(), 400, "invalid_request_error"),
        (
            json!({"model": "small", "max_tokens": 1, "messages": []}).to_string(),
            400,
            "invalid_request_error",
        ),
        (ask("nobody", "x").to_string(), 404, "not_found_error"),
        (ask("small", "x").to_string(), 429, "rate_limit_error"),
        (streamed(ask("small", "x")), 429, "rate_limit_error"),
        ("x".repeat(33 << 20), 413, "request_too_large"),
    ] {
        let answer = house.post(DOOR, body).await;
        let error = answer.json();
        assert_eq!((answer.status, &error["type"]), (status, &json!("error")), "{error}");
        assert_eq!(error["error"]["type"], kind, "{error}");
        assert!(!error.to_string().contains("sk-live"), "{error}");
    }
    let answer = house.get(DOOR).await;
    assert_eq!((answer.status, answer.json()["type"].clone()), (405, json!("error")));
}

#[tokio::test]
async fn a13_a_stream_that_breaks_ends_in_an_error_event() {
    let house = House::open(HOUSE).await;
    let piece = chorus_testkit::openai::chunk("x", &json!({"content": "half"}));
    house.up.on("acme/small-fp8", Script::sse([Step::event(&piece.to_string())]));
    let all = events(&house.post(DOOR, streamed(ask("small", "x"))).await.body);
    assert_eq!(text(&all), "half");
    let last = all.last().unwrap();
    assert_eq!((&last["type"], &last["error"]["type"]), (&json!("error"), &json!("api_error")));
    assert!(all.iter().all(|event| event["type"] != "message_stop"));
}

#[tokio::test]
async fn a18_a_silence_is_broken_by_pings() {
    let mut setup = crate::support::Setup::of(HOUSE);
    setup.door.keepalive = Duration::from_millis(30);
    let house = setup.open().await;
    let gate = Gate::new();
    house.up.on("acme/small-fp8", Script::reply("late").first(Step::Await(gate.clone())));
    let opening = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        gate.open();
    });
    let all = events(&house.post(DOOR, streamed(ask("small", "x"))).await.body);
    opening.await.unwrap();
    assert_eq!(all[0]["type"], "ping");
    assert_eq!(text(&all), "late");
}

#[tokio::test]
async fn what_is_lost_stands_in_a_header_and_in_the_record() {
    let house = House::open(HOUSE).await;
    house.up.on("acme/small-fp8", Script::reply("hi"));
    let mut request = ask("small", "x");
    request["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    request["container"] = "c".into();
    let answer = house.post(DOOR, request.to_string()).await;
    assert_eq!(answer.header("x-vsr-protocol-warnings"), Some("thinking,container"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.degraded, ["protocol: thinking", "protocol: container"]);
    let sent = house.up.requests_for("acme/small-fp8")[0].json();
    assert!(sent.get("thinking").is_none(), "b22: {sent}");
}

#[tokio::test]
async fn tokens_are_counted() {
    let house = House::open(HOUSE).await;
    let body = json!({"model": "small", "system": "Be brief.", "messages": [{"role": "user", "content": "word ".repeat(80)}]});
    let answer = house.post("/v1/messages/count_tokens", body.to_string()).await;
    assert_eq!(answer.json(), json!({"input_tokens": 111}));
    let unknown = json!({"model": "nobody", "messages": [{"role": "user", "content": "x"}]});
    let answer = house.post("/v1/messages/count_tokens", unknown.to_string()).await;
    assert_eq!(answer.json()["error"]["type"], "not_found_error");
    assert!(house.up.requests().is_empty(), "nobody is asked");
}

/// One model whose backend speaks Anthropic's dialect.
const CLAUDE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: claude }
  models:
    - name: claude
      api_format: anthropic
      provider_model_id: claude-x
      backend_refs: [{ name: main, base_url: "${UP}", api_key: "${UP_KEY}" }]
routing:
  modelCards: [{ name: claude, context_window_size: 32768 }]
"#;

fn message() -> Value {
    json!({
        "id": "msg_up", "type": "message", "role": "assistant", "model": "claude-x", "stop_reason": "tool_use",
        "stop_sequence": null,
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "sig"},
            {"type": "text", "text": "Looking."},
            {"type": "tool_use", "id": "t1", "name": "sky", "input": {"at": 1}}],
        "usage": {"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 5, "output_tokens": 7},
    })
}

#[tokio::test]
async fn a_backend_of_the_dialect_answers_both_doors() {
    let house = House::open(CLAUDE).await;
    house.up.on("claude-x", Script::json(200, &message()));
    let mut request = ask("claude", "x");
    request["thinking"] = json!({"type": "enabled", "budget_tokens": 1024});
    request["system"] =
        json!([{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]);
    let answer = house.post(DOOR, request.to_string()).await.json();
    assert_eq!(answer["content"], message()["content"], "the signature comes back");
    assert_eq!(answer["usage"], message()["usage"]);
    assert_eq!(answer["stop_reason"], "tool_use");
    let chat = json!({"model": "claude", "messages": [{"role": "user", "content": "x"}]});
    let answer = house.chat(&chat).await.json();
    assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], r#"{"at":1}"#);
    assert_eq!(answer["usage"]["prompt_tokens"], 18);
    let sent = house.up.requests_for("claude-x");
    assert_eq!(sent[0].path, "/v1/messages");
    assert_eq!(sent[0].header("x-api-key"), Some(crate::support::house::KEY));
    assert_eq!(sent[0].header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(sent[0].header("authorization"), None);
    let body = sent[0].json();
    assert_eq!(body["system"][0]["cache_control"]["type"], "ephemeral");
    assert_eq!(body["thinking"]["budget_tokens"], 1024);
    assert_eq!(sent[1].json()["max_tokens"], 4096);
}

#[tokio::test]
async fn a12_an_error_amid_the_dialect_s_stream_is_an_error_event() {
    let house = House::open(CLAUDE).await;
    let event = |value: &Value| {
        let name = value["type"].as_str().unwrap();
        Step::write(format!("event: {name}\ndata: {value}\n\n"))
    };
    let start = json!({"type": "message_start", "message": {"id": "m", "model": "claude-x", "usage": {"input_tokens": 2}}});
    let delta =
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "half"}});
    let error = json!({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}});
    house.up.on("claude-x", Script::sse([event(&start), event(&delta), event(&error)]));
    let all = events(&house.post(DOOR, streamed(ask("claude", "x"))).await.body);
    assert_eq!(text(&all), "half");
    assert_eq!(all.last().unwrap()["type"], "error");
    let told = house
        .stream(&json!({"model": "claude", "messages": [{"role": "user", "content": "x"}]}))
        .await
        .told()
        .await;
    told.broken();
}
