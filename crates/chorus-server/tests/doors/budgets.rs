//! Budgets from end to end: declared by a decision, lowered by a header, ended as declared.

use crate::loopers::{calls, house_of};
use crate::support::{HOUSE, House, ask};
use chorus_store::RunStatus;
use chorus_testkit::{ChatAnswer, Script};
use serde_json::json;

fn seat(house: &House) {
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::chat(ChatAnswer::text(&format!("the view of {model}")).usage(10, 5)));
    }
}

fn remom(budget: &str) -> String {
    house_of(&format!(
        "{{ type: remom, remom: {{ breadth_schedule: [3], model_distribution: equal, max_concurrent: 1, budget: {budget} }} }}"
    ))
}

#[tokio::test]
async fn a_spent_budget_answers_with_what_is_there() {
    let house = House::open(&remom("{ max_calls: 2 }")).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with("the view of"), "{}", answer.text());
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!((record.calls.len(), record.status), (2, RunStatus::Ok));
    let budget = &record.traces["budget"];
    assert_eq!((&budget["spent"], &budget["when_spent"]), (&json!("max_calls"), &json!("answer")));
    assert_eq!(budget["limits"]["max_calls"], 2);
    assert_eq!(budget["by"].as_array().unwrap().len(), 2);
    assert!(record.degraded.iter().any(|why| why == "budget_spent: max_calls"), "{:?}", record.degraded);
}

#[tokio::test]
async fn a_spent_budget_falls_back_to_the_first_candidate() {
    let house = House::open(&remom("{ max_calls: 2, when_spent: fallback }")).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "the view of a"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record).last().unwrap(), "a direct");
    assert_eq!(record.calls.len(), 3);
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert_eq!(told.is_whole().text, "the view of a");
}

#[tokio::test]
async fn a_spent_budget_abstains() {
    let house = House::open(&remom("{ max_calls: 2, when_spent: abstain }")).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    let (code, message) = answer.error();
    assert_eq!((answer.status, code.as_str()), (402, "budget_exceeded"));
    assert!(message.contains("max_calls"), "{message}");
}

#[tokio::test]
async fn a_header_lowers_the_budget_and_never_raises_it() {
    let house = House::open(&remom("{ max_calls: 3 }")).await;
    seat(&house);
    let request = ask("vllm-sr/auto", "think deeply");
    for (header, made) in [("calls=1", 1), ("calls=60", 3)] {
        let answer = house.chat_with(("x-vsr-budget", header), &request).await.whole().await;
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        assert_eq!(record.calls.len(), made, "{header}");
    }
}

#[tokio::test]
async fn a_budget_that_cannot_be_read_is_refused() {
    let house = House::open(HOUSE).await;
    let answer = house.chat_with(("x-vsr-budget", "clals=1"), &ask("spare", "x")).await.whole().await;
    let (code, message) = answer.error();
    assert_eq!((answer.status, code.as_str()), (400, "invalid_request"));
    assert!(message.contains("clals"), "{message}");
    assert!(house.up.requests().is_empty());
}

#[tokio::test]
async fn a_token_budget_caps_what_a_model_may_write() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let header = ("x-vsr-budget", "tokens=500");
    for (written, key) in [(None, "max_completion_tokens"), (Some("max_tokens"), "max_tokens")] {
        let mut request = ask("a", "hi there");
        if let Some(name) = written {
            request[name] = json!(4000);
        }
        assert_eq!(house.chat_with(header, &request).await.whole().await.status, 200);
        let sent = house.up.requests_for("a").pop().unwrap().json();
        let cap = sent[key].as_u64().unwrap();
        assert!((400..500).contains(&cap), "{sent}");
    }
    // A cap that fits stays as it was written.
    let mut request = ask("a", "hi there");
    request["max_tokens"] = json!(100);
    house.chat_with(header, &request).await.whole().await;
    assert_eq!(house.up.requests_for("a").pop().unwrap().json()["max_tokens"], 100);
}

#[tokio::test]
async fn money_bounds_priced_models_only() {
    let house = House::open(HOUSE).await;
    seat(&house);
    // `a` costs 1 and 2 dollars a million tokens: ten micro-dollars are five tokens at most.
    let header = ("x-vsr-budget", "usd=0.00001");
    let refused = house.chat_with(header, &ask("a", "hi there")).await.whole().await;
    assert_eq!((refused.status, refused.error().0.as_str()), (402, "budget_exceeded"));
    let record = house.record(refused.header("x-vsr-replay-id")).await;
    assert_eq!(record.traces["budget"]["spent"], "max_micro_usd");
    assert_eq!(house.chat_with(header, &ask("b", "hi there")).await.whole().await.status, 200);
    assert!(house.up.requests_for("b")[0].json().get("max_completion_tokens").is_none());
}

#[tokio::test]
async fn the_account_of_a_stream_is_made_when_it_has_ended() {
    let house = House::open(&remom("{ max_tokens: 9000 }")).await;
    seat(&house);
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    told.is_whole();
    let record = house.record(told.header("x-vsr-replay-id")).await;
    let by = record.traces["budget"]["by"].as_array().unwrap();
    let sum = |key: &str| by.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
    assert_eq!((sum("calls"), sum("tokens")), (4, record.usage.total_tokens));
    assert_eq!(sum("micro_usd"), record.cost_micro_usd);
}
