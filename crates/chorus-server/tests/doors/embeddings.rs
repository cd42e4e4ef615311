//! `/v1/embeddings` and the list of models, as a client sees them.

use crate::support::{HOUSE, House, Setup};
use chorus_infer::{EncodeFault, TextEncoder};
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
