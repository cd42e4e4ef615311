//! Quirks of backends' streams, as they come out at the door: through one model, and through the writer of a panel.

use crate::support::{Event, HOUSE, House, Setup, Told, ask};
use chorus_testkit::openai::chunk;
use chorus_testkit::{ChatAnswer, Gate, Script, Step};
use serde_json::{Value, json};
use std::time::Duration;

fn event(delta: &Value) -> Step {
    Step::event(&chunk("x", delta).to_string())
}

fn raw(body: &Value) -> Step {
    Step::event(&body.to_string())
}

fn stop() -> Step {
    raw(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
}

fn done() -> Step {
    Step::event("[DONE]")
}

/// Name, what the backend sends, and the text and finish reason that the client sees.
fn texts() -> Vec<(&'static str, Vec<Step>, &'static str)> {
    let otter = event(&json!({"content": "źdźbło 🦦 海"}));
    let Step::Write(otter) = otter else { panic!("an event is one write") };
    let grammar = concat!(
        ": hi\r\n\r\ndata:{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"fi\"}}]}\r\n\r\ndata: \r\n\r\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"ne\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]"
    );
    let empty = |text: &str| {
        raw(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ""}]}))
    };
    vec![
        ("a09_letters_byte_by_byte", vec![Step::Trickle(otter), stop(), done()], "źdźbło 🦦 海"),
        ("a10_grammar", vec![Step::write(grammar)], "fine"),
        (
            "a11_reports",
            vec![
                raw(&json!({"id": "", "choices": [], "prompt_filter_results": []})),
                raw(&json!({"choices": [{"index": 0, "finish_reason": null, "content_filter_results": {}}]})),
                event(&json!({"content": "fine"})),
                stop(),
                done(),
            ],
            "fine",
        ),
        ("a25_empty_reasons", vec![empty("fi"), empty("ne"), stop(), done()], "fine"),
        ("no [DONE]", vec![event(&json!({"content": "fine"})), stop()], "fine"),
        (
            "b15_parts",
            vec![event(&json!({"content": [{"type": "text", "text": "fine"}]})), stop(), done()],
            "fine",
        ),
    ]
}

#[tokio::test]
async fn quirks_of_text_do_not_show() {
    let house = House::open(HOUSE).await;
    for (name, steps, text) in texts() {
        house.up.on("acme/small-fp8", Script::sse(steps.clone()));
        house.up.on_each("judge", [Script::reply("no analysis"), Script::sse(steps.clone())]);
        for model in ["small", "vllm-sr/fusion"] {
            let told = house.stream(&ask(model, "x")).await.told().await;
            assert_eq!(told.is_whole().text, text, "{name}, {model}");
            one_identity(&told, model);
        }
        // Events where JSON was asked for come out as JSON.
        assert_eq!(house.chat(&ask("small", "x")).await.text(), text, "{name}");
    }
}

/// A21: one id, one time, the role once.
fn one_identity(told: &Told, model: &str) {
    let same = |field: &str| told.chunks.iter().all(|chunk| chunk[field] == told.chunks[0][field]);
    assert!(same("id") && same("created") && told.chunks[0]["model"] == model, "{:?}", told.chunks);
    let roles = told.chunks.iter().filter(|chunk| chunk.pointer("/choices/0/delta/role").is_some());
    assert_eq!(roles.count(), 1, "{:?}", told.chunks);
}

