//! The tools that a model is offered.

use crate::house::{by, did, open, sent};
use crate::support::{Answer, House};
use serde_json::{Value, json};

fn tool(name: &str, description: &str) -> Value {
    json!({"type": "function", "function": {"name": name, "description": description, "parameters": {"x": 1.0}}})
}

fn request(more: &Value) -> Value {
    let mut body = json!({"model": "vllm-sr/auto",
    "messages": [{"role": "user", "content": "What is the weather forecast for Lisbon tomorrow?"}],
    "tools": [
        tool("weather", "weather forecast for a city tomorrow"),
        tool("stocks", "prices of shares in Lisbon"),
        tool("mail", "writes postcards"),
    ]});
    for (key, value) in more.as_object().unwrap() {
        body[key] = value.clone();
    }
    body
}

async fn post(house: &House, body: &Value) -> Answer {
    by(house, "ada", "POST", "/v1/chat/completions", body).await
}

fn offered(house: &House) -> Vec<String> {
    let tools = sent(house)["tools"].as_array().cloned().unwrap_or_default();
    tools.iter().map(|it| it["function"]["name"].as_str().unwrap().to_owned()).collect()
}

fn filter(more: &str) -> String {
    format!(
        "[{{ type: tool_selection, configuration: {{ enabled: true, mode: filter, relevance_threshold: 0.4, {more} }} }}]"
    )
}

#[tokio::test]
async fn a_filter_keeps_what_the_task_may_need() {
    let house = open(&filter(""), "").await;
    let answer = post(&house, &request(&json!({}))).await;
    assert_eq!(offered(&house), ["weather"]);
    assert!(sent(&house)["tools"].to_string().contains("1.0"), "definitions stay as they were written");
    let did = did(&house, &answer, "tool_selection").await;
    assert_eq!((&did["kept"], &did["removed"]), (&json!(1), &json!(["stocks", "mail"])), "{did}");
    let house = open(&filter("preserve_count: 2"), "").await;
    post(&house, &request(&json!({}))).await;
    assert_eq!(offered(&house), ["weather", "stocks"], "in the order of the request");
}

#[tokio::test]
async fn what_tool_choice_names_and_what_was_called_stays() {
    let house = open(&filter(""), "").await;
    let choice = json!({"tool_choice": {"type": "function", "function": {"name": "mail"}}});
    post(&house, &request(&choice)).await;
    assert_eq!(offered(&house), ["weather", "mail"]);
    let call = json!({"id": "c", "type": "function", "function": {"name": "stocks", "arguments": "{}"}});
    let history = json!({"messages": [
        {"role": "user", "content": "How are shares?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "up"},
        {"role": "user", "content": "And the weather forecast for Lisbon tomorrow?"},
    ]});
    post(&house, &request(&history)).await;
    assert_eq!(offered(&house), ["weather", "stocks"]);
    post(&house, &request(&json!({"tool_choice": "none"}))).await;
    assert_eq!(offered(&house).len(), 3, "nothing is called anyway");
}

#[tokio::test]
async fn b18_the_same_request_offers_the_same_bytes() {
    let house = open(&filter("preserve_count: 2"), "").await;
    for _ in 0..5 {
        post(&house, &request(&json!({}))).await;
    }
    let bodies: std::collections::BTreeSet<String> =
        house.up.requests_for("m").iter().map(|it| it.json()["tools"].to_string()).collect();
    assert_eq!(bodies.len(), 1);
}

#[tokio::test]
async fn a_route_whose_file_of_tools_is_nowhere_goes_on_or_says_no() {
    let add = |fallback: bool| {
        format!(
            "[{{ type: tool_selection, configuration: {{ enabled: true, mode: add, tools_db_path: nowhere.json, fallback_to_empty: {fallback} }} }}]"
        )
    };
    let house = open(&add(true), "").await;
    let answer = post(&house, &request(&json!({}))).await;
    assert_eq!(answer.header("x-vsr-response-warnings"), Some("tool_selection_no_tools"));
    assert_eq!(offered(&house).len(), 3);
    let house = open(&add(false), "").await;
    assert_eq!(post(&house, &request(&json!({}))).await.error().0, "misconfigured");
}
