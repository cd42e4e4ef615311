//! Who can serve a request at all is settled before anything is ranked; and what stays steady whoever answers.

use crate::support::{HOUSE, House, Setup, ask, user};
use chorus_testkit::{Script, Step};
use serde_json::{Value, json};

const WINDOWS: &str = r#"
version: v0.3
providers:
  models:
    - { name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: big, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: shaped, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: gone, backend_refs: [{ name: main, base_url: "http://127.0.0.1:1/v1" }] }
routing:
  modelCards:
    - { name: small, context_window_size: 2048 }
    - { name: big, context_window_size: 32768 }
    - { name: shaped, context_window_size: 2048, capabilities: [json_schema] }
    - { name: gone, context_window_size: 2048 }
  signals:
    keywords: [{ name: form, keywords: [form] }]
    domains: [{ name: law, mmlu_categories: [law] }]
  decisions:
    - name: forms
      priority: 20
      rules: { type: keyword, name: form }
      modelRefs: [{ model: small }, { model: shaped }]
    - name: lawful
      priority: 15
      rules: { type: domain, name: law }
      modelRefs: [{ model: big }]
    - name: rest
      priority: 10
      modelRefs: [{ model: small }, { model: big }]
"#;

fn models_asked(house: &House) -> Vec<String> {
    house.up.requests().iter().map(|request| request.model.clone()).collect()
}

#[tokio::test]
async fn b05_a_schema_goes_to_the_candidate_that_keeps_to_one() {
    let house = House::open(WINDOWS).await;
    let mut request = ask("vllm-sr/auto", "fill the form");
    request["response_format"] = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {}}});
    assert_eq!(house.chat(&request).await.status, 200);
    assert_eq!(models_asked(&house), ["shaped"]);
}

#[tokio::test]
async fn c06_a_long_chat_goes_to_the_first_window_that_holds_it() {
    let house = House::open(WINDOWS).await;
    let chat = |tokens: usize| {
        let history = "word ".repeat(tokens * 4 / 5);
        let last = user("ok, continue");
        json!({"model": "vllm-sr/auto", "messages": [user(&history), {"role": "assistant", "content": "yes"}, last]})
    };
    assert_eq!(house.chat(&chat(6000)).await.status, 200);
    assert_eq!(models_asked(&house), ["big"]);
    let answer = house.chat(&chat(40_000)).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (400, "context_length_exceeded"));
    assert_eq!(models_asked(&house).len(), 1, "no call");
}

#[tokio::test]
async fn c14_a_process_is_ready_whatever_its_backends_do_and_metrics_show_them() {
    let house = House::open(WINDOWS).await;
    for _ in 0..6 {
        assert_eq!(house.chat(&ask("gone", "x")).await.status, 502);
    }
    assert_eq!(house.get("/ready").await.status, 200);
    let page = house.managed("/metrics", None).await;
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(text.contains("chorus_backend_breaker{model=\"gone\",backend=\"main\"} 2"), "{text}");
}

#[tokio::test]
async fn i07_a_signal_that_could_not_be_had_is_counted() {
    let house = House::open(WINDOWS).await;
    let answer = house.chat(&ask("vllm-sr/auto", "hello there")).await;
    assert_eq!(answer.status, 200);
    house.record(answer.header("x-vsr-replay-id")).await;
    let page = house.managed("/metrics", None).await;
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(text.contains("chorus_signals_absent_total{name=\"domain\"} 1"), "{text}");
}

#[tokio::test]
async fn a21_one_id_and_one_role_for_a_stream_that_has_neither() {
    let house = House::open(HOUSE).await;
    let bare =
        |text: &str| Step::event(&json!({"choices": [{"index": 0, "delta": {"content": text}}]}).to_string());
    let stop =
        Step::event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string());
    house.up.on("spare", Script::sse([bare("a"), bare("b"), bare("c"), stop, Step::event("[DONE]")]));
    let told = house.stream(&ask("spare", "x")).await.told().await;
    told.is_whole();
    let field = |name: &str| {
        let mut all: Vec<Value> = told.chunks.iter().map(|chunk| chunk[name].clone()).collect();
        all.dedup();
        all
    };
    assert_eq!((field("id").len(), field("created").len(), field("model").len()), (1, 1, 1));
    assert!(field("id")[0].as_str().is_some_and(|id| id.starts_with("chatcmpl-")));
    let roles = told.chunks.iter().filter(|chunk| chunk["choices"][0]["delta"]["role"] == "assistant");
    assert_eq!(roles.count(), 1);
}

#[tokio::test]
async fn b10_stop_reaches_whoever_writes_the_answer_and_not_the_judge() {
    let house = House::open(HOUSE).await;
    let mut request = ask("vllm-sr/fusion", "think deeply");
    request["stop"] = json!(["END7"]);
    assert_eq!(house.chat(&request).await.status, 200);
    let requests = house.up.requests();
    let last = requests.last().unwrap().json();
    assert_eq!(last["stop"], json!(["END7"]), "the synthesis");
    let judge = requests.iter().find(|request| request.json().get("response_format").is_some());
    assert!(judge.is_none_or(|judge| judge.json().get("stop").is_none()));
    assert_eq!(
        house.chat(&json!({"model": "spare", "messages": [user("x")], "stop": ["END7"]})).await.status,
        200
    );
    assert_eq!(house.up.requests().last().unwrap().json()["stop"], json!(["END7"]), "direct");
}

#[tokio::test]
async fn b18_the_same_request_is_the_same_bytes_upstream() {
    let house = Setup::of(HOUSE).open().await;
    let tools: Vec<Value> = (0..12)
        .map(|n| json!({"type": "function", "function": {"name": format!("tool-{}", (n * 7) % 12), "parameters": {"z": 1, "a": 2}}}))
        .collect();
    let request = json!({"model": "spare", "messages": [user("x")], "tools": tools});
    for _ in 0..20 {
        house.chat(&request).await;
    }
    let mut bodies: Vec<_> = house.up.requests().into_iter().map(|request| request.body).collect();
    bodies.dedup();
    assert_eq!(bodies.len(), 1);
}