#[tokio::test]
async fn a01_a02_tool_calls_are_numbered_by_id() {
    let house = House::open(HOUSE).await;
    let call = |index: Option<u32>, id: &str, arguments: &str| {
        let mut call =
            json!({"id": id, "type": "function", "function": {"name": "tide", "arguments": arguments}});
        if let Some(index) = index {
            call["index"] = index.into();
        }
        event(&json!({"tool_calls": [call]}))
    };
    for (name, calls) in [
        ("a01_no_index", [call(None, "t1", r#"{"port":"Brest"}"#), call(None, "t2", r#"{"port":"Hull"}"#)]),
        (
            "a02_from_one",
            [call(Some(1), "t1", r#"{"port":"Brest"}"#), call(Some(2), "t2", r#"{"port":"Hull"}"#)],
        ),
    ] {
        let [first, second] = calls;
        let steps = [event(&json!({"content": "ok"})), first, second, stop(), done()];
        house.up.on_each("judge", [Script::reply("no analysis"), Script::sse(steps)]);
        let told = house.stream(&ask("vllm-sr/fusion", "x")).await.told().await;
        let calls: Vec<&Value> =
            told.chunks.iter().filter_map(|c| c.pointer("/choices/0/delta/tool_calls/0")).collect();
        let seen: Vec<_> = calls
            .iter()
            .map(|c| (c["index"].as_u64(), c["id"].as_str(), c["function"]["arguments"].as_str()))
            .collect();
        let expect = [
            (Some(0), Some("t1"), Some(r#"{"port":"Brest"}"#)),
            (Some(1), Some("t2"), Some(r#"{"port":"Hull"}"#)),
        ];
        assert_eq!(seen, expect, "{name}");
        assert_eq!(told.is_whole().finishes, ["tool_calls"], "{name}: a call ends with tool_calls (b17)");
    }
}

#[tokio::test]
async fn a06_reasoning_passes_in_both_spellings() {
    let house = House::open(HOUSE).await;
    for key in ["reasoning", "reasoning_content"] {
        let thought = (0..60).map(|k| event(&json!({key: format!("step {k}. ")})));
        let steps = thought.chain([event(&json!({"content": "42"})), stop(), done()]);
        house.up.on("acme/small-fp8", Script::sse(steps));
        let told = house.stream(&ask("vllm-sr/auto", "x")).await.told().await;
        let path = format!("/choices/0/delta/{key}");
        assert_eq!(told.chunks.iter().filter(|chunk| chunk.pointer(&path).is_some()).count(), 60, "{key}");
        assert_eq!(told.is_whole().text, "42", "{key}");
    }
}

#[tokio::test]
async fn a04_one_usage_chunk_stands_at_the_end_where_it_was_asked_for() {
    let house = House::open(HOUSE).await;
    let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10, "prompt_tokens_details": {"cached_tokens": 5}}});
    let steps = [event(&json!({"content": "x"})), raw(&last), raw(&json!({"choices": []})), done()];
    house.up.on("acme/small-fp8", Script::sse(steps));
    let mut request = ask("small", "x");
    assert_eq!(house.stream(&request).await.told().await.usage, None);
    request["stream_options"] = json!({"include_usage": true});
    let told = house.stream(&request).await.told().await;
    let last = told.is_whole().chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 10);
    assert_eq!(last["usage"]["prompt_tokens_details"]["cached_tokens"], 5);
    assert_eq!(told.chunks.iter().filter(|chunk| chunk["usage"].is_object()).count(), 1);
}

#[tokio::test]
async fn a23_an_event_of_two_mib_arrives_whole() {
    let house = House::open(HOUSE).await;
    let long = "y".repeat(2 << 20);
    let steps = [event(&json!({"content": long})), stop(), done()];
    house.up.on("acme/small-fp8", Script::sse(steps));
    assert_eq!(house.stream(&ask("small", "x")).await.told().await.is_whole().text, long);
}

/// The client has each piece before the backend sends the next.
#[tokio::test]
async fn pieces_pass_as_they_come() {
    let house = House::open(HOUSE).await;
    let gate = Gate::new();
    let held = |text: &str| [event(&json!({"content": text})), Step::Await(gate.clone())];
    let steps = [held("one "), held("two ")].into_iter().flatten().chain([stop(), done()]);
    house.up.on("acme/small-fp8", Script::sse(steps));
    let mut stream = house.stream(&ask("small", "x")).await;
    stream.until("one ").await;
    gate.open();
    stream.until("two ").await;
    gate.open();
    assert!(stream.told().await.done);
}

fn impatient() -> Setup {
    let mut setup = Setup::of(HOUSE);
    setup.door.keepalive = Duration::from_millis(30);
    setup
}

#[tokio::test]
async fn a18_comments_keep_the_line_alive_while_a_panel_works() {
    let house = impatient().open().await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::reply("fine").first(Step::Wait(Duration::from_millis(120))));
    }
    let mut stream = house.stream(&ask("vllm-sr/auto", "deeply")).await;
    let first = stream.next().await.unwrap();
    let before = crate::support::client::comments(&stream.raw);
    assert!(before >= 3, "{before} comments before {first:?}");
    assert!(matches!(&first, Event::Chunk(chunk) if chunk["fusion"].is_object()), "{first:?}");
    assert!(stream.told().await.done);
}

/// The first comment has committed the status: what fails afterwards is an event.
#[tokio::test]
async fn a18_a_fault_after_a_comment_is_an_error_event() {
    let house = impatient().open().await;
    for model in ["a", "b", "c"] {
        house.up.on(model, Script::error(500, "no").first(Step::Wait(Duration::from_millis(80))));
    }
    let told = house.stream(&ask("vllm-sr/auto", "deeply")).await.told().await;
    assert!(told.comments >= 1);
    assert_eq!(told.broken().0, "quorum_not_reached");
}

#[tokio::test]
async fn a_whole_answer_has_no_comments_and_its_own_time() {
    let house = impatient().open().await;
    let slow = Script::chat(ChatAnswer::text("fine")).first(Step::Wait(Duration::from_millis(80)));
    house.up.on("acme/small-fp8", slow);
    assert_eq!(house.chat(&ask("small", "x")).await.text(), "fine");
}
