//! Backends that fail without taking the answer with them: retries, fallbacks, breakers, time limits, hedges.

use crate::support::{House, ask};
use chorus_store::{CallStatus, RunRecord};
use chorus_testkit::openai::chunk;
use chorus_testkit::{Received, Script, Step};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// One model a rule; every backend is the scripted one, told apart by its path.
const HOUSE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - name: small
      reliability: { fallback: [spare] }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - { name: spare, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: lone, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - name: pair
      backend_refs: [{ name: a, base_url: "${UP}/a" }, { name: b, base_url: "${UP}/b" }]
    - name: strict
      reliability: { fallback: [spare], fallback_on: [401, 429] }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - name: brittle
      reliability: { fallback: [spare], consecutive_5xx: 3 }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - name: slow
      reliability: { fallback: [spare] }
      backend_refs: [{ name: main, base_url: "${UP}", timeouts: { first_byte: 100ms } }]
    - { name: stalls, backend_refs: [{ name: main, base_url: "${UP}", timeouts: { idle: 100ms } }] }
    - { name: paced, backend_refs: [{ name: main, base_url: "${UP}", requests_per_minute: 1 }] }
    - name: hedged
      reliability: { hedge_after_percentile: 95 }
      backend_refs: [{ name: a, base_url: "${UP}/a" }, { name: b, base_url: "${UP}/b" }]
    - name: blind
      reliability: { fallback: [seeing] }
      backend_refs: [{ name: main, base_url: "${UP}" }]
    - { name: seeing, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: seeing, modality: text }]
"#;

fn error_event() -> Step {
    Step::event(&json!({"choices": [], "error": {"code": 502, "message": "worker limit"}}).to_string())
}

fn piece(text: &str) -> Step {
    Step::event(&chunk("x", &json!({"content": text})).to_string())
}

fn models_asked(house: &House) -> Vec<String> {
    house.up.requests().iter().map(|request| request.model.clone()).collect()
}

/// Model, backend, status and cause of every call.
fn calls(record: &RunRecord) -> Vec<(&str, &str, CallStatus, &str)> {
    let rows = record.calls.iter().map(|call| {
        let (backend, cause) = (call.backend.as_deref(), call.cause.as_deref());
        (call.model.as_str(), backend.unwrap_or_default(), call.status, cause.unwrap_or_default())
    });
    rows.collect()
}

#[tokio::test]
async fn c01_a_429_moves_on_and_leaves_the_backend_alone_for_a_while() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::error(429, "slow down"));
    house.up.on("spare", Script::reply("from the spare"));
    for _ in 0..2 {
        assert_eq!(house.chat(&ask("small", "x")).await.text(), "from the spare");
    }
    assert_eq!(models_asked(&house), ["small", "spare", "spare"]);
}

#[tokio::test]
async fn c01_a_400_goes_nowhere_else() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::error(400, "no"));
    assert_eq!(house.chat(&ask("small", "x")).await.status, 400);
    assert_eq!(models_asked(&house), ["small"]);
}

#[tokio::test]
async fn c03_a_routed_name_falls_back_by_the_model_that_was_chosen() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::error(503, "down"));
    house.up.on("spare", Script::reply("from the spare"));
    let answer = house.chat(&ask("vllm-sr/auto", "x")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "from the spare"));
    assert_eq!(answer.header("x-vsr-selected-model"), Some("spare"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(
        calls(&record),
        [
            ("small", "main", CallStatus::Failed, ""),
            ("spare", "main", CallStatus::Ok, "fallback from small: upstream_status 503"),
        ]
    );
    assert_eq!(record.models, ["small", "spare"]);
}

#[tokio::test]
async fn c04_the_list_of_statuses_is_law() {
    let house = House::open(HOUSE).await;
    house.up.on("spare", Script::reply("from the spare"));
    house.up.on("strict", Script::error(401, "no"));
    assert_eq!(house.chat(&ask("strict", "x")).await.text(), "from the spare");
    house.up.on("strict", Script::error(500, "no"));
    let answer = house.chat(&ask("strict", "x")).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (502, "upstream_failed"));
    assert_eq!(models_asked(&house), ["strict", "spare", "strict"]);
}

#[tokio::test]
async fn c05_a_second_turn_with_tool_results_is_retried_too() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::error(503, "down"));
    house.up.on("spare", Script::reply("9C"));
    let call = json!({"id": "c1", "type": "function", "function": {"name": "sky", "arguments": "{}"}});
    let messages = json!([
        {"role": "user", "content": "weather?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "8C"},
    ]);
    let answer = house.chat(&json!({"model": "vllm-sr/auto", "messages": messages})).await;
    assert_eq!(answer.text(), "9C");
    let sent: Value = serde_json::from_slice(&house.up.requests()[1].body).unwrap();
    assert_eq!(sent["messages"], messages);
}

#[tokio::test]
async fn c07_a_fallback_that_cannot_serve_the_request_is_not_called() {
    let house = House::open(HOUSE).await;
    house.up.on("blind", Script::error(503, "down"));
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
    let body = json!({"model": "blind", "messages": [{"role": "user", "content": [image]}]});
    assert_eq!(house.chat(&body).await.status, 502);
    assert_eq!(models_asked(&house), ["blind"]);
}

