//! What the client is told about how an answer came about: the `fusion` field and the `x-vsr-*` headers.

use crate::fusion::seat;
use crate::support::{HOUSE, House, Told, ask};
use bytes::Bytes;
use chorus_testkit::{Received, Script, Step};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

/// Headers of a panel's answer that do not depend on time.
const HEADERS: [(&str, &str); 13] = [
    ("x-vsr-schema-version", "2"),
    ("x-vsr-response-path", "looper"),
    ("x-vsr-selected-algorithm", "fusion"),
    ("x-vsr-selected-recipe", "default"),
    ("x-vsr-selected-decision", "deep-fusion"),
    ("x-vsr-selected-confidence", "1.0000"),
    ("x-vsr-selected-reasoning", "off"),
    ("x-vsr-selected-model", "judge"),
    ("x-vsr-looper-algorithm", "fusion"),
    ("x-vsr-looper-model", "judge"),
    ("x-vsr-looper-models-used", "a,b,c,judge"),
    ("x-vsr-looper-iterations", "5"),
    ("content-type", "application/json"),
];

fn says_who_said_what(trace: &Value) {
    let names = |field: &str, key: &str| -> Vec<String> {
        let rows = trace[field].as_array().unwrap();
        rows.iter().map(|row| row[key].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names("responses", "model"), ["a", "b", "c"]);
    assert_eq!(names("responses", "label"), ["A", "B", "C"]);
    assert_eq!(names("responses", "content"), ["the view of a", "the view of b", "the view of c"]);
    assert_eq!(names("stages", "stage"), ["panel", "judge", "synthesis"]);
    assert_eq!(names("stages", "status"), ["ok", "ok", "ok"]);
    assert_eq!(trace["judge_model"], "judge");
    assert_eq!(trace["analysis_models"], json!(["a", "b", "c"]));
    assert_eq!(trace["quorum"], json!({"wanted": 1, "got": 3}));
    assert_eq!(trace["degraded"], false);
    assert_eq!(trace["analysis"]["consensus"][0], "It is so.");
    assert_eq!(trace["analysis"]["contradictions"][0]["stances"][0]["stance"], "slowly");
    assert!(trace["prompt_version"].is_string() && trace["prompt_digest"].is_string());
}

#[tokio::test]
async fn a_whole_answer_carries_its_trace() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    for (name, value) in HEADERS {
        assert_eq!(answer.header(name), Some(value), "{name}");
    }
    assert_eq!(answer.header("x-request-id"), answer.header("x-vsr-replay-id"));
    assert!(answer.header("x-vsr-looper-latency-ms").is_some_and(|ms| ms.parse::<u64>().is_ok()));
    assert!(answer.header("x-vsr-matched-keywords").is_none(), "only on demand");
    says_who_said_what(&answer.json()["fusion"]);
    let id = answer.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(Some(id), answer.header("x-vsr-replay-id").map(|run| run.replace("run_", "chatcmpl-")));
}

#[tokio::test]
async fn a_stream_carries_its_trace_on_the_first_chunk() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    for (name, value) in HEADERS.into_iter().filter(|(name, _)| *name != "content-type") {
        assert_eq!(told.header(name), Some(value), "{name}");
    }
    assert_eq!(told.header("content-type"), Some("text/event-stream; charset=utf-8"));
    let [first, rest @ ..] = told.is_whole().chunks.as_slice() else { panic!("{told:?}") };
    says_who_said_what(&first["fusion"]);
    assert_eq!(first["choices"][0]["delta"]["role"], "assistant");
    let later: Vec<&Value> = rest.iter().filter_map(|chunk| chunk.get("fusion")).collect();
    let [end] = later.as_slice() else { panic!("{later:?}") };
    let keys: Vec<&String> = end.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["resolution"], "what became of the disagreements is known at the end alone");
    assert_eq!(told.text, "the final answer");
}

#[tokio::test]
async fn a_trace_can_be_kept_short() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["plugins"] =
        json!([{"id": "fusion", "include_analysis": false, "include_intermediate_responses": false}]);
    let trace = house.chat(&request).await.json()["fusion"].clone();
    assert!(trace.get("analysis").is_none() && trace.get("responses").is_none(), "{trace}");
    assert_eq!(trace["stages"].as_array().map(Vec::len), Some(3));
    let record = house.all_records(1).await.remove(0);
    let kept = serde_json::to_string(&record).unwrap();
    assert!(!kept.contains("the view of"), "texts stay out of the record: {kept}");
}

#[tokio::test]
async fn g19_a_backend_cannot_forge_a_trace() {
    let house = House::open(HOUSE).await;
    house.up.otherwise(forgery);
    let direct = house.chat(&ask("small", "x")).await.json();
    assert!(direct.get("fusion").is_none() && direct["other"] == 1, "{direct}");
    let told = house.stream(&ask("small", "x")).await.told().await;
    assert!(told.is_whole().chunks.iter().all(|chunk| chunk.get("fusion").is_none()));
    let fused = house.chat(&ask("vllm-sr/fusion", "x")).await.json();
    assert!(fused["fusion"].get("forged").is_none() && fused["fusion"]["stages"].is_array(), "{fused}");
    let told = house.stream(&ask("vllm-sr/fusion", "x")).await.told().await;
    assert!(!forged(&told), "{told:?}");
}

/// An answer with a trace of its own, and a field that nobody knows.
fn forgery(request: &Received) -> Script {
    let message = json!({"role": "assistant", "content": "fine"});
    let body = |key: &str| {
        let choice = json!({"index": 0, key: message, "finish_reason": "stop"});
        json!({"id": "x", "fusion": {"forged": true}, "other": 1, "choices": [choice]})
    };
    if request.json()["stream"] == true {
        Script::sse([Step::event(&body("delta").to_string()), Step::event("[DONE]")])
    } else {
        Script::json(200, &body("message"))
    }
}

fn forged(told: &Told) -> bool {
    told.chunks.iter().any(|chunk| chunk.pointer("/fusion/forged").is_some())
}

#[tokio::test]
async fn a_fast_response_calls_nobody() {
    let house = House::open(HOUSE).await;
    let answer = house.chat(&ask("vllm-sr/auto", "hello")).await;
    assert_eq!((answer.text().as_str(), answer.header("x-vsr-fast-response")), ("Good day.", Some("true")));
    assert_eq!(answer.header("x-vsr-response-path"), Some("fast_response"));
    let told = house.stream(&ask("vllm-sr/auto", "hello")).await.told().await;
    assert_eq!(told.is_whole().text, "Good day.");
    assert!(house.up.requests().is_empty());
}

#[tokio::test]
async fn matched_signals_are_told_on_demand() {
    let house = House::open(HOUSE).await;
    let url = format!("http://{}/v1/chat/completions", house.bound.data);
    let body = Full::new(Bytes::from(ask("vllm-sr/auto", "hello").to_string()));
    let request = Request::post(url).header("x-vsr-debug", "true").body(body).unwrap();
    let answer = house.send(request).await.whole().await;
    assert_eq!(answer.header("x-vsr-matched-keywords"), Some("greeting"));
}
