//! The classifiers over HTTP.

use crate::house::{House, WordBag, policy};
use chorus_testkit::Script;
use serde_json::{Value, json};
use std::sync::Arc;

/// The answer without the time that it took.
fn timeless(mut answer: Value) -> Value {
    match &mut answer {
        Value::Object(fields) => {
            fields.remove("processing_time_ms");
            fields.values_mut().for_each(|value| *value = timeless(value.take()));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = timeless(item.take())),
        _ => {}
    }
    answer
}

#[tokio::test]
async fn d01_a_classified_request_and_a_routed_one_agree() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(|_| Script::reply("ok"));
    for text in ["hello there", "good night", "No!", "It is 1e3.", ""] {
        let intent = house.post("/api/v1/classify/intent", &json!({"text": text})).await.json();
        let eval = house.post("/api/v1/eval", &json!({"text": text})).await.json();
        let live = house.chat(text).await;
        assert_eq!(intent["routing_decision"], eval["routing_decision"], "{text}");
        assert_eq!(intent["recommended_model"], eval["selected_model"], "{text}");
        assert_eq!(intent["matched_signals"], eval["decision_result"]["matched_signals"], "{text}");
        let decision = live.headers.get("x-vsr-selected-decision").map(|v| v.to_str().unwrap());
        assert_eq!(intent["routing_decision"].as_str().filter(|d| !d.is_empty()), decision, "{text}");
    }
    let intent = house.post("/api/v1/classify/intent", &json!({"text": "hello"})).await.json();
    assert_eq!(intent["decision_result"]["matched_rules"], json!(["keyword:greeting"]));
}

#[tokio::test]
async fn d02_a_batch_says_of_each_text_what_the_single_call_says() {
    let house = House::open(&policy("gen-1")).await;
    let long = "hello 7*8 ".repeat(2000);
    let texts = ["7*8?", "", "mail bob@example.com", "7*8?", long.as_str(), "hello"];
    for (task, single, list) in [("intent", "intent", "intent_results"), ("pii", "pii", "pii_results")] {
        let body = json!({"texts": texts, "task_type": task});
        let batch = house.post("/api/v1/classify/batch", &body).await.json();
        assert_eq!(batch["total_texts"], texts.len());
        for (place, text) in texts.iter().enumerate() {
            let alone =
                house.post(&format!("/api/v1/classify/{single}"), &json!({"text": text})).await.json();
            assert_eq!(timeless(batch[list][place].clone()), timeless(alone), "{task} {place}");
        }
    }
    let none = house.post("/api/v1/classify/batch", &json!({"texts": []})).await;
    assert_eq!(none.refused(), (400, "invalid_request".to_owned()));
    let many = house.post("/api/v1/classify/batch", &json!({"texts": vec!["x"; 101]})).await;
    assert!(many.json()["error"]["message"].as_str().unwrap().contains("max_texts"));
}

#[tokio::test]
async fn personal_data_is_found_at_its_place_and_shown_only_when_asked() {
    let house = House::open(&policy("gen-1")).await;
    let text = "Grüße! Write to bob.miller@example.com please.";
    let bare = house.post("/api/v1/classify/pii", &json!({"text": text})).await;
    let body = bare.json();
    assert_eq!((&body["has_pii"], &body["security_recommendation"]), (&json!(true), &json!("block")));
    assert_eq!(body["entities"][0]["type"], "EMAIL_ADDRESS");
    assert!(!String::from_utf8_lossy(&bare.body).contains("bob.miller"));
    let options = json!({"return_positions": true, "mask_entities": true, "reveal_entity_text": true});
    let all = house.post("/api/v1/classify/pii", &json!({"text": text, "options": options})).await.json();
    assert_eq!(all["entities"][0]["value"], "bob.miller@example.com");
    assert_eq!(
        (&all["entities"][0]["start_position"], &all["entities"][0]["end_position"]),
        (&json!(16), &json!(38))
    );
    assert!(!all["masked_text"].as_str().unwrap().contains("bob.miller"), "{all}");
    let other = json!({"text": text, "options": {"entity_types": ["US_SSN"]}});
    assert_eq!(house.post("/api/v1/classify/pii", &other).await.json()["has_pii"], false);
}

/// One of each kind that is most often reported to slip through.
const KINDS: [(&str, &str); 5] = [
    ("EMAIL_ADDRESS", "write to bob.miller@example.com"),
    ("PHONE_NUMBER", "call me on +1-415-555-0134"),
    ("CREDIT_CARD", "the card is 4111 1111 1111 1111"),
    ("IBAN_CODE", "pay to DE02 1203 0000 0000 2020 51"),
    ("IP_ADDRESS", "my address is 203.0.113.77, the ip of this host"),
];

