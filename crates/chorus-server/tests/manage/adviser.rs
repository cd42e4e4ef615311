//! A signal that asks a model: what is asked, what comes of the answer, and what it costs.

use crate::house::House;
use chorus_testkit::{Received, Script};
use serde_json::json;

/// Contracts go to `big`, as far as `sorter` says that they are contracts; greetings need no sorter.
const POLICY: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, provider_model_id: gen-small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: big, provider_model_id: gen-big, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - name: sorter
      provider_model_id: gen-sorter
      pricing: { currency: USD, prompt_per_1m: 1, completion_per_1m: 2 }
      backend_refs: [{ name: main, base_url: "${UP}" }]
routing:
  signals:
    keywords: [{ name: greeting, keywords: [hello] }]
    classifiers:
      - { name: area, type: llm, model: sorter, labels: [contract, other], instructions: By area of law. }
  decisions:
    - { name: greet, priority: 90, rules: { type: keyword, name: greeting }, modelRefs: [{ model: small }] }
    - name: contracts
      priority: 50
      rules: { type: classifier, name: area, label: contract, predicate: { gte: 0.5 } }
      modelRefs: [{ model: big }]
"#;

fn model_of(request: &Received) -> String {
    request.json()["model"].as_str().unwrap_or_default().to_owned()
}

/// A backend whose sorter answers this.
async fn house(sorter: &'static str) -> House {
    let house = House::open(POLICY).await;
    house.up.otherwise(move |request| match model_of(request).as_str() {
        "gen-sorter" => Script::reply(sorter),
        other => Script::reply(other),
    });
    house
}

#[tokio::test]
async fn d21_a_model_that_is_asked_names_the_label_and_is_paid_for() {
    let house = house("<think>{maybe \"other\"}</think>\n{\"label\":\"contract\"}").await;
    let answer = house.chat("May my landlord end the lease early?").await;
    assert_eq!(answer.headers["x-vsr-selected-decision"], "contracts");
    assert_eq!(answer.text(), "gen-big");
    let asked: Vec<String> = house.up.requests().iter().map(model_of).collect();
    assert_eq!(asked, ["gen-sorter", "gen-big"]);
    let [record] = house.records(1).await.try_into().unwrap();
    let calls: Vec<(&str, &str)> = record.calls.iter().map(|c| (c.role.as_str(), c.model.as_str())).collect();
    assert_eq!(calls, [("signal", "sorter"), ("direct", "big")]);
    assert!(record.cost_micro_usd > 0 && record.calls[0].cost_micro_usd == record.cost_micro_usd);
}

#[tokio::test]
async fn a_model_is_asked_only_where_the_route_depends_on_it_and_never_in_a_dry_run() {
    let house = house("{\"label\":\"contract\"}").await;
    assert_eq!(house.chat("hello, about my lease").await.text(), "gen-small");
    assert_eq!(house.up.requests().len(), 1);
    let look = house.post("/api/v1/eval", &json!({"text": "about my lease"})).await.json();
    assert!(look.to_string().contains("no model is called"), "{look}");
    assert_eq!(house.up.requests().len(), 1);
}

#[tokio::test]
async fn a_model_that_names_no_label_leaves_the_signal_absent() {
    for sorter in ["I cannot tell.", "{\"label\": \"poetry\"}"] {
        let house = house(sorter).await;
        let answer = house.chat("May my landlord end the lease early?").await;
        assert_eq!(answer.text(), "gen-small", "the default answers");
        let [record] = house.records(1).await.try_into().unwrap();
        let signal = record.signals.iter().find(|s| s.key == "classifier:area:contract").unwrap();
        let told = serde_json::to_string(signal).unwrap();
        assert!(told.contains("names none of the labels") && !told.contains("poetry"), "{told}");
    }
}
