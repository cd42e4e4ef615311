//! The form of the final answer from end to end: a route's output contract, and a client's `response_format`.

use crate::fusion::{is_judgement, seat};
use crate::loopers::{calls, house_of};
use crate::support::{HOUSE, House, ask};
use chorus_testkit::{ChatAnswer, Received, Script};
use serde_json::{Value, json};

const RATED: &str = "{ type: ratings, ratings: { raters: components, aggregate: best } }";
const CHOICE: &str = "{ type: choice, choice_set: { values: [A, B, C] }, render: { mode: template, template: 'ANSWER: {{choice}}' }";

/// A house whose panel route promises that form.
fn promising(house: &str, contract: &str) -> String {
    house.replace(
        "      priority: 100\n",
        &format!("      priority: 100\n      output_contract_spec: {contract}\n"),
    )
}

async fn say(house: &House, texts: [(&str, &str); 3]) {
    for (model, text) in texts {
        house.up.on(model, Script::chat(ChatAnswer::text(text).usage(10, 5)));
    }
}

#[tokio::test]
async fn a_choice_is_written_as_it_is_promised() {
    let house = House::open(&promising(&house_of(RATED), &format!("{CHOICE} }}"))).await;
    say(&house, [("a", "After much thought, the answer is B."), ("b", "C"), ("c", "C")]).await;
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ANSWER: B"));
    let told = answer.json()["output_contract"].clone();
    let want = json!({"kind": "choice", "repaired": true, "sent_back": false, "by_majority": false, "violated": false});
    assert_eq!(told, want);
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(record.traces["output_contract"], want);
}

#[tokio::test]
async fn the_members_majority_stands_in_for_a_value_that_is_not_there() {
    let house = House::open(&promising(HOUSE, &format!("{CHOICE} }}"))).await;
    say(&house, [("a", "ANSWER: C"), ("b", "ANSWER: A"), ("c", "I take C. ANSWER: C")]).await;
    house.up.on("judge", Script::reply("It is hard to say."));
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert_eq!(told.is_whole().text, "ANSWER: C");
    assert_eq!(told.chunks[0]["output_contract"]["by_majority"], true);
    assert!(told.chunks[0].get("fusion").is_some(), "both traces ride in front");
}

#[tokio::test]
async fn a_broken_contract_is_sent_back_once_then_falls_back_and_is_marked() {
    let contract = format!("{CHOICE}, on_violation: {{ repair: true, fallback: 'ANSWER: none' }} }}");
    let house = House::open(&promising(&house_of(RATED), &contract)).await;
    say(&house, [("a", "No idea."), ("b", "None."), ("c", "Neither.")]).await;
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, "ANSWER: none"));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record).last().unwrap(), "a repair");
    assert_eq!(record.calls.len(), 4);
    assert_eq!(record.degraded, ["output_contract_violated"]);
    assert_eq!(answer.json()["usage"]["total_tokens"], 60, "the repair is counted");
    let told = answer.json()["output_contract"].clone();
    assert_eq!((&told["sent_back"], &told["violated"]), (&json!(true), &json!(true)));
}

/// One model, whose route promises JSON for an agent at a terminal.
fn terminal() -> String {
    let contract = "{ type: structured_json, json_schema: { schema_ref: terminal_action_v1 }, normalize: { defaults: { task_complete: false } }, on_violation: { repair: true } }";
    promising(&house_of("{ type: static }"), contract)
}

