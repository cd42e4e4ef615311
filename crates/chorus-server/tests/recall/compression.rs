//! Requests that are shortened, and originals that a model asks for.

use crate::house::{Words, by, did, open, operated, sent};
use crate::support::{House, Setup};
use chorus_testkit::{ChatAnswer, Script};
use serde_json::{Value, json};
use std::sync::Arc;

fn plugin(more: &str) -> String {
    format!("[{{ type: context_compression, configuration: {{ enabled: true, mode: always, {more} }} }}]")
}

const SHORT: &str = "targets: { tool_outputs: { mode: extractive, min_tokens: 200, target_tokens: 150 } }";
const RECOVERABLE: &str =
    "targets: { tool_outputs: { mode: recoverable, min_tokens: 200, target_tokens: 150 } },
    recovery: { enabled: true, max_retrievals: 1 }";

fn log() -> String {
    let line = |n: usize| match n {
        70 => "12:00:10 ERROR the disk /dev/sdb1 is full\n".to_owned(),
        n => format!("12:00:{:02} INFO request {n} served\n", n % 60),
    };
    (0..140).map(line).collect()
}

/// A conversation in which a tool has said a lot.
fn agent(result: &str) -> Value {
    let call = json!({"id": "c1", "type": "function", "function": {"name": "read_log", "arguments": "{\"of\":\"disk\"}"}});
    json!({"model": "vllm-sr/auto", "tools": [{"type": "function", "function": {"name": "read_log", "parameters": {}}}],
    "messages": [
        {"role": "system", "content": "You are careful. ".repeat(100)},
        {"role": "user", "content": "Why does the disk fail?"},
        {"role": "assistant", "content": null, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": result},
    ]})
}

async fn post(house: &House, body: &Value) -> crate::support::Answer {
    by(house, "ada", "POST", "/v1/chat/completions", body).await
}

#[tokio::test]
async fn a_long_result_keeps_what_was_asked_for_and_its_pairing() {
    let house = open(&plugin(SHORT), "").await;
    let body = agent(&log());
    let answer = post(&house, &body).await;
    let messages = sent(&house)["messages"].clone();
    let result = messages[3]["content"].as_str().unwrap();
    assert!(result.contains("the disk /dev/sdb1 is full") && result.contains("left out"), "{result}");
    assert!(result.len() < 700, "{}", result.len());
    for at in [0, 1, 2] {
        assert_eq!(messages[at], body["messages"][at], "nothing else changes");
    }
    assert_eq!(messages[3]["tool_call_id"], "c1");
    let did = did(&house, &answer, "context_compression").await;
    let tally = &did["parts"]["tool_outputs"];
    assert!(
        tally["tokens_before"].as_u64() > Some(900) && tally["tokens_after"].as_u64() <= Some(150),
        "{did}"
    );
    assert!(did["tokens_after"].as_u64() < did["tokens_before"].as_u64());
    post(&house, &body).await;
    assert_eq!(sent(&house)["messages"], messages, "the same request gives the same bytes");
}

#[tokio::test]
async fn json_stays_json_and_a_request_below_the_trigger_stays_as_it_is() {
    let house = open(&plugin(SHORT), "").await;
    let result = json!({"ok": true, "rows": [1.50, 2], "log": log()}).to_string();
    post(&house, &agent(&result)).await;
    let sent_result = sent(&house)["messages"][3]["content"].as_str().unwrap().to_owned();
    let value: Value = serde_json::from_str(&sent_result).unwrap();
    assert_eq!((&value["ok"], &value["rows"]), (&json!(true), &json!([1.5, 2])));
    assert!(value["log"].as_str().unwrap().contains("sdb1"));
    let auto = "[{ type: context_compression, configuration: { enabled: true } }]";
    let house = open(auto, "").await;
    let body = agent(&log());
    let answer = post(&house, &body).await;
    assert_eq!(sent(&house)["messages"], body["messages"]);
    assert_eq!(did(&house, &answer, "context_compression").await["idle"], "below_trigger");
}

#[tokio::test]
async fn a_model_that_asks_for_an_original_gets_it_and_the_client_sees_nothing_of_it() {
    let house = open(&plugin(RECOVERABLE), "").await;
    house.up.on_with("m", |received| {
        let body = received.json();
        let last = body["messages"].as_array().unwrap().last().unwrap().clone();
        let text = last["content"].as_str().unwrap_or_default();
        if text.contains("request 71 served") {
            return Script::reply("The disk is full since request 71.");
        }
        let call = ChatAnswer::text("").tool_call("r", "vsr_context_retrieve", "{\"key\":\"r1\"}");
        Script::chat(call.finish_reason("tool_calls").usage(100, 10))
    });
    let answer = post(&house, &agent(&log())).await;
    assert_eq!(answer.text(), "The disk is full since request 71.");
    assert!(!answer.json().to_string().contains("vsr_context_retrieve"));
    let requests = house.up.requests_for("m");
    assert_eq!(requests.len(), 2);
    let first = requests[0].json();
    assert_eq!(first["tools"].as_array().unwrap().len(), 2);
    assert!(first["messages"][3]["content"].as_str().unwrap().contains("vsr_context_retrieve with key r1"));
    let second = requests[1].json();
    assert_eq!(second["messages"].as_array().unwrap().len(), 6);
    assert_eq!(second["messages"][5]["tool_call_id"], "r");
    assert_eq!(second["tools"].as_array().unwrap().len(), 1, "one retrieval is the most here");
    let did = did(&house, &answer, "context_compression").await;
    assert_eq!((&did["recoverable"], &did["retrievals"]), (&json!(1), &json!(1)), "{did}");
    assert!(answer.json()["usage"]["prompt_tokens"].as_u64() > Some(100), "both turns are in the usage");
}

#[tokio::test]
async fn a_model_that_goes_on_asking_is_stopped_and_a_stream_ends_well() {
    let house = open(&plugin(RECOVERABLE), "").await;
    house.up.on_with("m", |_| {
        let call = ChatAnswer::text("partly").tool_call("r", "vsr_context_retrieve", "{\"key\":\"r9\"}");
        Script::chat(call.finish_reason("tool_calls"))
    });
    let answer = post(&house, &agent(&log())).await;
    assert_eq!(answer.text(), "partly");
    assert!(!answer.json().to_string().contains("vsr_context_retrieve"));
    assert!(house.up.requests_for("m").len() <= 4);
    let mut body = agent(&log());
    body["stream"] = json!(true);
    let text = String::from_utf8(post(&house, &body).await.body.to_vec()).unwrap();
    assert!(text.contains("partly") && text.trim_end().ends_with("data: [DONE]"), "{text}");
    assert!(!text.contains("vsr_context_retrieve"));
}

#[tokio::test]
async fn a_client_may_ask_for_what_the_route_allows() {
    let controls = format!("{SHORT}, request_controls: {{ enabled: true, allowed: [bypass] }}");
    let house = open(&plugin(&controls), "").await;
    let body = agent(&log());
    let request = http::Request::post(format!("http://{}/v1/chat/completions", house.bound.data))
        .header("x-vsr-compression-control", "bypass, target=5");
    house.send(request.body(http_body_util::Full::new(body.to_string().into())).unwrap()).await.whole().await;
    assert_eq!(sent(&house)["messages"], body["messages"]);
}

#[tokio::test]
async fn what_cannot_be_shortened_is_sent_or_refused() {
    let tight = |mode: &str| {
        format!(
            "[{{ type: context_compression, configuration: {{ enabled: true, budget: {{ trigger_tokens: 300, target_tokens: 100 }},
                failure_mode: {mode}, {SHORT} }} }}]"
        )
    };
    let numbers = serde_json::to_string(&(0..2000).collect::<Vec<_>>()).unwrap();
    let house = open(&tight("fail_open"), "").await;
    let answer = post(&house, &agent(&numbers)).await;
    assert_eq!(answer.header("x-vsr-response-warnings"), Some("context_compression_incomplete"));
    let house = open(&tight("fail_closed"), "").await;
    let answer = post(&house, &agent(&numbers)).await;
    assert_eq!(answer.error().0, "context_length_exceeded");
    assert!(house.up.requests().is_empty());
}

