//! Questions that are looked up elsewhere: a search over HTTP, another vector store, a tool of an MCP server.

use crate::house::{chat, did, open, sent};
use crate::support::House;
use chorus_testkit::{Received, Script};
use serde_json::{Value, json};

fn rag(backend: &str, config: &str) -> String {
    format!(
        "[{{ type: rag, configuration: {{ enabled: true, backend: {backend}, similarity_threshold: 0.2, injection_mode: system_prompt,
            on_failure: warn, backend_config: {{ {config}, timeout_seconds: 5 }} }} }}]"
    )
}

/// The backend answers these paths so; models answer as ever.
fn answering(house: &House, answer: impl Fn(&Received) -> Option<Script> + Send + Sync + 'static) {
    house.up.otherwise(move |received| answer(received).unwrap_or_else(|| Script::reply("fine")));
}

fn asked(house: &House, path: &str) -> Vec<Received> {
    house.up.requests().into_iter().filter(|it| it.path.ends_with(path)).collect()
}

#[tokio::test]
async fn a_search_over_http_in_a_template_of_the_operator_s() {
    let config =
        "endpoint: \"${UP}/find\", api_key: \"${UP_KEY}\", auth_header: x-key, request_format: custom,
        request_template: '{\"q\": \"${user_content}\", \"k\": ${top_k}}', headers: { x-team: blue }";
    let house = open(&rag("external_api", config), "").await;
    answering(&house, |it| {
        let results = json!({"results": [{"content": "Tides turn twice a day.", "source": "almanac", "score": 0.9},
            {"content": "too far", "score": 0.1}]});
        it.path.ends_with("/find").then(|| Script::json(200, &results))
    });
    let question = "Tides? \", \"k\": 99, \"x\": \"";
    let answer = chat(&house, "ada", question).await;
    let request = &asked(&house, "/find")[0];
    assert_eq!(request.json(), json!({"q": question, "k": 5}), "a question cannot leave its slot");
    assert_eq!((request.header("x-team"), request.header("x-key").is_some()), (Some("blue"), true));
    let system = sent(&house)["messages"][0]["content"].as_str().unwrap().to_owned();
    assert!(system.contains("Tides turn twice a day.") && !system.contains("too far"), "{system}");
    let did = did(&house, &answer, "rag").await;
    assert_eq!((&did["found"], &did["shown"][0]["source"]), (&json!(2), &json!("almanac")), "{did}");
}

#[tokio::test]
async fn another_server_s_vector_store() {
    let config = "vector_store_id: vs_9, base_url: \"${UP}\", api_key: \"${UP_KEY}\"";
    let house = open(&rag("openai", config), "").await;
    answering(&house, |it| {
        let page = json!({"data": [{"file_id": "f", "filename": "a.md", "score": 0.8,
            "content": [{"type": "text", "text": "Gulls nest on cliffs."}]}]});
        it.path.ends_with("/vector_stores/vs_9/search").then(|| Script::json(200, &page))
    });
    chat(&house, "ada", "Where do gulls nest?").await;
    let request = &asked(&house, "/search")[0];
    assert!(request.header("authorization").is_some_and(|it| it.starts_with("Bearer ")));
    assert_eq!(request.json()["query"], "Where do gulls nest?");
    assert!(sent(&house).to_string().contains("Gulls nest on cliffs."));
}

#[tokio::test]
async fn a_tool_of_an_mcp_server_by_json_or_events() {
    let config = "server_name: \"${UP}/mcp\", tool_name: look, tool_arguments: { text: \"about ${user_content}\", n: \"${top_k}\" }";
    let house = open(&rag("mcp", config), "").await;
    answering(&house, |it| {
        if !it.path.ends_with("/mcp") {
            return None;
        }
        let body = it.json();
        let result = match body["method"].as_str()? {
            "initialize" => json!({"protocolVersion": "2025-06-18", "capabilities": {}}),
            "tools/call" => json!({"content": [{"type": "text", "text": "Crabs walk sideways."}]}),
            _ => return Some(Script::json(202, &Value::Null)),
        };
        let response = json!({"jsonrpc": "2.0", "id": body["id"], "result": result});
        Some(match body["method"] == "initialize" {
            true => Script::json(200, &response).header("mcp-session-id", "s-1"),
            false => Script::sse([chorus_testkit::Step::event(&response.to_string())]),
        })
    });
    chat(&house, "ada", "crabs").await;
    let calls = asked(&house, "/mcp");
    let methods: Vec<String> =
        calls.iter().map(|it| it.json()["method"].as_str().unwrap().to_owned()).collect();
    assert_eq!(methods, ["initialize", "notifications/initialized", "tools/call"]);
    assert_eq!(calls[2].header("mcp-session-id"), Some("s-1"));
    assert_eq!(
        calls[2].json()["params"],
        json!({"name": "look", "arguments": {"text": "about crabs", "n": 5}})
    );
    assert!(sent(&house).to_string().contains("Crabs walk sideways."));
}

#[tokio::test]
async fn i07_a_search_that_fails_is_said_in_a_word_and_not_in_its_own() {
    let config = "endpoint: \"${UP}/find\", request_format: elasticsearch";
    let house = open(&rag("external_api", config), "").await;
    for (script, word) in [
        (Script::error(500, "secret of the search"), "rag_unreachable"),
        (Script::json(200, &json!({"oops": "secret of the search"})), "rag_malformed"),
    ] {
        house.up.otherwise(
            move |it| {
                if it.path.ends_with("/find") { script.clone() } else { Script::reply("fine") }
            },
        );
        let answer = chat(&house, "ada", "anything").await;
        assert_eq!((answer.status, answer.header("x-vsr-response-warnings")), (200, Some(word)));
        let did = did(&house, &answer, "rag").await;
        assert_eq!(did, json!({"backend": "external_api", "failed": word}));
    }
}