#[tokio::test]
async fn one_model_keeps_a_contract_too_and_a_stream_is_held() {
    let house = House::open(&terminal()).await;
    let action = r#"Sure: ```json
{"plan": "look", "analysis": "new", "commands": [{"keystrokes": "ls\n"}],}
```"#;
    house.up.on("a", Script::chat(ChatAnswer::text(action).usage(10, 5)));
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    let want = r#"{"analysis":"new","plan":"look","commands":[{"keystrokes":"ls\n"}],"task_complete":false}"#;
    assert_eq!(told.is_whole().text, want);
    assert!(house.up.requests().iter().all(|request| request.json()["stream"] != true), "held");
}

#[tokio::test]
async fn a_repair_sees_question_answer_and_fault_and_no_tools() {
    let house = House::open(&terminal()).await;
    house.up.on_each(
        "a",
        [
            Script::reply("I would look around first."),
            Script::reply(r#"{"analysis":"n","plan":"p","commands":[],"task_complete":false}"#),
        ],
    );
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["tools"] =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let answer = house.chat(&request).await;
    assert_eq!(answer.status, 200);
    assert!(answer.text().starts_with(r#"{"analysis":"n""#), "{}", answer.text());
    let repair = house.up.requests()[1].json();
    assert!(repair.get("tools").is_none());
    let prompt = repair["messages"].to_string();
    assert!(
        ["think deeply", "I would look around first.", "task_complete"].iter().all(|it| prompt.contains(it))
    );
}

#[tokio::test]
async fn calls_of_tools_and_refusals_pass_a_contract() {
    let house = House::open(&terminal()).await;
    house.up.on("a", Script::chat(ChatAnswer::text("").tool_call("t", "f", "{}")));
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["tools"] =
        json!([{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]);
    let answer = house.chat(&request).await.json();
    assert_eq!(answer["choices"][0]["message"]["tool_calls"][0]["id"], "t");
    let refusal = json!({"id": "x", "object": "chat.completion", "choices": [{"index": 0, "finish_reason": "stop",
        "message": {"role": "assistant", "content": "", "refusal": "I will not."}}]});
    house.up.on("a", Script::json(200, &refusal));
    let answer = house.chat(&ask("vllm-sr/auto", "think deeply")).await.json();
    assert_eq!(answer["choices"][0]["message"]["refusal"], "I will not.");
    assert_eq!(answer["output_contract"]["violated"], false);
}

/// A request for an object with a whole number.
fn wishing(model: &str) -> Value {
    let schema = json!({"type": "object", "required": ["year"], "additionalProperties": false,
        "properties": {"year": {"type": "integer"}}});
    let mut request = ask(model, "think deeply");
    request["response_format"] =
        json!({"type": "json_schema", "json_schema": {"name": "year", "strict": true, "schema": schema}});
    request
}

/// Members as ever; the writer says these things, one after the other.
fn writes(house: &House, texts: &'static [&'static str]) {
    seat(house);
    let said = std::sync::atomic::AtomicUsize::new(0);
    house.up.on_with("judge", move |request: &Received| {
        if is_judgement(request) {
            return Script::reply(crate::fusion::ANALYSIS);
        }
        let at = said.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        Script::chat(ChatAnswer::text(texts[at.min(texts.len() - 1)]).usage(10, 5))
    });
}

#[tokio::test]
async fn g27_a_schema_holds_through_a_panel_and_members_never_see_it() {
    let house = House::open(HOUSE).await;
    writes(&house, &["```json\n{\"year\": 1932}\n```"]);
    let answer = house.chat(&wishing("vllm-sr/auto")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"year":1932}"#));
    for request in house.up.requests() {
        let wished = request.json().get("response_format").is_some();
        assert_eq!(wished, request.model == "judge" && !is_judgement(&request), "{}", request.model);
    }
    let told = house.stream(&wishing("vllm-sr/auto")).await.told().await;
    assert_eq!(told.is_whole().text, r#"{"year":1932}"#);
}

#[tokio::test]
async fn g27_an_answer_that_breaks_the_schema_is_mended_once() {
    let house = House::open(HOUSE).await;
    writes(&house, &["In 1932.", r#"{"year": 1932}"#]);
    let answer = house.chat(&wishing("vllm-sr/auto")).await;
    assert_eq!((answer.status, answer.text().as_str()), (200, r#"{"year": 1932}"#));
    assert_eq!(answer.json()["output_contract"]["sent_back"], true);
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    assert_eq!(calls(&record).last().unwrap(), "judge repair");
}

#[tokio::test]
async fn g27_an_answer_that_stays_broken_is_an_error_and_no_stream() {
    let house = House::open(HOUSE).await;
    writes(&house, &[r#"{"year": "1932"}"#]);
    for streams in [false, true] {
        let mut request = wishing("vllm-sr/auto");
        request["stream"] = streams.into();
        let answer = house.chat(&request).await;
        let (code, message) = answer.error();
        assert_eq!((answer.status, code.as_str()), (502, "output_invalid"));
        assert!(message.contains("/year"), "{message}");
    }
}

#[tokio::test]
async fn a_json_object_is_held_and_a_schema_that_is_none_is_refused() {
    let house = House::open(HOUSE).await;
    writes(&house, &["Here: {\"a\": 1}. Fine?"]);
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["response_format"] = json!({"type": "json_object"});
    assert_eq!(house.chat(&request).await.text(), r#"{"a":1}"#);
    request["response_format"] =
        json!({"type": "json_schema", "json_schema": {"schema": {"type": "objekt"}}});
    let answer = house.chat(&request).await;
    assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!("response_format")));
}

#[tokio::test]
async fn one_model_alone_keeps_its_own_format_and_streams_it() {
    let house = House::open(HOUSE).await;
    house.up.on("acme/small-fp8", Script::stream(["{\"ye", "ar\": \"?\"}"]));
    let told = house
        .stream(&{
            let mut it = wishing("vllm-sr/auto");
            it["messages"][0]["content"] = "hi there".into();
            it
        })
        .await
        .told()
        .await;
    assert_eq!(told.is_whole().text, "{\"year\": \"?\"}");
    assert_eq!(house.up.requests()[0].json()["response_format"]["type"], "json_schema");
}
