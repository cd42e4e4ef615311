//! What a client can get wrong: each is a clear error in the API's shape, and the next request is served.

use crate::support::{HOUSE, House, ask, user};
use chorus_store::RunStatus;
use serde_json::{Value, json};

/// Body, status, code, and the field at fault.
const BAD: [(&str, u16, &str, Option<&str>); 16] = [
    ("", 400, "invalid_request", None),
    ("{\"model\": \"small\", \"messages\": [", 400, "invalid_request", None),
    ("[1, 2]", 400, "invalid_request", None),
    ("\u{0}\u{1}", 400, "invalid_request", None),
    (r#"{"messages": [{"role": "user", "content": "x"}]}"#, 400, "invalid_request", Some("model")),
    (
        r#"{"model": "", "messages": [{"role": "user", "content": "x"}]}"#,
        400,
        "invalid_request",
        Some("model"),
    ),
    (
        r#"{"model": 7, "messages": [{"role": "user", "content": "x"}]}"#,
        400,
        "invalid_request",
        Some("model"),
    ),
    (
        r#"{"model": "nobody", "messages": [{"role": "user", "content": "x"}]}"#,
        404,
        "model_not_found",
        Some("model"),
    ),
    (
        r#"{"model": "vllm-sr/remom", "messages": [{"role": "user", "content": "x"}]}"#,
        400,
        "no_looper_decision",
        Some("model"),
    ),
    (r#"{"model": "small"}"#, 400, "invalid_request", Some("messages")),
    (r#"{"model": "small", "messages": []}"#, 400, "invalid_request", Some("messages")),
    (r#"{"model": "small", "messages": "hi"}"#, 400, "invalid_request", Some("messages")),
    (
        r#"{"model": "small", "messages": [{"role": "user", "content": "x"}], "temperature": 9}"#,
        400,
        "invalid_request",
        Some("temperature"),
    ),
    (
        r#"{"model": "small", "messages": [{"role": "user", "content": "x"}], "stream": "yes"}"#,
        400,
        "invalid_request",
        Some("stream"),
    ),
    (
        r#"{"model": "vllm-sr/fusion", "messages": [{"role": "user", "content": "x"}], "n": 3}"#,
        400,
        "invalid_request",
        Some("n"),
    ),
    (
        r#"{"model": "vllm-sr/fusion", "messages": [{"role": "user", "content": "x"}], "plugins": [{"id": "fusion", "analysis_model": ["a"]}]}"#,
        400,
        "invalid_request",
        Some("plugins"),
    ),
];

#[tokio::test]
async fn b07_every_bad_body_is_an_error_of_the_api() {
    let house = House::open(HOUSE).await;
    for (body, status, code, param) in BAD {
        let answer = house.post("/v1/chat/completions", body).await;
        let (said, message) = answer.error();
        assert_eq!((answer.status, said.as_str()), (status, code), "{body}: {message}");
        assert_eq!(answer.json().pointer("/error/param").and_then(Value::as_str), param, "{body}");
        assert!(!message.is_empty() && answer.header("x-request-id").is_some(), "{body}");
        assert_eq!(answer.header("content-type"), Some("application/json"));
    }
    assert!(house.up.requests().is_empty(), "no backend hears of it");
    house.still_serves().await;
    // Bodies that are requests, if refused ones, were runs: they left records with their reason.
    let records = house.all_records(5).await;
    let codes: Vec<_> = records.iter().rev().map(|r| (r.status, r.error_code.as_deref())).collect();
    let failed = |code| (RunStatus::Failed, Some(code));
    assert_eq!(
        codes,
        [
            failed("model_not_found"),
            failed("no_looper_decision"),
            failed("invalid_request"),
            failed("invalid_request"),
            (RunStatus::Ok, None),
        ]
    );
}

#[tokio::test]
async fn a_bad_stream_request_is_a_status_too() {
    let house = House::open(HOUSE).await;
    let answer = house.stream(&ask("nobody", "x")).await.whole().await;
    assert_eq!((answer.status, answer.error().0.as_str()), (404, "model_not_found"));
}

#[tokio::test]
async fn i03_refusals_of_the_door_have_the_same_shape_and_an_id() {
    let house = House::open(HOUSE).await;
    for (answer, status, code) in [
        (house.get("/v1/nothing").await, 404, "not_found"),
        (house.get("/v1/chat/completions").await, 405, "method_not_allowed"),
        (house.get("/v1/models/nobody").await, 404, "model_not_found"),
        (house.get("/v1/models/%ff").await, 404, "model_not_found"),
        (house.post("/api/v1/eval", "{").await, 400, "invalid_request"),
        (house.post("/api/v1/eval?trace=maybe", "{}").await, 400, "invalid_request"),
        (house.post("/api/v1/eval", "{}").await, 400, "invalid_request"),
    ] {
        assert_eq!((answer.status, answer.error().0.as_str()), (status, code));
        assert!(answer.header("x-request-id").is_some(), "{code}");
    }
}

#[tokio::test]
async fn a_prompt_of_200_000_tokens_reaches_no_backend() {
    let house = House::open(HOUSE).await;
    let long = "word ".repeat(160_000);
    let deep = format!("deeply {long}");
    for (model, text) in
        [("small", &long), ("vllm-sr/auto", &long), ("vllm-sr/auto", &deep), ("vllm-sr/fusion", &long)]
    {
        for stream in [false, true] {
            let mut request = ask(model, text);
            request["stream"] = stream.into();
            let answer = house.chat(&request).await;
            let (code, message) = answer.error();
            assert_eq!((answer.status, code.as_str()), (400, "context_length_exceeded"), "{message}");
            assert!(message.contains("65536"), "the largest window of the house: {message}");
            let record = house.record(answer.header("x-vsr-replay-id")).await;
            assert_eq!(
                (record.status, record.error_code.as_deref()),
                (RunStatus::Failed, Some("context_length_exceeded"))
            );
        }
    }
    assert!(house.up.requests().is_empty());
    house.still_serves().await;
}

/// It fits the judge's window, but nobody who would have to answer.
#[tokio::test]
async fn a_prompt_too_long_for_its_candidates_reaches_no_backend() {
    let house = House::open(HOUSE).await;
    let long = "word ".repeat(32_000);
    let deep = format!("deeply {long}");
    for (model, text, path) in [
        ("small", &long, "direct"),
        ("vllm-sr/auto", &long, "default"),
        ("vllm-sr/auto", &deep, "decision"),
        ("vllm-sr/fusion", &long, "decision"),
    ] {
        let answer = house.chat(&ask(model, text)).await;
        let (code, message) = answer.error();
        assert_eq!((answer.status, code.as_str()), (400, "context_length_exceeded"), "{message}");
        assert!(message.contains("32768"), "{message}");
        let record = house.record(answer.header("x-vsr-replay-id")).await;
        assert_eq!(record.path.as_deref(), Some(path));
    }
    assert!(house.up.requests().is_empty());
    assert_eq!(house.chat(&ask("judge", &long)).await.status, 200);
}

#[tokio::test]
async fn a_long_conversation_counts_as_a_whole() {
    let house = House::open(HOUSE).await;
    let turns: Vec<Value> = (0..40).map(|_| user(&"word ".repeat(4000))).collect();
    let answer = house.chat(&json!({"model": "small", "messages": turns})).await;
    assert_eq!(answer.error().0, "context_length_exceeded");
    let little = house.chat(&json!({"model": "small", "messages": turns[..2]})).await;
    assert_eq!(little.status, 200);
}

/// A server with such a file does not start: there is no `Spec` to start with.
#[test]
fn broken_files_are_refused_before_a_door_opens() {
    let model = r#"{ name: m, backend_refs: [{ base_url: "http://127.0.0.1:9/v1" }] }"#;
    let with = |routing: &str| {
        format!(
            "version: v0.3\nproviders: {{ models: [{model}] }}\nrouting:\n  modelCards: [{{ name: m }}]\n{routing}"
        )
    };
    let score = |name: &str, of: &str| {
        format!(
            "{{ name: {name}, method: weighted_sum, inputs: [{{ type: projection, name: {of}, weight: 1 }}] }}"
        )
    };
    let mapping = |name: &str, of: &str| {
        format!(
            "{{ name: map_{of}, source: {of}, method: threshold_bands, outputs: [{{ name: {name}, gte: 0 }}] }}"
        )
    };
    let cycle = with(&format!(
        "  projections: {{ scores: [{}, {}], mappings: [{}, {}] }}\n  decisions: [{{ name: d, modelRefs: [{{ model: m }}] }}]\n",
        score("one", "out_two"),
        score("two", "out_one"),
        mapping("out_one", "one"),
        mapping("out_two", "two"),
    ));
    let missing = with(
        "  decisions: [{ name: d, rules: { type: keyword, name: nowhere }, modelRefs: [{ model: m }] }]\n",
    );
    let homeless = "version: v0.3\nproviders: { models: [{ name: m }] }\nrouting:\n  modelCards: [{ name: m }]\n  decisions: [{ name: d, modelRefs: [{ model: m }] }]\n";
    for (file, expect) in [
        ("version: v0.3\nproviders: [}\n", "yaml"),
        (&cycle, "cycle"),
        (&missing, "nowhere"),
        (homeless, "backend"),
    ] {
        let checked = chorus_spec::read(file);
        assert!(checked.spec.is_none(), "{expect}");
        let told =
            checked.diagnostics.iter().any(|d| d.render("f.yaml", file).to_lowercase().contains(expect));
        assert!(told, "{expect}: {:#?}", checked.diagnostics);
    }
}
