//! Selectors from end to end: who is called, what the record and the evaluation say of why.

use crate::support::{House, ask};
use chorus_testkit::{ChatAnswer, Received, Script};
use serde_json::{Value, json};

/// A route over three models of different price and quality, chosen by that algorithm.
fn route_by(algorithm: &str) -> String {
    format!(
        r#"
version: v0.3
providers:
  models:
    - {{ name: large, pricing: {{ prompt_per_1m: 10, completion_per_1m: 30 }}, backend_refs: [{{ base_url: "${{UP}}" }}] }}
    - {{ name: middle, pricing: {{ prompt_per_1m: 1, completion_per_1m: 3 }}, backend_refs: [{{ base_url: "${{UP}}" }}] }}
    - {{ name: small, pricing: {{ prompt_per_1m: 0.1, completion_per_1m: 0.3 }}, backend_refs: [{{ base_url: "${{UP}}" }}] }}
routing:
  modelCards:
    - {{ name: large, quality_score: 0.9, context_window_size: 32768 }}
    - {{ name: middle, quality_score: 0.8, context_window_size: 32768, capabilities: [vision] }}
    - {{ name: small, quality_score: 0.4, context_window_size: 2048 }}
  decisions:
    - name: all
      modelRefs: [{{ model: large }}, {{ model: middle }}, {{ model: small }}]
      algorithm: {algorithm}
"#
    )
}

/// Everybody says who they are.
fn seat(house: &House) {
    for model in ["large", "middle", "small"] {
        house.up.on_with(model, move |_: &Received| Script::chat(ChatAnswer::text(model).usage(10, 5)));
    }
}

async fn selected(algorithm: &str) -> (String, Value) {
    let house = House::open(&route_by(algorithm)).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "a question")).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(answer.header("x-vsr-selected-model"), Some(answer.text().as_str()));
    (answer.text(), record.traces["selection"].clone())
}

#[tokio::test]
async fn each_selector_picks_by_its_own_measure_and_the_record_says_why() {
    let cases = [
        ("{ type: static }", "large", "the first candidate"),
        ("{ type: automix }", "middle", "value of quality, price"),
        ("{ type: multi_factor, multi_factor: { weights: { quality: 1 } } }", "large", "the best of quality"),
        ("{ type: multi_factor, multi_factor: { weights: { cost: 1 } } }", "small", "the best of quality"),
        ("{ type: latency_aware }", "large", "nothing has been measured"),
        ("{ type: hybrid }", "middle", "experience, nearness"),
        ("{ type: thompson }", "large", "nothing is explored"),
        ("{ type: router_dc }", "large", "no encoder"),
        ("{ type: knn }", "large", "names no artifact"),
    ];
    for (algorithm, model, reason) in cases {
        let (answered, trace) = selected(algorithm).await;
        assert_eq!(answered, model, "{algorithm}: {trace}");
        assert_eq!(trace["selected"], model);
        assert!(trace["reason"].as_str().unwrap().contains(reason), "{algorithm}: {trace}");
        assert_eq!(trace["scores"].as_array().unwrap().len(), 3);
    }
}

#[tokio::test]
async fn d18_a_selector_that_may_not_choose_refuses_and_says_so() {
    for algorithm in [
        "{ type: multi_factor, multi_factor: { slo: { max_cost_per_1m: 0.01 }, on_no_candidates: fail } }",
        "{ type: knn, on_error: fail }",
    ] {
        let house = House::open(&route_by(algorithm)).await;
        let answer = house.chat(&ask("vllm-sr/auto", "a question")).await;
        assert!((400..600).contains(&answer.status), "{}", answer.status);
        assert!(answer.error().1.contains("picks nobody"), "{:?}", answer.error());
        assert!(house.up.requests().is_empty(), "nobody was called");
    }
}

#[tokio::test]
async fn c07_exploration_never_reaches_a_model_that_cannot_serve_the_request() {
    let house = House::open(&route_by("{ type: thompson, thompson: { explore: true } }")).await;
    seat(&house);
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let body = json!({"model": "vllm-sr/auto", "messages": [
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}, image]}]});
    for _ in 0..20 {
        assert_eq!(house.chat(&body).await.text(), "middle", "only it takes images");
    }
    let mut picked = std::collections::BTreeSet::new();
    for _ in 0..40 {
        let answer = house.chat(&ask("vllm-sr/auto", "a question")).await;
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        let trace = &record.traces["selection"];
        assert!(trace["propensity"].as_f64().unwrap() > 0.0 && trace["seed"].is_u64(), "{trace}");
        picked.insert(answer.text());
    }
    assert!(picked.len() > 1, "draws differ: {picked:?}");
}

#[tokio::test]
async fn d24_an_evaluation_counts_nothing_and_draws_with_a_fixed_seed() {
    let house = House::open(&route_by("{ type: latency_aware }")).await;
    seat(&house);
    let evaluate = || house.post("/api/v1/eval", r#"{"text": "a question"}"#);
    for _ in 0..10 {
        let told = evaluate().await.json();
        assert_eq!(told["selected_model"], "large");
        assert!(
            told["selection"]["reason"].as_str().unwrap().contains("nothing has been measured"),
            "{told}"
        );
    }
    let first = house.chat(&ask("vllm-sr/auto", "a question")).await;
    house.record(first.header("x-vsr-replay-id")).await;
    // One live call is known now, so that the next newcomer is measured; evaluations measured nobody.
    assert_eq!(evaluate().await.json()["selected_model"], "middle");
    assert!(house.up.requests().len() == 1);
}

#[tokio::test]
async fn a_model_is_asked_whom_to_pick_and_its_call_is_counted() {
    let house =
        House::open(&route_by("{ type: prompt, prompt: { model: small, instructions: Be thrifty. } }")).await;
    seat(&house);
    house.up.on_with("small", |request: &Received| {
        assert!(
            request.last_user_text().contains("Be thrifty.")
                && request.last_user_text().contains("a question")
        );
        Script::chat(
            ChatAnswer::text(r#"{"selected_model": "middle", "rationale": "good enough"}"#).usage(50, 10),
        )
    });
    let told = house.post("/api/v1/eval", r#"{"text": "a question"}"#).await.json();
    assert_eq!((&told["selection_status"], told.get("selected_model")), (&json!("execution_required"), None));
    let answer = house.chat(&ask("vllm-sr/auto", "a question")).await;
    assert_eq!(answer.text(), "middle");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.traces["selection"]["reason"], "good enough");
    let calls: Vec<(&str, &str)> =
        record.calls.iter().map(|it| (it.model.as_str(), it.role.as_str())).collect();
    assert_eq!(calls, [("small", "signal"), ("middle", "direct")]);
    assert_eq!(record.usage.total_tokens, 75, "both calls are counted");
}

#[tokio::test]
async fn a_reply_that_is_not_what_was_asked_for_picks_nobody() {
    let house = House::open(&route_by("{ type: prompt, prompt: { model: small } }")).await;
    seat(&house);
    house.up.on_with("small", |_: &Received| Script::chat(ChatAnswer::text("large, of course")));
    let answer = house.chat(&ask("vllm-sr/auto", "a question")).await;
    assert_eq!(answer.text(), "large", "the first candidate");
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.traces["selection"]["fallback"], true);
}
