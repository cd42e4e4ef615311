//! Conversations that keep their model, and those that are free to change it.

use crate::support::{House, user};
use chorus_store::RunStatus;
use chorus_testkit::{ChatAnswer, Received, RedisServer, Script};
use serde_json::{Value, json};
use std::time::Duration;

const SESSION: (&str, &str) = ("x-session-id", "s-1");

/// Two routes to two models by a word, and one over both by price or by quality.
fn file(learning: &str) -> String {
    format!(
        r#"
version: v0.3
global:
  router:
    learning: {learning}
providers:
  models:
    - {{ name: a, pricing: {{ prompt_per_1m: 5, completion_per_1m: 5 }}, backend_refs: [{{ base_url: "${{UP}}" }}] }}
    - {{ name: b, pricing: {{ prompt_per_1m: 1, completion_per_1m: 1 }}, backend_refs: [{{ base_url: "${{UP}}" }}] }}
routing:
  modelCards: [{{ name: a, quality_score: 0.8 }}, {{ name: b, quality_score: 0.75 }}]
  signals:
    keywords: [{{ name: alpha, keywords: [alpha] }}, {{ name: beta, keywords: [beta] }}, {{ name: thrifty, keywords: [thrifty] }}]
  decisions:
    - {{ name: to-a, priority: 10, rules: {{ type: keyword, name: alpha }}, modelRefs: [{{ model: a }}] }}
    - {{ name: to-b, priority: 20, rules: {{ type: keyword, name: beta }}, modelRefs: [{{ model: b }}] }}
    - name: by-price
      priority: 5
      rules: {{ type: keyword, name: thrifty }}
      modelRefs: [{{ model: a }}, {{ model: b }}]
      algorithm: {{ type: automix, automix: {{ cost_quality_tradeoff: 0.1 }} }}
    - name: by-quality
      modelRefs: [{{ model: a }}, {{ model: b }}]
      algorithm: {{ type: automix, automix: {{ cost_aware_routing: false }} }}
"#
    )
}

async fn open(learning: &str) -> House {
    let house = House::open(&file(learning)).await;
    for model in ["a", "b"] {
        house.up.on_with(model, move |request: &Received| {
            let calls =
                request.json().get("tools").is_some() && !request.json().to_string().contains("tool_call_id");
            let answer = ChatAnswer::text(model).usage(10, 5);
            Script::chat(if calls { answer.tool_call("call_1", "look", "{}") } else { answer })
        });
    }
    house
}

async fn turn(house: &House, messages: &Value) -> crate::support::Answer {
    let tools = json!([{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]);
    let body = json!({"model": "vllm-sr/auto", "messages": messages, "tools": tools});
    let answer = house.chat_with(SESSION, &body).await.whole().await;
    // An answer that was given whole is no request that was cut off.
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.status, RunStatus::Ok);
    answer
}

