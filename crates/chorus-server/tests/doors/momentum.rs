//! Easy turns in the middle of a hard conversation.

use crate::support::{Answer, House, Setup, ask, user};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_testkit::Script;
use serde_json::{Value, json};
use std::sync::Arc;

/// Texts that speak of proofs lie in one direction, all others in the other.
struct Proofs;

impl TextEncoder for Proofs {
    fn digest(&self) -> &str {
        "sha256:proofs"
    }

    fn dimension(&self) -> usize {
        2
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        Ok(texts
            .iter()
            .map(|it| if it.contains("prove") { vec![1.0, 0.0] } else { vec![0.0, 1.0] })
            .collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// `more` ends the candidates of the easy route, and may go on with other keys.
fn file(momentum: &str, more: &str) -> String {
    format!(
        r#"
version: v0.3
global: {{ router: {{ model_selection: {{ momentum: {momentum} }} }} }}
providers:
  models:
    - {{ name: large, backend_refs: [{{ base_url: "${{UP}}" }}] }}
    - {{ name: small, backend_refs: [{{ base_url: "${{UP}}" }}] }}
routing:
  modelCards: [{{ name: large, quality_score: 0.9 }}, {{ name: small, quality_score: 0.4 }}]
  signals:
    complexity:
      - {{ name: task, threshold: 0.1, hard: {{ candidates: [prove it] }}, easy: {{ candidates: [say hello] }} }}
  decisions:
    - {{ name: hard, priority: 10, rules: {{ type: complexity, name: "task:hard" }}, modelRefs: [{{ model: large }}] }}
    - {{ name: easy, priority: 5, rules: {{ type: complexity, name: "task:easy" }}, modelRefs: [{{ model: small }}{more} }}
"#
    )
}

async fn open(momentum: &str, more: &str) -> House {
    let house = Setup { encoder: Some(Arc::new(Proofs)), ..Setup::of(&file(momentum, more)) }.open().await;
    ["large", "small"].iter().for_each(|model| house.up.on(model, Script::reply(model)));
    house
}

/// One turn of a named session, after the earlier ones.
async fn turn(house: &House, said: &mut Vec<Value>, text: &str) -> Answer {
    said.push(user(text));
    let body = json!({"model": "vllm-sr/auto", "messages": said});
    let answer = house.chat_with(("x-session-id", "s-1"), &body).await.whole().await;
    said.push(json!({"role": "assistant", "content": answer.text()}));
    answer
}

const ON: &str = "{ enabled: true }";

#[tokio::test]
async fn an_easy_turn_goes_on_with_what_served_the_hard_ones_until_the_momentum_is_gone() {
    let house = open(ON, "]").await;
    let mut said = Vec::new();
    assert_eq!(turn(&house, &mut said, "prove the lemma").await.text(), "large");
    for at in 0..5 {
        assert_eq!(turn(&house, &mut said, "thank you").await.text(), "large", "easy turn {at}");
    }
    let last = turn(&house, &mut said, "thank you").await;
    assert_eq!(last.text(), "small", "five easy turns have used it up");
    assert_eq!(turn(&house, &mut said, "prove it again").await.text(), "large");
}

#[tokio::test]
async fn momentum_needs_a_conversation_and_moves_nothing_where_it_is_off_or_observed() {
    let house = open(ON, "]").await;
    assert_eq!(house.chat(&ask("vllm-sr/auto", "prove the lemma")).await.text(), "large");
    assert_eq!(
        house.chat(&ask("vllm-sr/auto", "thank you")).await.text(),
        "small",
        "nobody said whose turn it is"
    );
    for (momentum, more) in [
        ("{ enabled: false }", "]"),
        (ON, "], adaptations: { protection: { mode: observe } }"),
        (ON, "], tier: 1"),
    ] {
        let house = open(momentum, more).await;
        let mut said = Vec::new();
        assert_eq!(turn(&house, &mut said, "prove the lemma").await.text(), "large");
        assert_eq!(turn(&house, &mut said, "thank you").await.text(), "small", "{momentum} {more}");
    }
}

#[tokio::test]
async fn a_route_that_is_not_passed_over_keeps_the_stronger_model_where_it_is_its_candidate() {
    let house = open(ON, ", { model: large }], tier: 1").await;
    let mut said = Vec::new();
    assert_eq!(turn(&house, &mut said, "prove the lemma").await.text(), "large");
    let easy = turn(&house, &mut said, "thank you").await;
    assert_eq!(easy.text(), "large");
    let record = house.record(easy.header("x-vsr-replay-id")).await;
    assert_eq!(record.decision.as_deref(), Some("easy"));
    let told = &record.traces["selection"];
    assert!(told["reason"].as_str().unwrap().contains("harder than this turn"), "{told}");
    assert!(told["momentum"].as_f64().is_some_and(|it| it > 0.5), "{told}");
    assert_eq!(house.chat(&ask("vllm-sr/auto", "thank you")).await.text(), "small");
}
