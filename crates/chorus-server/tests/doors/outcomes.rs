//! Verdicts on past runs, and what later choices make of them.

use crate::support::{Answer, House, ask};
use bytes::Bytes;
use chorus_testkit::Script;
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

/// One route over two models, whose first one is taken unless something was learnt.
fn file(learning: &str, adaptations: &str) -> String {
    format!(
        r#"
version: v0.3
global: {{ router: {{ learning: {learning} }} }}
providers:
  models:
    - {{ name: a, backend_refs: [{{ base_url: "${{UP}}" }}] }}
    - {{ name: b, backend_refs: [{{ base_url: "${{UP}}" }}] }}
routing:
  modelCards: [{{ name: a, quality_score: 0.6 }}, {{ name: b, quality_score: 0.6 }}]
  decisions:
    - {{ name: all, modelRefs: [{{ model: a }}, {{ model: b }}]{adaptations} }}
"#
    )
}

const LEARNING: &str = "{ enabled: true, adaptation: { enabled: true, candidate_set: decision } }";

async fn open(learning: &str, adaptations: &str) -> House {
    let house = House::open(&file(learning, adaptations)).await;
    ["a", "b"].iter().for_each(|model| house.up.on(model, Script::reply(model)));
    house
}

async fn chat(house: &House) -> Answer {
    house.chat(&ask("vllm-sr/auto", "hi")).await
}

async fn tell(house: &House, key: Option<&str>, body: &Value) -> Answer {
    let url = format!("http://{}/v1/router/outcomes", house.bound.management);
    let mut request = Request::builder().method("POST").uri(url);
    if let Some(key) = key {
        request = request.header("idempotency-key", key);
    }
    house.send(request.body(Full::new(Bytes::from(body.to_string()))).unwrap()).await.whole().await
}

/// A run that is recorded.
async fn run(house: &House) -> String {
    let answer = chat(house).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "a"));
    house.record(answer.header("x-vsr-replay-id")).await.id.to_string()
}

fn verdict(run: &str, verdict: &str) -> Value {
    json!({"replay_id": run, "target": "model", "verdict": verdict})
}

#[tokio::test]
async fn a_model_that_was_too_weak_twice_is_left_and_the_record_says_why() {
    let house = open(LEARNING, "").await;
    for (key, run) in [("k1", run(&house).await), ("k2", run(&house).await)] {
        let answer = tell(&house, Some(key), &verdict(&run, "underpowered")).await;
        assert_eq!((answer.status, &answer.json()["again"]), (200, &json!(false)));
    }
    let answer = chat(&house).await;
    assert_eq!(answer.text(), "b");
    assert_eq!(answer.header("x-vsr-learning-methods"), Some("adaptation"));
    assert_eq!(answer.header("x-vsr-learning-actions"), Some("rescue"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    let kept = &record.traces["selection"]["adaptation"];
    assert_eq!(
        (&kept["action"], &kept["base"], &kept["proposal"]),
        (&json!("rescue"), &json!("a"), &json!("b"))
    );
}

#[tokio::test]
async fn e11_a_run_is_judged_once_whoever_sends_how_often() {
    let house = open(LEARNING, "").await;
    let first = run(&house).await;
    for at in 0..50 {
        let answer = tell(&house, Some(&format!("k{at}")), &verdict(&first, "failed")).await;
        assert_eq!(answer.status, if at == 0 { 200 } else { 400 });
    }
    let again = tell(&house, Some("k0"), &verdict(&first, "failed")).await;
    assert_eq!((again.status, &again.json()["again"]), (200, &json!(true)));
    // Two verdicts would have left the pick for good; one leaves it to a draw.
    let record = house.record(chat(&house).await.header("x-vsr-replay-id")).await;
    assert_eq!(record.traces["selection"]["adaptation"]["action"], "sample");
}

#[tokio::test]
async fn nothing_moves_where_learning_is_off_or_the_route_opts_out() {
    for (learning, adaptations) in [
        ("{ enabled: false, adaptation: { enabled: true } }", ""),
        (LEARNING, ", adaptations: { mode: bypass }"),
        (LEARNING, ", adaptations: { mode: observe }"),
    ] {
        let house = open(learning, adaptations).await;
        for (key, run) in [("k1", run(&house).await), ("k2", run(&house).await)] {
            assert_eq!(tell(&house, Some(key), &verdict(&run, "failed")).await.status, 200);
        }
        assert_eq!(chat(&house).await.text(), "a", "{learning} {adaptations}");
    }
}

#[tokio::test]
async fn what_cannot_be_a_verdict_is_refused() {
    let house = open(LEARNING, "").await;
    let first = run(&house).await;
    assert_eq!(tell(&house, Some("k1"), &verdict(&first, "good_fit")).await.status, 200);
    let with = |field: &str, value: Value| {
        let mut body = verdict(&first, "good_fit");
        body[field] = value;
        body
    };
    let stranger = format!("run_{}", "0".repeat(32));
    for (key, body, param) in [
        (None, verdict(&first, "good_fit"), "Idempotency-Key"),
        (Some("k1"), verdict(&first, "failed"), "Idempotency-Key"),
        (Some("k3"), verdict(&stranger, "failed"), "replay_id"),
        (Some("k3"), verdict("run_x", "failed"), "replay_id"),
        (Some("k3"), with("target_ref", json!("b")), "target_ref"),
        (Some("k3"), with("score", json!(2)), "score"),
        (Some("k3"), with("reason", json!("x".repeat(1001))), "reason"),
        (Some("k3"), with("metadata", json!({"k": "x".repeat(201)})), "metadata"),
    ] {
        let answer = tell(&house, key, &body).await;
        assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!(param)), "{body}");
    }
    assert_eq!(tell(&house, Some("k3"), &verdict(&first, "splendid")).await.status, 400);
}

