//! A panel from end to end: who is asked what, what a request may change, and what is refused.

use crate::support::{Answer, HOUSE, House, ask, user};
use chorus_store::{CallStatus, RunRecord, RunStatus};
use chorus_testkit::{ChatAnswer, Outcome, Received, Script, Step};
use serde_json::{Value, json};

pub(crate) const ANALYSIS: &str = r#"Here you are: {"consensus": ["It is so."], "contradictions": [{"topic": "how", "stances": [{"model": "a", "stance": "slowly"}]}],
  "partial_coverage": [], "unique_insights": ["b is brief"], "blind_spots": ["cost"]}"#;

/// The judge's own words, or the final answer.
pub(crate) fn judge_or_writer(request: &Received) -> Script {
    if is_judgement(request) {
        Script::chat(ChatAnswer::text(ANALYSIS).usage(60, 20))
    } else {
        Script::chat(ChatAnswer::text("the final answer").usage(70, 30))
    }
}

pub(crate) fn is_judgement(request: &Received) -> bool {
    request.last_user_text().contains("Reply with one JSON object")
}

/// Members answer 10 + 5 tokens, judge and writer as above.
pub(crate) fn seat(house: &House) {
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::chat(ChatAnswer::text(&format!("the view of {model}")).usage(10, 5)));
    }
    house.up.on_with("judge", judge_or_writer);
}

fn plugin(fields: &Value) -> Value {
    let mut plugin = json!({"id": "fusion"});
    plugin.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!([plugin])
}

/// Model and role of each call, in order.
fn calls(record: &RunRecord) -> Vec<(&str, &str)> {
    record.calls.iter().map(|call| (call.model.as_str(), call.role.as_str())).collect()
}

async fn recorded(house: &House, answer: &Answer) -> RunRecord {
    house.record(answer.header("x-vsr-replay-id")).await
}

#[tokio::test]
async fn a_panel_a_judge_and_a_writer() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "the final answer"));
    let record = recorded(&house, &answer).await;
    assert_eq!(
        calls(&record),
        [("a", "panel"), ("b", "panel"), ("c", "panel"), ("judge", "judge"), ("judge", "synthesis")]
    );
    assert_eq!((record.status, record.decision.as_deref()), (RunStatus::Ok, Some("deep-fusion")));
    assert!(record.degraded.is_empty() && record.traces.contains_key("fusion"), "{:?}", record.degraded);
    let prompts: Vec<String> = house.up.requests_for("judge").iter().map(Received::last_user_text).collect();
    for view in ["the view of a", "the view of b", "the view of c"] {
        assert!(prompts.iter().all(|prompt| prompt.contains(view)), "{prompts:?}");
    }
}

#[tokio::test]
async fn the_slug_looks_at_fusion_decisions_only() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let answer = house.chat(&ask("vllm-sr/fusion", "hello, nothing matches")).await;
    assert_eq!(answer.text(), "the final answer");
    assert_eq!(recorded(&house, &answer).await.decision.as_deref(), Some("deep-fusion"));
}

/// [`HOUSE`] without its decisions.
fn without_decisions() -> String {
    HOUSE.split("  decisions:").next().unwrap().to_owned()
}

#[tokio::test]
async fn without_a_fusion_decision_the_slug_says_why_not() {
    let house = House::open(&without_decisions()).await;
    for stream in [false, true] {
        let mut request = ask("vllm-sr/fusion", "think deeply");
        request["stream"] = stream.into();
        let answer = house.chat(&request).await;
        let (code, message) = answer.error();
        assert_eq!((answer.status, code.as_str()), (400, "no_fusion_decision"));
        assert!(message.contains("vllm-sr/fusion") && message.contains("analysis_models"), "{message}");
        assert_eq!(recorded(&house, &answer).await.error_code.as_deref(), Some("no_fusion_decision"));
    }
    assert!(house.up.requests().is_empty());
}

#[tokio::test]
async fn a_request_brings_its_own_panel() {
    let house = House::open(&without_decisions()).await;
    seat(&house);
    let mut request = ask("vllm-sr/fusion", "think");
    request["plugins"] = plugin(&json!({"model": "judge", "analysis_models": ["b", "b", "c"]}));
    let answer = house.chat(&request).await;
    assert_eq!(answer.text(), "the final answer");
    assert_eq!(answer.header("x-vsr-selected-decision"), Some("fusion_direct"));
    let record = recorded(&house, &answer).await;
    assert_eq!(
        calls(&record),
        [("b", "panel"), ("b", "panel"), ("c", "panel"), ("judge", "judge"), ("judge", "synthesis")]
    );
    assert_eq!(record.path.as_deref(), Some("request_panel"));
    assert!(house.up.requests().iter().all(|r| r.json().get("plugins").is_none()), "b22");
}