#[tokio::test]
async fn c08_streams_that_end_in_an_error_count_as_failures() {
    let house = House::open(HOUSE).await;
    house.up.on("brittle", Script::sse([piece("half"), error_event(), Step::event("[DONE]")]));
    house.up.on("spare", Script::reply("from the spare"));
    for _ in 0..3 {
        house.stream(&ask("brittle", "x")).await.told().await.broken();
    }
    let told = house.stream(&ask("brittle", "x")).await.told().await;
    assert_eq!(told.is_whole().text, "from the spare");
    assert_eq!(models_asked(&house), ["brittle", "brittle", "brittle", "spare"]);
}

#[tokio::test]
async fn c09_a_late_first_byte_falls_over_and_a_stall_is_an_error_event() {
    let house = House::open(HOUSE).await;
    house.up.on("slow", Script::raw([Step::Stall]));
    house.up.on("spare", Script::reply("in time"));
    assert_eq!(house.chat(&ask("slow", "x")).await.text(), "in time");
    assert_eq!(house.stream(&ask("slow", "x")).await.told().await.is_whole().text, "in time");
    house.up.on("stalls", Script::sse([piece("half"), Step::Stall]));
    let told = house.stream(&ask("stalls", "x")).await.told().await;
    assert_eq!((told.text.as_str(), told.broken().0.as_str()), ("half", "upstream_timeout"));
}

#[tokio::test]
async fn a12_an_error_in_band_before_output_falls_back() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::sse([error_event()]));
    house.up.on("spare", Script::reply("hello"));
    assert_eq!(house.stream(&ask("small", "x")).await.told().await.is_whole().text, "hello");
    assert_eq!(house.chat(&ask("small", "x")).await.text(), "hello");
}

#[tokio::test]
async fn a14_a_refusal_of_a_stream_falls_back_to_a_stream() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::error(429, "slow down"));
    house.up.on("spare", Script::stream(["hel", "lo"]));
    assert_eq!(house.stream(&ask("small", "x")).await.told().await.is_whole().text, "hello");
}

#[tokio::test]
async fn a15_nothing_is_tried_again_after_the_first_word() {
    let house = House::open(HOUSE).await;
    house.up.on("small", Script::sse([piece("one "), piece("two"), Step::Close]));
    house.up.on("spare", Script::reply("one two three"));
    let told = house.stream(&ask("small", "x")).await.told().await;
    assert_eq!(told.text, "one two");
    told.broken();
    assert_eq!(models_asked(&house), ["small"]);
}

#[tokio::test]
async fn b08_two_refusals_are_an_error_and_both_are_recorded() {
    let house = House::open(HOUSE).await;
    house.up.on("pair", Script::error(422, "content not allowed"));
    let answer = house.chat(&ask("pair", "x")).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (400, "upstream_rejected"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record).iter().filter(|call| call.2 == CallStatus::Failed).count(), 2);
}

#[tokio::test]
async fn a_failure_goes_on_to_another_backend_and_a_lone_one_is_not_repeated() {
    let house = House::open(HOUSE).await;
    let by_path = |request: &Received| {
        if request.path.contains("/a/") { Script::error(503, "down") } else { Script::reply("from b") }
    };
    house.up.on_with("pair", by_path);
    for _ in 0..4 {
        assert_eq!(house.chat(&ask("pair", "x")).await.text(), "from b");
    }
    house.up.on("lone", Script::error(503, "down"));
    let before = house.up.requests().len();
    assert_eq!(house.chat(&ask("lone", "x")).await.status, 502);
    assert_eq!(house.up.requests().len(), before + 1);
}

#[tokio::test]
async fn a_backend_s_own_limit_is_kept_on_our_side() {
    let house = House::open(HOUSE).await;
    house.up.on("paced", Script::reply("once"));
    assert_eq!(house.chat(&ask("paced", "x")).await.text(), "once");
    let answer = house.chat(&ask("paced", "x")).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (429, "upstream_rate_limited"));
    assert_eq!(models_asked(&house), ["paced"]);
}

#[tokio::test]
async fn a_slow_call_is_hedged_at_another_backend_and_both_are_in_the_record() {
    const WARM: usize = 20;
    let house = House::open(HOUSE).await;
    let seen = Arc::new(AtomicUsize::new(0));
    house.up.on_with("hedged", move |_| match seen.fetch_add(1, Ordering::Relaxed) {
        WARM => Script::raw([Step::Stall]),
        _ => Script::reply("quick"),
    });
    for _ in 0..WARM {
        house.chat(&ask("hedged", "x")).await;
    }
    let answer = house.chat(&ask("hedged", "x")).await;
    assert_eq!(answer.text(), "quick");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    let [slow, quick] = record.calls.as_slice() else { panic!("{:?}", record.calls) };
    assert_eq!((slow.status, quick.status), (CallStatus::Cancelled, CallStatus::Ok));
    assert_ne!(slow.backend, quick.backend);
    assert!(quick.cause.as_ref().is_some_and(|cause| cause.starts_with("hedge")), "{quick:?}");
    assert!(slow.usage.estimated && slow.usage.prompt_tokens > 0, "what nobody waited for is counted too");
}
