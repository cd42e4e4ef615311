//! Two tenants through every plugin that shows a model more than its conversation: no byte of one reaches the other.

use crate::house::{by, chat, did, open, store, upload};
use serde_json::{Value, json};

const ALL: &str = "[
    { type: tool_selection, configuration: { enabled: true, mode: filter, relevance_threshold: 0.1 } },
    { type: memory, configuration: { enabled: true, auto_store: true, similarity_threshold: 0.1 } },
    { type: rag, configuration: { enabled: true, backend: vectorstore, similarity_threshold: 0.1, cache_results: true,
        backend_config: { vector_store_id: notes } } },
    { type: context_compression, configuration: { enabled: true, mode: always,
        targets: { tool_outputs: { mode: recoverable, min_tokens: 60, target_tokens: 50 } }, recovery: { enabled: true } } }]";

/// A conversation with a long result of a tool, all of it marked.
fn agent(mark: &str) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}});
    let lines: String = (0..40).map(|n| format!("line {n} about the garden of {mark}\n")).collect();
    json!({"model": "vllm-sr/auto",
    "tools": [{"type": "function", "function": {"name": "look", "description": format!("looks at the garden {mark}")}}],
    "messages": [
        {"role": "user", "content": "What about the garden beside the harbour?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": lines},
    ]})
}

#[tokio::test]
async fn f01_no_byte_of_one_tenant_reaches_the_other_s_model_or_client() {
    let house = open(ALL, "").await;
    let tenants = [("ada", "adamark"), ("bob", "bobmark")];
    for (user, mark) in tenants {
        let file =
            upload(&house, Some(user), "notes.txt", &format!("The garden beside the harbour: {mark}.")).await;
        store(&house, Some(user), "notes", &file).await;
        let answer = chat(&house, user, &format!("I live beside the harbour garden {mark}.")).await;
        assert_eq!(did(&house, &answer, "memory").await["stored"].as_array().unwrap().len(), 1);
    }
    for (user, own, other) in [("ada", "adamark", "bobmark"), ("bob", "bobmark", "adamark")] {
        for turn in 0..2 {
            let before = house.up.requests().len();
            let chatted = chat(&house, user, "Who lives beside the harbour garden?").await;
            let agented = by(&house, user, "POST", "/v1/chat/completions", &agent(own)).await;
            let sent: Vec<String> = house.up.requests()[before..]
                .iter()
                .map(|it| String::from_utf8(it.body.to_vec()).unwrap())
                .collect();
            assert!(sent[0].contains(&format!("harbour: {own}")), "turn {turn}: the own document is shown");
            assert!(sent[0].contains(&format!("harbour garden {own}")), "and the own memory: {}", sent[0]);
            assert!(sent[1].contains("left out"), "and the result is shortened");
            for text in sent.iter().map(String::as_bytes).chain([&*chatted.body, &*agented.body]) {
                assert!(
                    !String::from_utf8_lossy(text).contains(other),
                    "{user} was shown something of {other}"
                );
            }
        }
        for path in ["/v1/memory", "/v1/files", "/v1/vector_stores"] {
            let list = by(&house, user, "GET", path, &Value::Null).await;
            assert!(!String::from_utf8_lossy(&list.body).contains(other));
        }
    }
}