#[tokio::test]
async fn an_override_is_for_one_request() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let plain = ask("vllm-sr/auto", "think deeply");
    let mut own = plain.clone();
    own["plugins"] =
        plugin(&json!({"analysis_models": ["c"], "temperature": 0.5, "include_analysis": false}));
    let first = recorded(&house, &house.chat(&own).await).await;
    assert_eq!(calls(&first), [("c", "panel"), ("judge", "judge"), ("judge", "synthesis")]);
    assert_eq!(house.up.requests_for("c")[0].json()["temperature"], 0.5);
    let second = recorded(&house, &house.chat(&plain).await).await;
    assert_eq!(second.calls.len(), 5);
    assert!(house.up.requests_for("c")[1].json().get("temperature").is_none());
    assert_eq!(first.spec_digest, second.spec_digest);
}

#[tokio::test]
async fn an_override_without_effect_says_so() {
    let house = House::open(HOUSE).await;
    let mut request = ask("vllm-sr/auto", "x");
    request["plugins"] = plugin(&json!({"analysis_models": ["a"]}));
    let answer = house.chat(&request).await;
    assert_eq!(answer.text(), "x");
    let warning = answer.header("x-vsr-response-warnings").unwrap();
    assert!(warning.starts_with("fusion_plugin_unused"), "{warning}");
    assert!(recorded(&house, &answer).await.degraded.iter().any(|d| d.starts_with("fusion_plugin_unused")));
    request["plugins"] = plugin(&json!({"analysis_models": ["a"], "enabled": false}));
    assert_eq!(house.chat(&request).await.header("x-vsr-response-warnings"), None);
}

#[tokio::test]
async fn g16_a_panel_of_routed_names_is_refused() {
    let house = House::open(HOUSE).await;
    let cases = [
        (json!({"analysis_models": ["a", "vllm-sr/auto"]}), "vllm-sr/auto", "recursion"),
        (json!({"analysis_models": ["openrouter/fusion"]}), "openrouter/fusion", "recursion"),
        (json!({"analysis_models": ["a"], "model": "MoM"}), "MoM", "recursion"),
        (json!({"analysis_models": ["a"], "model": "vllm-sr/fusion"}), "vllm-sr/fusion", "recursion"),
        (json!({"analysis_models": ["a", "stranger"]}), "stranger", "does not exist"),
        (json!({"analysis_models": ["a"], "min_successful_responses": 2}), "2", "1 seat"),
    ];
    for (fields, name, why) in cases {
        let mut request = ask("vllm-sr/fusion", "think deeply");
        request["plugins"] = plugin(&fields);
        let answer = house.chat(&request).await;
        let (code, message) = answer.error();
        assert_eq!((answer.status, code.as_str()), (400, "invalid_request"), "{fields}");
        assert!(message.contains(name) && message.contains(why), "{fields}: {message}");
    }
    assert!(house.up.requests().is_empty());
}

fn agent_tools() -> Value {
    json!([{"type": "function", "function": {"name": "web_search", "strict": false, "parameters": {"type": "object", "properties": {"query": {"type": "string"}}}}}])
}

