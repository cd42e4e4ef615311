//! What backends do oddly in streams and log-probabilities, seen through loopers (section A of the cases).

use crate::fusion::{ANALYSIS, is_judgement, seat};
use crate::loopers::house_of;
use crate::support::{HOUSE, House, ask};
use chorus_testkit::{ChatAnswer, Received, Script, Step};
use serde_json::{Value, json};

const CASCADE: &str = "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }";

#[tokio::test]
async fn a07_every_token_counts_for_the_confidence_of_an_answer() {
    let house = House::open(&house_of(CASCADE)).await;
    let tokens = [("A", -0.1), ("B", -2.3), ("C", -0.2), ("D", -0.4)];
    house.up.on("a", Script::chat(ChatAnswer::text("ABCD").logprobs(tokens)));
    for model in ["b", "c"] {
        house.up.on(model, Script::reply("another"));
    }
    let attempts =
        house.chat(&ask("vllm-sr/auto", "think deeply")).await.json()["confidence"]["attempts"].clone();
    // The mean is −0.75, and the scale falls from 1 to 0 over three nats.
    let confidence = attempts[0]["confidence"].as_f64().unwrap();
    assert!((confidence - 0.75).abs() < 1e-9, "{attempts}");
}

#[tokio::test]
async fn a08_an_answer_without_log_probabilities_is_no_evidence() {
    let house = House::open(&house_of(CASCADE)).await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::reply(&format!("the view of {model}")));
    }
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "the view of c", "the last one answers, because nobody could be trusted");
    let attempts = answer.json()["confidence"]["attempts"].clone();
    assert!(attempts[0].get("confidence").is_none() && attempts[0]["accepted"] == false, "{attempts}");
    assert!(attempts[0]["no_evidence"].as_str().unwrap().contains("no log-probabilities"), "{attempts}");
}

/// A stream whose letters are cut anywhere, with reports around them and no id of its own.
fn odd_stream(text: &str) -> Script {
    let chunk = json!({"choices": [{"index": 0, "delta": {"content": text}}]});
    let mut bytes = String::new();
    for event in [
        json!({"id": "", "choices": [], "prompt_filter_results": []}),
        json!({"choices": [{"index": 0, "finish_reason": null, "content_filter_results": {}}]}),
        chunk,
        json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}),
    ] {
        bytes.push_str(&format!("data: {event}\n\n"));
    }
    bytes.push_str("data: [DONE]\n\n");
    Script::sse(bytes.into_bytes().into_iter().map(|byte| Step::write(vec![byte])))
}

#[tokio::test]
async fn a09_a11_a21_an_odd_stream_is_one_stream_through_a_panel_and_a_cascade() {
    const TEXT: &str = "źdźbło 🦦 海";
    let panel = House::open(HOUSE).await;
    seat(&panel);
    panel.up.on_with(
        "judge",
        |request: &Received| {
            if is_judgement(request) { Script::reply(ANALYSIS) } else { odd_stream(TEXT) }
        },
    );
    let cascade = House::open(&house_of(CASCADE)).await;
    for model in ["a", "b"] {
        cascade.up.on(model, Script::chat(ChatAnswer::text("unsure").logprobs([("unsure", -2.5)])));
    }
    cascade.up.on_with("c", |_: &Received| odd_stream(TEXT));
    for house in [panel, cascade] {
        let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
        assert_eq!(told.is_whole().text, TEXT);
        let ids: std::collections::BTreeSet<&str> =
            told.chunks.iter().map(|chunk| chunk["id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), 1, "one id for the whole stream");
        let roles: Vec<&Value> =
            told.chunks.iter().filter_map(|chunk| chunk.pointer("/choices/0/delta/role")).collect();
        assert_eq!(roles, ["assistant"], "one role");
    }
}
