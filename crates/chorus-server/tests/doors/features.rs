//! The table of features and algorithms in docs/doors/README.md says what happens.

use crate::loopers::house_of;
use crate::support::{House, ask};
use chorus_testkit::{ChatAnswer, Script};
use serde_json::{Value, json};

const PAGE: &str = include_str!("../../../../docs/doors/README.md");

/// Each algorithm, with its column of the table.
const ALGORITHMS: [(usize, &str); 7] = [
    (1, "{ type: static }"),
    (2, "{ type: fusion, fusion: { model: judge, analysis_models: [a, b, c], on_error: skip } }"),
    (2, "{ type: remom, remom: { breadth_schedule: [3], model_distribution: equal, synthesis_model: a } }"),
    (3, "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }], final: { model: b } } }"),
    (4, "{ type: ratings, ratings: { raters: peers, aggregate: best } }"),
    (4, "{ type: poll, poll: { alternatives: 3 } }"),
    (5, "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.1 } }"),
];

/// The cells of the row that begins so.
fn row(feature: &str) -> Vec<String> {
    let line = PAGE.lines().find(|line| line.starts_with(&format!("| {feature}")));
    let line = line.unwrap_or_else(|| panic!("the page has no row for {feature}"));
    line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
}

async fn house(algorithm: &str) -> House {
    let house = House::open(&house_of(algorithm)).await;
    for model in ["a", "b", "c", "judge"] {
        let answer = ChatAnswer::text("A clear view").logprobs([("A clear view", -0.01)]).usage(10, 5);
        house.up.on(model, Script::chat(answer));
    }
    house
}

fn with(field: &str, value: Value) -> Value {
    let mut request = ask("vllm-sr/auto", "think deeply");
    request[field] = value;
    request
}

#[tokio::test]
async fn every_algorithm_takes_what_the_page_of_doors_says() {
    let tool = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let schema = json!({"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "object"}}});
    for (column, algorithm) in ALGORITHMS {
        let says = |feature: &str| row(feature)[column].clone();
        let house = house(algorithm).await;
        let whole = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
        assert_eq!((whole.status, says("an answer in one piece").as_str()), (200, "yes"), "{algorithm}");

        let told = house.stream(&with("stream_options", json!({"include_usage": true}))).await.told().await;
        assert!(told.is_whole().usage.is_some(), "{algorithm}: {}", says("`stream_options"));

        for (field, value) in [("n", json!(2)), ("audio", json!({"voice": "x", "format": "wav"}))] {
            let status = house.chat(&with(field, value)).await.status;
            assert_eq!(
                says("`n` above 1").starts_with("400"),
                status == 400,
                "{algorithm} {field}: {status}"
            );
        }

        let before = house.up.requests().len();
        assert_eq!(house.chat(&with("tools", tool.clone())).await.status, 200, "{algorithm}");
        let shown = house.up.requests().iter().skip(before).any(|call| call.json().get("tools").is_some());
        assert_eq!(says("`tools`").starts_with("nobody"), !shown, "{algorithm}: tools");

        let formed = house.chat(&with("response_format", schema.clone())).await;
        let held = formed.status == 502 && formed.error().0 == "output_invalid";
        assert_eq!(says("`response_format`") == "held to", held, "{algorithm}: {}", formed.json());
    }
}
