//! `/v1/embeddings` and the list of models, as a client sees them.

use crate::support::{HOUSE, House, Setup};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_store::RunStatus;
use chorus_testkit::{Script, Step};
use serde_json::{Value, json};
use std::sync::Arc;

const DOOR: &str = "/v1/embeddings";

/// A vector that tells the text's length and nothing else.
struct Lengths;

impl TextEncoder for Lengths {
    fn digest(&self) -> &str {
        "sha256:lengths"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let unit = |text: &&str| {
            let (x, length) = (text.len() as f32, (1.0 + (text.len() as f32).powi(2)).sqrt());
            vec![x / length, 1.0 / length]
        };
        Ok(texts.iter().map(unit).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

async fn house() -> House {
    let mut setup = Setup::of(HOUSE);
    setup.encoder = Some(Arc::new(Lengths));
    setup.open().await
}

#[tokio::test]
async fn vectors_come_as_numbers_or_as_bytes() {
    let house = house().await;
    for model in ["chorus/encoder", "sha256:lengths"] {
        let body = json!({"model": model, "input": ["a b", "c"], "dimensions": 2});
        let answer = house.post(DOOR, body.to_string()).await;
        assert_eq!(answer.status, 200);
        let told = answer.json();
        let first = &told["data"][0];
        assert_eq!((&first["object"], &first["index"]), (&json!("embedding"), &json!(0)));
        assert_eq!(first["embedding"].as_array().unwrap().len(), 2);
        assert_eq!(told["usage"], json!({"prompt_tokens": 3, "total_tokens": 3}));
    }
    let body = json!({"model": "chorus/encoder", "input": "a", "encoding_format": "base64"});
    let told = house.post(DOOR, body.to_string()).await.json();
    assert_eq!(told["data"][0]["embedding"].as_str().map(str::len), Some(12), "two floats are eight bytes");
}

#[tokio::test]
async fn b12_what_the_encoder_cannot_do_is_refused() {
    let house = house().await;
    for (body, status, param) in [
        (json!({"model": "chorus/encoder", "input": "a", "dimensions": 1}), 400, "dimensions"),
        (json!({"model": "chorus/encoder", "input": [1, 2]}), 400, "input"),
        (json!({"model": "chorus/encoder", "input": []}), 400, "input"),
        (json!({"model": "small", "input": "a"}), 400, "model"),
        (json!({"model": "nobody", "input": "a"}), 404, "model"),
    ] {
        let answer = house.post(DOOR, body.to_string()).await;
        assert_eq!(
            (answer.status, answer.json()["error"]["param"].as_str()),
            (status, Some(param)),
            "{body}"
        );
    }
    assert_eq!(house.post(DOOR, r#"{"input":"a"}"#).await.status, 400);
    let bare = House::open(HOUSE).await;
    let answer = bare.post(DOOR, r#"{"model":"chorus/encoder","input":"a"}"#).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (503, "not_loaded"));
}

/// A model that gives vectors behind a backend, one that does not, and a limit on callers.
const VECTORS: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - name: embedder
      provider_model_id: org/embedder-3
      pricing: { currency: USD, prompt_per_1m: 2.0, completion_per_1m: 8.0 }
      reliability: { retry_count: 1, retry_on: 5xx, fallback: [small] }
      backend_refs: [{ name: main, base_url: "${UP}" }]
routing:
  modelCards: [{ name: small }, { name: embedder, capabilities: [embeddings] }]
global:
  services:
    ratelimit:
      providers: [{ type: local-limiter, rules: [{ name: three, match: { model: embedder }, requests_per_unit: 3, unit: day }] }]
"#;

fn vectors(written: &str) -> Script {
    let body = format!(
        r#"{{"object":"list","data":[{{"object":"embedding","index":0,"embedding":{written}}}],"model":"org/embedder-3","usage":{{"prompt_tokens":5,"total_tokens":5}},"own":1.50}}"#
    );
    Script::body(200, "application/json", [Step::write(body)])
}

#[tokio::test]
async fn a_model_behind_a_backend_gives_its_vectors_with_record_and_cost() {
    let house = House::open(VECTORS).await;
    house.up.on_each("org/embedder-3", [vectors("[0.50,-1.0]"), vectors("[0.5,-1.0]")]);
    let body = r#"{"model":"embedder","input":"a boat","dimensions":2,"later":[1]}"#;
    let answer = house.post(DOOR, body).await;
    assert_eq!(answer.status, 200);
    let text = String::from_utf8(answer.body.to_vec()).unwrap();
    assert!(
        text.contains("[0.50,-1.0]") && text.contains(r#""own":1.50"#),
        "as the backend wrote it: {text}"
    );
    assert_eq!(answer.json()["model"], "embedder");
    let sent = house.up.requests_for("org/embedder-3");
    assert!(sent[0].path.ends_with("/embeddings"), "{}", sent[0].path);
    assert_eq!(
        sent[0].json(),
        json!({"model": "org/embedder-3", "input": "a boat", "dimensions": 2, "later": [1]})
    );
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!((record.path.as_deref(), record.status), (Some("embeddings"), RunStatus::Ok));
    assert_eq!((record.usage.total_tokens, record.cost_micro_usd), (5, 10));
    assert_eq!((record.calls[0].role.as_str(), record.calls[0].model.as_str()), ("vectors", "embedder"));
    let body = r#"{"model":"embedder","input":[[7,8]],"encoding_format":"base64"}"#;
    let told = house.post(DOOR, body).await.json();
    assert_eq!(told["data"][0]["embedding"], "AAAAPwAAgL8=", "in the way that was asked for");
}

#[tokio::test]
async fn vectors_that_cannot_be_had_are_told_in_the_shape_of_errors_and_recorded() {
    let house = House::open(VECTORS).await;
    let broken = || Script::error(500, "no");
    house.up.on_each("org/embedder-3", [broken(), broken(), vectors("[0.5]"), vectors("[0.5]")]);
    let ask = json!({"model": "embedder", "input": "a", "dimensions": 2}).to_string();
    let answer = house.post(DOOR, ask.clone()).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (502, "upstream_failed"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!((record.calls.len(), record.status), (2, RunStatus::Failed));
    assert!(house.up.requests_for("small").is_empty(), "no other model's vectors");
    let answer = house.post(DOOR, ask.clone()).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (502, "upstream_failed"), "of another length");
    assert_eq!(house.post(DOOR, json!({"model": "embedder", "input": []}).to_string()).await.status, 400);
    assert_eq!(house.post(DOOR, json!({"model": "small", "input": "a"}).to_string()).await.status, 400);
    house.post(DOOR, ask.clone()).await;
    assert_eq!(house.post(DOOR, ask).await.status, 429, "limits on callers count here too");
}

#[tokio::test]
async fn b19_a_window_is_what_a_request_can_rely_on() {
    let house = House::open(HOUSE).await;
    let list = house.get("/v1/models").await.json();
    let window = |name: &str| {
        let card = list["data"].as_array().unwrap().iter().find(|card| card["id"] == name);
        card.unwrap_or_else(|| panic!("no {name} in {list}"))["context_window"].clone()
    };
    assert_eq!(window("vllm-sr/auto"), 32768);
    let one = house.get("/v1/models/judge").await.json();
    assert_eq!((&one["id"], &one["context_window"]), (&json!("judge"), &json!(65536)));
    assert_eq!(house.get("/v1/models/nobody").await.status, 404);
    let sum: Vec<Value> = list["data"].as_array().unwrap().clone();
    assert!(sum.iter().all(|card| card["object"] == "model"));
}
