//! What reaches the backend: the client's own bytes and nothing of the client's connection.

use crate::support::house::KEY;
use crate::support::{HOUSE, House, ask};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use serde_json::Value;

/// Fields that are easily lost, with the texts that are easily changed.
const FIELDS: [(&str, &str); 19] = [
    ("x_custom", r#"{"b":1,"a":[],"c":null}"#),
    ("temperature", "0"),
    ("top_p", "1.0"),
    ("model", r#""small""#),
    ("seed", "0"),
    ("max_tokens", "7"),
    ("parallel_tool_calls", "false"),
    ("user", r#""""#),
    ("stop", "null"),
    ("presence_penalty", "-0.0"),
    ("frequency_penalty", "1e-1"),
    ("logit_bias", r#"{"50256":-100}"#),
    ("big", "12345678901234567890123"),
    ("precise", "0.1000000000000000055511151231257827"),
    (
        "tools",
        r#"[{"type":"function","function":{"name":"z","strict":false}},{"type":"function","function":{"name":"a","parameters":{"type":"object","properties":{"y":{},"x":{}}}}}]"#,
    ),
    ("tool_choice", r#""auto""#),
    ("messages", r#"[{"content":"zażółć \u00e9 🦦","role":"user","name":"n","x":0}]"#),
    ("metadata", r#"{"k":""}"#),
    ("stream", "false"),
];

fn body(model: &str) -> String {
    let fields = FIELDS.map(|(key, text)| match key {
        "model" => format!("\"model\":\"{model}\""),
        _ => format!("\"{key}\":{text}"),
    });
    format!("{{{}}}", fields.join(","))
}

#[tokio::test]
async fn b13_b18_every_field_but_the_model_arrives_as_sent() {
    let house = House::open(HOUSE).await;
    for _ in 0..3 {
        let answer = house.post("/v1/chat/completions", body("small")).await;
        assert_eq!(answer.status, 200, "{:?}", answer.body);
    }
    for request in house.up.requests() {
        assert_eq!(String::from_utf8_lossy(&request.body), body("acme/small-fp8"));
    }
}

#[tokio::test]
async fn b22_our_own_extensions_stay_here_and_others_pass() {
    let house = House::open(HOUSE).await;
    let sent = r#"{"model":"small","plugins":[{"id":"web","n":1.50},{"id":"fusion","on_error":"skip"}],"messages":[{"role":"user","content":"x"}],"x_custom":1}"#;
    let answer = house.post("/v1/chat/completions", sent).await;
    assert_eq!(answer.status, 200);
    assert!(answer.header("x-vsr-response-warnings").is_some_and(|w| w.contains("fusion_plugin_unused")));
    let arrived = String::from_utf8(house.up.requests()[0].body.to_vec()).unwrap();
    assert_eq!(
        arrived,
        r#"{"model":"acme/small-fp8","plugins":[{"id":"web","n":1.50}],"messages":[{"role":"user","content":"x"}],"x_custom":1}"#
    );
}

/// Name and value of headers that concern the client and us alone.
const PRIVATE: [(&str, &str); 8] = [
    ("authorization", "Bearer client-key-1"),
    ("proxy-authorization", "Basic Y2xpZW50"),
    ("cookie", "session=client"),
    ("x-forwarded-for", "192.0.2.1"),
    ("cf-ipcountry", "PL"),
    ("x-api-key", "client-key-2"),
    ("x-secret-a", "client-key-3"),
    ("openai-organization", "client-org"),
];

#[tokio::test]
async fn e08_e09_no_header_of_the_client_reaches_a_backend() {
    let house = House::open(HOUSE).await;
    let url = format!("http://{}/v1/chat/completions", house.bound.data);
    let mut request = Request::post(url).header("connection", "x-secret-a");
    for (name, value) in PRIVATE {
        request = request.header(name, value);
    }
    let body = Full::new(Bytes::from(ask("small", "x").to_string()));
    let answer = house.send(request.body(body).unwrap()).await.whole().await;
    assert_eq!(answer.status, 200);
    let [arrived] = house.up.requests().try_into().unwrap();
    for (name, value) in &arrived.headers {
        let leaked = PRIVATE.iter().any(|(_, secret)| value.contains(secret) || value.contains("client"));
        assert!(!leaked, "{name}: {value}");
    }
    assert_eq!(arrived.header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    let kept = serde_json::to_string(&record).unwrap();
    assert!(!kept.contains(KEY) && !kept.contains("client-key"), "{kept}");
}

#[tokio::test]
async fn a20_the_name_that_was_asked_for_comes_back() {
    let house = House::open(HOUSE).await;
    let answer = house.chat(&ask("vllm-sr/auto", "x")).await;
    assert_eq!(answer.json()["model"], "vllm-sr/auto");
    assert_eq!(answer.header("x-vsr-selected-model"), Some("small"));
    let told = house.stream(&ask("vllm-sr/auto", "x")).await.told().await;
    let is_alias = |chunk: &Value| chunk["model"] == "vllm-sr/auto";
    assert!(told.is_whole().chunks.iter().all(is_alias), "{:?}", told.chunks);
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(
        (record.requested_model.as_str(), &record.models[..]),
        ("vllm-sr/auto", &["small".into()][..])
    );
}