#[tokio::test]
async fn e05_what_the_check_finds_the_request_path_enforces() {
    let guarded = policy("gen-1")
        .replace("  decisions:\n", "    pii: [{ name: personal, threshold: 0.6 }]\n  decisions:\n    - { name: guard, priority: 90, rules: { type: pii, name: personal }, modelRefs: [], plugins: [{ type: fast_response, configuration: { message: withheld } }] }\n");
    let house = House::open(&guarded).await;
    house.up.otherwise(|_| Script::reply("sent"));
    for (kind, text) in KINDS {
        let check = house.post("/api/v1/classify/pii", &json!({"text": text})).await.json();
        let kinds: Vec<&str> =
            check["entities"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
        assert!(kinds.contains(&kind), "{text}: {check}");
        assert_eq!(house.chat(text).await.text(), "withheld", "{text}");
    }
    assert_eq!(house.chat("good night").await.text(), "sent");
    assert_eq!(house.up.requests().len(), 1);
}

#[tokio::test]
async fn b12_an_unknown_option_is_refused() {
    let house = House::open(&policy("gen-1")).await;
    for (path, body) in [
        ("pii", json!({"text": "x", "option": {}})),
        ("pii", json!({"text": "x", "options": {"reveal": true}})),
        ("security", json!({"text": "x", "options": {"sensitivity": "high"}})),
        ("security", json!({"text": "x", "options": {"detection_types": ["poetry"]}})),
        ("fact-check", json!({"texts": ["x"]})),
    ] {
        let answer = house.post(&format!("/api/v1/classify/{path}"), &body).await;
        assert_eq!(answer.refused(), (400, "invalid_request".to_owned()), "{path} {body}");
    }
}

#[tokio::test]
async fn without_an_encoder_nothing_is_made_up() {
    let house = House::open(&policy("gen-1")).await;
    let texts = json!({"texts": ["x"]});
    assert_eq!(house.post("/api/v1/embeddings", &texts).await.refused(), (503, "not_loaded".to_owned()));
    assert_eq!(house.get("/api/v1/embeddings/models").await.json(), json!({"models": []}));
    let intent = house.post("/api/v1/classify/intent", &json!({"text": "x"})).await.json();
    assert_eq!(intent["classification"]["category"], "");
    assert!(intent["signal_errors"]["domain:*"].as_str().unwrap().contains("encoder"), "{intent}");
    for path in ["fact-check", "user-feedback"] {
        let answer = house.post(&format!("/api/v1/classify/{path}"), &json!({"text": "x"})).await;
        assert!(matches!(answer.status, 501 | 503), "{path}: {:?}", answer.body);
    }
}

#[tokio::test]
async fn entailment_is_judged_by_rules_and_says_so() {
    let house = House::open(&policy("gen-1")).await;
    let premise = "The bridge was opened in 1932. It may be closed on Sunday.";
    for (hypothesis, label, reason) in [
        ("The bridge was opened in 1932.", "entailment", "the text says so"),
        ("The bridge was opened in 1950.", "contradiction", "another number"),
        ("The bridge is closed on Sunday.", "neutral", "the text only supposes it"),
        ("Penguins eat fish.", "neutral", "it says more than the text"),
        ("", "neutral", "nothing stated"),
    ] {
        let pair = json!({"premise": premise, "hypothesis": hypothesis});
        let said = house.post("/api/v1/nli", &pair).await.json();
        assert_eq!((&said["label"], &said["reason"]), (&json!(label), &json!(reason)), "{hypothesis}");
        assert_eq!((&said["method"], &said["model_used"]), (&json!("rules"), &json!(null)));
        assert!((0.0..=1.0).contains(&said["confidence"].as_f64().unwrap()), "{said}");
    }
    let long = json!({"premise": "x".repeat(16 * 1024 + 1), "hypothesis": "y"});
    assert_eq!(house.post("/api/v1/nli", &long).await.refused(), (400, "invalid_request".to_owned()));
    let other = json!({"premise": "x", "hypothesis": "y", "model": "bart"});
    assert_eq!(house.post("/api/v1/nli", &other).await.refused(), (400, "invalid_request".to_owned()));
}

#[tokio::test]
async fn vectors_are_the_encoders_own() {
    let house = House::with_encoder(&policy("gen-1"), Some(Arc::new(WordBag))).await;
    let models = house.get("/api/v1/embeddings/models").await.json();
    assert_eq!(
        (&models["models"][0]["name"], &models["models"][0]["dimension"]),
        (&json!("sha256:words"), &json!(64))
    );
    let vectors =
        house.post("/api/v1/embeddings", &json!({"texts": ["a b", "c"], "model": "auto"})).await.json();
    assert_eq!(vectors["total_count"], 2);
    assert_eq!(vectors["embeddings"][1]["embedding"].as_array().unwrap().len(), 64);
    let alike = json!({"text1": "red fox", "text2": "red fox"});
    let alike = house.post("/api/v1/similarity", &alike).await.json()["similarity"].as_f64().unwrap();
    assert!((alike - 1.0).abs() < 1e-6, "{alike}");
    let body = json!({"query": "red fox", "candidates": ["blue whale", "red fox", "red whale"], "top_k": 2});
    let nearest = house.post("/api/v1/similarity/batch", &body).await.json();
    let places: Vec<u64> =
        nearest["matches"].as_array().unwrap().iter().map(|m| m["index"].as_u64().unwrap()).collect();
    assert_eq!((places, &nearest["total_candidates"]), (vec![1, 2], &json!(3)));
    let other = house.post("/api/v1/embeddings", &json!({"texts": ["x"], "model": "qwen3"})).await;
    assert_eq!(other.refused(), (404, "model_not_found".to_owned()));
}

#[tokio::test]
async fn what_is_loaded_is_told() {
    let house = House::with_encoder(&policy("gen-1"), Some(Arc::new(WordBag))).await;
    let models = house.get("/info/models").await.json();
    assert_eq!(
        (&models["encoder"]["digest"], &models["models"]),
        (&json!("sha256:words"), &json!(["small"]))
    );
    let classifier = house.get("/info/classifier").await.json();
    assert!(classifier["families"].as_array().unwrap().iter().any(|f| f["family"] == "keyword"));
    assert_eq!(classifier["thresholds"]["pii"], 0.9);
}