fn call() -> Value {
    json!({"role": "assistant", "content": null, "tool_calls":
        [{"id": "call_1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]})
}

fn result() -> Value {
    json!({"role": "tool", "tool_call_id": "call_1", "content": "seen"})
}

/// Two houses that keep what they know of conversations in that server.
async fn replicas(learning: &str, redis: &RedisServer) -> [House; 2] {
    let address = format!("127.0.0.1:{}", redis.port());
    let shared = format!("state_store: {{ backend: redis, redis: {{ address: '{address}' }} }} }}");
    let learning = format!("{}, {shared}", learning.strip_suffix(" }").unwrap());
    [open(&learning).await, open(&learning).await]
}

/// A server is told beside the answer: it knows a moment later.
async fn settled(redis: Option<&RedisServer>) {
    if redis.is_some() {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

const OFF: &str = "{ enabled: false }";
const PROTECTED: &str = "{ enabled: true, protection: { enabled: true } }";

#[tokio::test]
async fn d15_a_tool_call_is_answered_by_the_model_that_made_it_and_the_next_task_is_free() {
    let house = open(OFF).await;
    a_tool_call_is_held([&house, &house], None).await;
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn d15_replicas_that_share_conversations_hold_a_tool_call_and_a_running_conversation() {
    let Some(redis) = RedisServer::start(None).await.unwrap() else { return };
    let [one, other] = replicas(OFF, &redis).await;
    a_tool_call_is_held([&one, &other], Some(&redis)).await;
    let Some(redis) = RedisServer::start(None).await.unwrap() else { return };
    let [one, other] = replicas(PROTECTED, &redis).await;
    a_running_conversation_stays([&one, &other], Some(&redis)).await;
}

/// Turns that alternate between these, which may be one.
async fn a_tool_call_is_held([house, other]: [&House; 2], redis: Option<&RedisServer>) {
    let first = turn(house, &json!([user("alpha, look")])).await;
    settled(redis).await;
    assert_eq!(first.header("x-vsr-selected-model"), Some("a"));
    let messages = json!([user("alpha, look"), call(), result(), user("beta, and then?")]);
    let second = turn(other, &messages).await;
    assert_eq!(second.header("x-vsr-selected-model"), Some("a"), "the text would route to b");
    assert_eq!(second.header("x-vsr-session-phase"), Some("tool_loop"));
    let record = other.record(second.header("x-vsr-replay-id")).await;
    assert_eq!(record.decision.as_deref(), Some("to-a"));
    let told = json!({"role": "assistant", "content": "done"});
    let messages = json!([user("alpha, look"), call(), result(), told, user("beta please")]);
    settled(redis).await;
    let third = turn(house, &messages).await;
    assert_eq!(third.header("x-vsr-selected-model"), Some("b"), "a new task");
}

#[tokio::test]
async fn d15_a_running_conversation_stays_unless_another_is_better_by_more_than_the_switch_costs() {
    let house = open(PROTECTED).await;
    a_running_conversation_stays([&house, &house], None).await;
}

/// Turns that alternate between these, which may be one.
async fn a_running_conversation_stays([house, other]: [&House; 2], redis: Option<&RedisServer>) {
    let first = turn(house, &json!([user("a question")])).await;
    settled(redis).await;
    assert_eq!(first.header("x-vsr-selected-model"), Some("a"));
    assert_eq!(first.header("x-vsr-session-phase"), Some("new"));
    let said = json!({"role": "assistant", "content": "a"});
    let second = turn(other, &json!([user("a question"), said.clone(), user("thrifty now")])).await;
    assert_eq!(second.header("x-vsr-selected-model"), Some("a"), "b is hardly better");
    assert_eq!(second.header("x-vsr-learning-actions"), Some("stay"));
    let record = other.record(second.header("x-vsr-replay-id")).await;
    let session = &record.traces["selection"]["session"];
    assert_eq!((&session["proposal"], &session["current"]), (&json!("b"), &json!("a")));
    assert!(session["reason"].as_str().unwrap().contains("less than the switch costs"), "{session}");
    // Another session, and one that nobody named, are not bound by it.
    let body = json!({"model": "vllm-sr/auto", "messages": [user("a question"), said, user("thrifty now")]});
    let free = house.chat_with(("x-session-id", "s-2"), &body).await.whole().await;
    assert_eq!(free.header("x-vsr-selected-model"), Some("b"));
}

#[tokio::test]
async fn d16_a_named_model_is_obeyed_amid_a_conversation() {
    let house = open("{ enabled: true }").await;
    turn(&house, &json!([user("alpha")])).await;
    let said = json!({"role": "assistant", "content": "a"});
    let body = json!({"model": "b", "messages": [user("alpha"), said, user("alpha again")]});
    let answer = house.chat_with(SESSION, &body).await.whole().await;
    assert_eq!(answer.header("x-vsr-selected-model"), Some("b"));
}