/// A route of its own candidate, others of its tier and of none, and one that guards.
fn routes(set: &str, own: &str) -> String {
    let model = |name: &str, quality: f64| {
        (
            format!("    - {{ name: {name}, backend_refs: [{{ base_url: \"${{UP}}\" }}] }}\n"),
            format!("{{ name: {name}, quality_score: {quality} }}"),
        )
    };
    let (providers, cards): (Vec<String>, Vec<String>) =
        [model("a", 0.3), model("b", 0.6), model("c", 0.9), model("tiny", 0.9)].into_iter().unzip();
    format!(
        r#"
version: v0.3
global: {{ router: {{ learning: {{ enabled: true, adaptation: {{ enabled: true, candidate_set: {set} }} }} }} }}
providers:
  models:
{}
routing:
  modelCards: [{}, ]
  signals:
    keywords: [{{ name: never, keywords: [zzz] }}, {{ name: pay, keywords: [salary] }}]
    role_bindings: [{{ name: staff, role: staff, subjects: [{{ kind: User, name: ada }}] }}]
  decisions:
    - {{ name: plain, tier: 2, rules: {{ operator: AND, conditions: [] }}, modelRefs: [{{ model: a }}]{own} }}
    - {{ name: like-it, tier: 2, rules: {{ type: keyword, name: never }}, modelRefs: [{{ model: a }}, {{ model: b }}, {{ model: tiny }}] }}
    - {{ name: other, tier: 3, rules: {{ type: keyword, name: never }}, modelRefs: [{{ model: c }}] }}
    - name: guarded
      tier: 1
      rules: {{ operator: AND, conditions: [{{ type: keyword, name: pay }}, {{ operator: NOT, conditions: [{{ type: authz, name: staff }}] }}] }}
      modelRefs: [{{ model: a }}]
"#,
        providers.concat(),
        cards.join(", ").replace("name: tiny,", "name: tiny, context_window_size: 20,"),
    )
}

/// Who answers after two verdicts that the first candidate is too weak.
async fn after_two_verdicts(set: &str, own: &str, text: &str) -> (Answer, House) {
    let house = House::open(&routes(set, own)).await;
    ["a", "b", "c", "tiny"].iter().for_each(|model| house.up.on(model, Script::reply(model)));
    let mut runs = Vec::new();
    for _ in 0..2 {
        let first = house.chat(&ask("vllm-sr/auto", text)).await;
        assert_eq!(first.text(), "a", "nobody has judged anything yet");
        runs.push(house.record(first.header("x-vsr-replay-id")).await.id.to_string());
    }
    for (key, run) in ["k1", "k2"].into_iter().zip(&runs) {
        assert_eq!(tell(&house, Some(key), &verdict(run, "underpowered")).await.status, 200);
    }
    (house.chat(&ask("vllm-sr/auto", text)).await, house)
}

#[tokio::test]
async fn candidates_come_from_as_far_as_the_file_says_and_pass_the_same_constraints() {
    let long = "please tell me, in as many words as you like, what is worth knowing of the subject, and why it is, and \
                for whom, and since when, and what became of all those who said otherwise";
    for (set, own, expected) in [
        ("decision", "", "a"),
        ("tier", "", "b"),
        ("global", "", "c"),
        ("global", ", adaptations: { adaptation: { candidate_set: decision } }", "a"),
        ("decision", ", adaptations: { adaptation: { candidate_set: global } }", "c"),
        ("global", ", adaptations: { adaptation: { mode: observe } }", "a"),
    ] {
        let (answer, house) = after_two_verdicts(set, own, long).await;
        assert_eq!(answer.text(), expected, "{set} {own}");
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        assert_eq!(record.decision.as_deref(), Some("plain"), "the route stays what it was");
    }
}