/// Calls the tool until its result is there.
fn agent(request: &Received) -> Script {
    if is_judgement(request) {
        return Script::reply(ANALYSIS);
    }
    let body = request.json();
    let results = body["messages"].as_array().unwrap().iter().filter(|m| m["role"] == "tool").count();
    if body.get("tools").is_some() && results == 0 {
        Script::chat(ChatAnswer::text("").tool_call("call_9", "web_search", r#"{"query":"tides"}"#))
    } else {
        Script::reply("High tide is at noon.")
    }
}

#[tokio::test]
async fn an_agent_loop_goes_through_the_panel_once() {
    let house = House::open(HOUSE).await;
    house.up.on_with("judge", agent);
    let mut request = ask("vllm-sr/fusion", "When is high tide?");
    request["tools"] = agent_tools();
    request["tool_choice"] = "auto".into();
    let answer = house.chat(&request).await;
    let message = answer.json()["choices"][0]["message"].clone();
    assert_eq!(answer.json()["choices"][0]["finish_reason"], "tool_calls");
    assert_eq!(message["tool_calls"][0]["function"]["arguments"], r#"{"query":"tides"}"#);
    only_the_writer_has_tools(&house);

    request["messages"] = json!([
        user("When is high tide?"),
        message,
        {"role": "tool", "tool_call_id": "call_9", "content": "noon"}
    ]);
    let told = house.stream(&request).await.told().await;
    assert_eq!(told.is_whole().text, "High tide is at noon.");
    assert_eq!(told.finishes, ["stop"]);
    only_the_writer_has_tools(&house);
    assert_eq!(house.up.requests().len(), 6, "g25: the second turn is the writer's alone");
}

/// DESIGN.md §5.5, and the writer's tools are the client's bytes.
fn only_the_writer_has_tools(house: &House) {
    for request in house.up.requests() {
        let body = request.json();
        let is_writer = request.model == "judge" && !is_judgement(&request);
        assert_eq!(body.get("tools").is_some(), is_writer, "{body}");
        assert_eq!(body.get("tool_choice").is_some(), is_writer, "{body}");
        if is_writer {
            assert_eq!(body["tools"].to_string(), agent_tools().to_string());
        } else {
            let traffic = body["messages"]
                .as_array()
                .unwrap()
                .iter()
                .any(|m| m["role"] == "tool" || m.get("tool_calls").is_some());
            assert!(!traffic, "{body}");
        }
    }
}

#[tokio::test]
async fn a_judge_that_answers_prose_degrades_and_does_not_fail() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on_each("judge", [Script::reply("I think that they all agree."), Script::reply("the answer")]);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "the answer"));
    assert_eq!(answer.json()["fusion"]["degraded_by"], json!(["judge_unparsed"]));
    let record = recorded(&house, &answer).await;
    assert_eq!(
        (record.status, record.degraded.as_slice()),
        (RunStatus::Ok, &["judge_unparsed".to_owned()][..])
    );
    let writer = &house.up.requests_for("judge")[1].last_user_text();
    assert!(writer.contains("I think that they all agree.") && writer.contains("the view of b"), "{writer}");
}

#[tokio::test]
async fn a_judge_that_fails_leaves_the_raw_answers() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on_each("judge", [Script::error(500, "no"), Script::reply("the answer")]);
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "the answer");
    assert_eq!(answer.json()["fusion"]["degraded_by"], json!(["judge_unavailable"]));
    let record = recorded(&house, &answer).await;
    assert_eq!(record.calls.iter().map(|c| c.status).filter(|s| *s == CallStatus::Failed).count(), 1);
}

#[tokio::test]
async fn g06_when_every_member_fails_no_judge_is_called() {
    let house = House::open(HOUSE).await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::error(500, "pg://user:pw@10.1.2.3"));
    }
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    let (code, message) = answer.error();
    assert_eq!((answer.status, code.as_str()), (502, "quorum_not_reached"));
    assert!(message.contains("a: ") && !message.contains("pw@"), "{message}");
    assert!(house.up.requests_for("judge").is_empty());
    let record = recorded(&house, &answer).await;
    assert_eq!((record.status, record.calls.len()), (RunStatus::Failed, 3));
    assert!(record.traces.contains_key("fusion"), "the trace of a failed run is kept");
}

#[tokio::test]
async fn g01_blank_answers_make_no_quorum() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on("b", Script::reply("   "));
    house.up.on("c", Script::error(500, "no"));
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["plugins"] = plugin(&json!({"min_successful_responses": 2}));
    let answer = house.chat(&request).await;
    assert_eq!(answer.error().0, "quorum_not_reached");
    assert!(house.up.requests_for("judge").is_empty());
    let record = recorded(&house, &answer).await;
    assert!(record.usage.prompt_tokens >= 20, "{:?}", record.usage);
}

#[tokio::test]
async fn g07_errors_of_members_reach_neither_judge_nor_client() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on("b", Script::error(500, "pg://user:pw@10.1.2.3"));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(answer.text(), "the final answer");
    assert_eq!(answer.json()["fusion"]["failed_models"][0]["model"], "b");
    assert_eq!(answer.json()["fusion"]["degraded_by"], json!(["member_failed"]));
    let seen = |text: &str| text.contains("pw@") || text.contains("10.1.2.3");
    assert!(!seen(&String::from_utf8_lossy(&answer.body)));
    for request in house.up.requests_for("judge") {
        let prompt = request.last_user_text();
        assert!(!seen(&prompt) && !prompt.contains("500"), "{prompt}");
    }
}