/// Two models with small windows behind one route of these plugins and that algorithm.
async fn narrow(plugins: &str, algorithm: &str) -> House {
    let text = format!(
        "version: v0.3
providers:
  models:
    - {{ name: m, backend_refs: [{{ name: main, base_url: \"${{UP}}\" }}] }}
    - {{ name: n, backend_refs: [{{ name: main, base_url: \"${{UP}}\" }}] }}
routing:
  modelCards: [{{ name: m, context_window_size: 4000 }}, {{ name: n, context_window_size: 6000 }}]
  decisions:
    - name: route
      modelRefs: [{{ model: m }}, {{ model: n }}]
      algorithm: {algorithm}
      plugins: {plugins}
global: {{ services: {{ authz: {{ identity: {{ user_id_header: x-user }} }} }} }}
"
    );
    Setup { encoder: Some(Arc::new(Words)), ..Setup::of(&text) }.open().await
}

const AUTO: &str = "[{ type: context_compression, configuration: { enabled: true } }]";
const STATIC: &str = "{ type: static }";

#[tokio::test]
async fn a_request_that_is_too_long_for_everybody_is_shortened_before_a_window_refuses_it() {
    let house = narrow(AUTO, STATIC).await;
    let body = agent(&log().repeat(8));
    let answer = post(&house, &body).await;
    assert_eq!(answer.status, 200, "{:?}", answer.body);
    assert!(house.up.requests_for("m").is_empty(), "the larger window needs less shortening");
    let sent = house.up.requests_for("n")[0].json();
    assert!(
        sent["messages"][3]["content"].as_str().unwrap().contains("the disk /dev/sdb1 is full"),
        "{sent}"
    );

    // What no shortening brings within a window is refused, and so is what nobody shortens.
    let numbers = serde_json::to_string(&(0..20_000).collect::<Vec<_>>()).unwrap();
    for (house, result) in [(&house, numbers), (&narrow("[]", STATIC).await, log().repeat(8))] {
        let before = house.up.requests().len();
        let answer = post(house, &agent(&result)).await;
        assert_eq!((answer.status, answer.error().0.as_str()), (400, "context_length_exceeded"));
        assert_eq!(house.up.requests().len(), before);
    }

    // What fits somebody as it is goes there, and is left as it is.
    let mut short = agent(&log().lines().take(30).map(|line| format!("{line}\n")).collect::<String>());
    short["messages"][0]["content"] = json!("You are careful.");
    assert_eq!(post(&house, &short).await.status, 200);
    assert_eq!(house.up.requests_for("m").last().unwrap().json()["messages"], short["messages"]);
}

#[tokio::test]
async fn a_team_works_on_a_request_that_was_shortened_for_its_smallest_window() {
    let body = agent(&log().repeat(8));
    let team = "{ type: fusion, fusion: { model: n, analysis_models: [m, n] } }";
    let house = narrow(AUTO, team).await;
    assert_eq!(post(&house, &body).await.status, 200);
    let member = house.up.requests_for("m")[0].json();
    let shown = member["messages"].to_string();
    assert!(shown.contains("the disk /dev/sdb1 is full") && shown.len() < 12_000, "{shown}");
    let refused = post(&narrow("[]", team).await, &body).await;
    assert_eq!(refused.error().0, "context_length_exceeded");
}

#[tokio::test]
async fn a_preview_is_what_the_route_sends_and_calls_nobody() {
    let house = open(&plugin(SHORT), "").await;
    let body = agent(&log());
    let path = "/api/v1/context-compression/preview";
    let preview = operated(&house, "POST", path, &json!({"request": body})).await;
    assert_eq!(preview.status, 200, "{:?}", preview.body);
    assert!(house.up.requests_for("m").is_empty(), "nobody is called");
    post(&house, &body).await;
    // Counted with the record, which is made once the client has its answer.
    house.all_records(1).await;
    let (preview, sent) = (preview.json(), sent(&house));
    assert_eq!(preview["messages"], sent["messages"]);
    assert_eq!((&preview["decision"], &preview["shortened"]), (&json!("route"), &json!(true)));
    let stats = operated(&house, "GET", "/api/v1/context-compression/stats", &Value::Null).await.json();
    assert_eq!(
        (&stats["shortened"], stats["tokens_saved"].as_u64()),
        (&json!(1), saved(&preview)),
        "{stats}"
    );
    let metrics = operated(&house, "GET", "/metrics", &Value::Null).await;
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    let line = "chorus_plugin_outcomes_total{plugin=\"context_compression\",outcome=\"shortened\"} 1";
    assert!(text.contains(line), "{text}");
    for (body, param) in [
        (json!({"request": body, "decision": "another"}), "decision"),
        (json!({"request": {"model": "m"}}), "request"),
    ] {
        let refused = operated(&house, "POST", path, &body).await;
        assert_eq!((refused.status, &refused.json()["error"]["param"]), (400, &json!(param)));
    }
}

fn saved(preview: &Value) -> Option<u64> {
    Some(preview["tokens_before"].as_u64()? - preview["tokens_after"].as_u64()?)
}

#[tokio::test]
async fn originals_end_with_their_run_and_can_be_forgotten() {
    let house = open(&plugin(RECOVERABLE), "").await;
    let path = "/api/v1/context-compression/recovery/invalidate";
    let answer = post(&house, &agent(&log())).await;
    assert_eq!(did(&house, &answer, "context_compression").await["recoverable"], 1);
    let health = operated(&house, "GET", "/api/v1/context-compression/health", &Value::Null).await.json();
    assert_eq!((&health["routes"], &health["originals"]), (&json!(1), &json!(0)), "the run has ended");
    for body in [json!({"all": true}), json!({"run": "run_1"})] {
        let forgot = operated(&house, "POST", path, &body).await;
        assert_eq!((forgot.status, &forgot.json()["removed"]), (200, &json!(0)), "{body}");
    }
    for body in [json!({}), json!({"all": true, "run": "run_1"}), json!({"everything": true})] {
        assert_eq!(operated(&house, "POST", path, &body).await.status, 400, "{body}");
    }
}