#[tokio::test]
async fn g02_an_implicit_judge_is_a_survivor() {
    let file = HOUSE.replace("model: judge, analysis_models", "analysis_models");
    let house = House::open(&file).await;
    house.up.on("a", Script::error(503, "no"));
    house.up.on_with("b", |request| Script::reply(if is_judgement(request) { ANALYSIS } else { "by b" }));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.text().as_str(), answer.header("x-vsr-looper-model")), ("by b", Some("b")));
}

#[tokio::test]
async fn g14_the_rounds_time_ends_calls_and_keeps_others_from_starting() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on("b", Script::raw([Step::Stall]));
    let mut request = ask("vllm-sr/auto", "think deeply");
    for (at_once, called) in [(3, 3), (1, 2)] {
        request["plugins"] = plugin(&json!({"round_timeout_seconds": 0.1, "max_concurrent": at_once}));
        let answer = house.chat(&request).await;
        assert_eq!(answer.text(), "the final answer");
        let failed = &answer.json()["fusion"]["failed_models"];
        assert_eq!((&failed[0]["model"], &failed[0]["kind"]), (&json!("b"), &json!("timeout")));
        let record = recorded(&house, &answer).await;
        let panel: Vec<_> = record.calls.iter().filter(|call| call.role == "panel").collect();
        assert_eq!((panel.len(), panel[1].error.as_deref()), (called, Some("timeout")));
        assert!(panel[1].usage.estimated && record.usage.estimated);
    }
    assert!(house.up.wait(|up| up.requests_for("b").iter().all(|r| r.outcome == Outcome::ClientLeft)).await);
    assert_eq!(house.up.requests_for("c").len(), 1);
}

#[tokio::test]
async fn g14_whoever_the_quorum_does_not_wait_for_is_dropped() {
    let house = House::open(HOUSE).await;
    seat(&house);
    house.up.on("b", Script::raw([Step::Stall]));
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["plugins"] = plugin(&json!({"min_successful_responses": 2}));
    let answer = house.chat(&request).await;
    assert_eq!(answer.text(), "the final answer");
    assert_eq!(answer.json()["fusion"]["cancelled_models"], json!(["b"]));
    assert_eq!(answer.json()["fusion"]["degraded"], false);
    assert!(house.up.wait(|up| up.requests_for("b")[0].outcome == Outcome::ClientLeft).await);
    let record = recorded(&house, &answer).await;
    assert_eq!((record.calls[1].model.as_str(), record.calls[1].status), ("b", CallStatus::Cancelled));
    assert!(record.calls[1].usage.estimated && record.usage.estimated);
}

#[tokio::test]
async fn identical_answers_are_shown_once_with_their_count() {
    let house = House::open(HOUSE).await;
    seat(&house);
    for model in ["a", "c"] {
        house.up.on(model, Script::reply("It is forty-two."));
    }
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(
        answer.json()["fusion"]["identical"][0],
        json!({"label": "A", "models": ["a", "c"], "count": 2})
    );
    for request in house.up.requests_for("judge") {
        assert_eq!(request.last_user_text().matches("It is forty-two.").count(), 1);
    }
}

/// 3 members of 10 + 5, a judge of 60 + 20, a writer of 70 + 30.
#[tokio::test]
async fn g17_usage_is_the_sum_of_all_calls_streamed_or_not() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let expect = json!({"prompt_tokens": 160, "completion_tokens": 65, "total_tokens": 225});
    let mut request = ask("vllm-sr/auto", "think deeply");
    let whole = house.chat(&request).await;
    assert_eq!(whole.json()["usage"], expect);
    for (name, sum) in [("prompt", "160"), ("completion", "65"), ("total", "225")] {
        assert_eq!(whole.header(&format!("x-vsr-looper-{name}-tokens")), Some(sum));
    }
    let record = recorded(&house, &whole).await;
    assert_eq!((record.usage.total_tokens, record.usage.estimated), (225, false));
    // Only `a` has a price: 10 at 1 dollar and 5 at 2 dollars a million.
    assert_eq!((record.cost_micro_usd, record.calls[0].cost_micro_usd), (20, 20));

    request["stream_options"] = json!({"include_usage": true});
    let told = house.stream(&request).await.told().await;
    assert_eq!(told.is_whole().usage, Some(expect));
    assert_eq!(told.chunks.last().unwrap()["choices"], json!([]));

    house.up.on("b", Script::error(500, "no"));
    let failed = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    let usage = &failed.json()["usage"];
    assert!(usage["prompt_tokens"].as_u64() > Some(150), "a failed member's prompt counts: {usage}");
    assert!(recorded(&house, &failed).await.usage.estimated);
}
