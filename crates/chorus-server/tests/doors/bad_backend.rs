//! What a backend can do wrong: before the first byte it is a status, after it an error event, never a good end.

use crate::support::{HOUSE, House, Setup, ask};
use chorus_store::{CallStatus, RunStatus};
use chorus_testkit::openai::chunk;
use chorus_testkit::{Script, Step};
use serde_json::json;
use std::time::Duration;

/// What no client and no record may ever show.
const SECRET: &str = "sk-backend-secret at 10.9.8.7";

fn error_event() -> Step {
    let body = json!({"choices": [], "error": {"code": 502, "message": SECRET}});
    Step::event(&body.to_string())
}

fn piece(text: &str) -> Step {
    Step::event(&chunk("x", &json!({"content": text})).to_string())
}

/// Half of the two bytes of `é`, inside an event.
fn half_a_letter() -> Step {
    Step::write(b"data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"caf\xc3".to_vec())
}

/// Name, script, and the status and code that the client gets, streamed or not.
fn failures() -> Vec<(&'static str, Script, u16, &'static str)> {
    let json_cut =
        Step::write(b"{\"choices\":[{\"message\":{\"role\":\"assistant\",\"content\":\"caf\xc3".to_vec());
    vec![
        ("reset", Script::raw([Step::Reset]), 502, "upstream_failed"),
        ("closed", Script::raw([Step::Close]), 502, "upstream_failed"),
        ("stall", Script::raw([Step::Stall]), 504, "upstream_timeout"),
        ("stall after the head", Script::sse([Step::Stall]), 504, "upstream_timeout"),
        (
            "half a letter as JSON",
            Script::body(200, "application/json", [json_cut, Step::Close]),
            502,
            "upstream_failed",
        ),
        ("half a letter as an event", Script::sse([half_a_letter(), Step::Close]), 502, "upstream_failed"),
        ("a12_error_in_band", Script::sse([error_event()]), 502, "upstream_failed"),
        (
            "a12_error_in_a_body",
            Script::json(200, &json!({"error": {"message": SECRET}})),
            502,
            "upstream_failed",
        ),
        ("an empty stream", Script::sse([]), 502, "upstream_failed"),
        ("HTML", Script::body(200, "text/html", [Step::write("<html>hi</html>")]), 502, "upstream_failed"),
        ("not HTTP", Script::raw([Step::write("hello\r\n\r\n"), Step::Close]), 502, "upstream_failed"),
        ("a14_429", Script::error(429, SECRET), 429, "upstream_rate_limited"),
        ("401", Script::error(401, SECRET), 502, "upstream_failed"),
        ("500", Script::error(500, SECRET), 502, "upstream_failed"),
        ("400", Script::error(400, SECRET), 400, "upstream_rejected"),
        (
            "e08_redirect",
            Script::error(307, SECRET).header("location", "http://127.0.0.1:1/v1"),
            502,
            "upstream_failed",
        ),
    ]
}

fn hurried() -> Setup {
    let mut setup = Setup::of(HOUSE);
    setup.limits.max_time = Duration::from_millis(150);
    setup
}

#[tokio::test]
async fn a_failure_before_the_first_token_is_a_status() {
    let house = hurried().open().await;
    for (name, script, status, code) in failures() {
        for stream in [false, true] {
            house.up.on("acme/small-fp8", script.clone());
            let request = ask("small", "x");
            let answer =
                if stream { house.stream(&request).await.whole().await } else { house.chat(&request).await };
            let (said, message) = answer.error();
            assert_eq!((answer.status, said.as_str()), (status, code), "{name}, stream {stream}: {message}");
            assert!(!message.contains("secret") && !message.contains("10.9"), "{message}");
            let record = house.record(answer.header("x-vsr-replay-id")).await;
            assert_eq!(
                (record.status, record.error_code.as_deref()),
                (RunStatus::Failed, Some(code)),
                "{name}"
            );
            let [call] = record.calls.as_slice() else { panic!("{name}: {:?}", record.calls) };
            assert_eq!((call.status, call.role.as_str()), (CallStatus::Failed, "direct"), "{name}");
            assert!(call.usage.estimated && call.usage.prompt_tokens > 0, "{name}: {:?}", call.usage);
            let kept = serde_json::to_string(&record).unwrap();
            assert!(!kept.contains("secret") && !kept.contains("127.0.0.1"), "{kept}");
        }
        house.still_serves().await;
    }
}

/// Name, what follows the first piece, and the code of the error event.
fn breaks() -> Vec<(&'static str, Vec<Step>, &'static str)> {
    vec![
        ("a13_closed", vec![Step::Close], "upstream_failed"),
        ("a13_reset", vec![Step::Reset], "upstream_failed"),
        ("stall", vec![Step::Stall], "upstream_timeout"),
        ("half a letter", vec![half_a_letter(), Step::Close], "upstream_failed"),
        ("an error", vec![error_event()], "upstream_failed"),
        ("noise", vec![Step::event("{]")], "upstream_failed"),
        ("no end", vec![], "upstream_failed"),
    ]
}

#[tokio::test]
async fn a13_a_failure_amid_the_answer_is_an_error_event_and_no_end() {
    let house = hurried().open().await;
    for (name, rest, code) in breaks() {
        let steps = [piece("The capital is ")].into_iter().chain(rest);
        house.up.on("acme/small-fp8", Script::sse(steps));
        let told = house.stream(&ask("small", "x")).await.told().await;
        let (said, message) = told.broken();
        assert_eq!((told.text.as_str(), said.as_str()), ("The capital is ", code), "{name}: {message}");
        assert!(!message.contains("secret"), "{message}");
        let record = house.record(told.header("x-vsr-replay-id")).await;
        assert_eq!((record.status, record.error_code.as_deref()), (RunStatus::Failed, Some(code)), "{name}");
        let usage = record.calls[0].usage;
        assert!(usage.estimated && usage.completion_tokens > 0, "{name}: {usage:?}");
        house.still_serves().await;
    }
}

/// The same, at the stage that owns the answer of a panel.
#[tokio::test]
async fn a13_a_synthesis_that_dies_is_an_error_event() {
    let house = House::open(HOUSE).await;
    house
        .up
        .on_each("judge", [Script::reply("prose, no analysis"), Script::sse([piece("So "), Step::Reset])]);
    let told = house.stream(&ask("vllm-sr/auto", "think deeply")).await.told().await;
    assert_eq!((told.text.as_str(), told.broken().0.as_str()), ("So ", "upstream_failed"));
    let record = house.record(told.header("x-vsr-replay-id")).await;
    let calls: Vec<_> = record.calls.iter().map(|c| (c.role.as_str(), c.status)).collect();
    assert_eq!(calls.last(), Some(&("synthesis", CallStatus::Failed)));
    assert_eq!(calls.iter().filter(|(_, status)| *status == CallStatus::Ok).count(), 4);
}

#[tokio::test]
async fn an_answer_that_only_looks_odd_is_still_an_answer() {
    let house = House::open(HOUSE).await;
    let sse = Script::sse([piece("as "), piece("events"), Step::event("[DONE]")]);
    house.up.on("acme/small-fp8", sse);
    assert_eq!(house.chat(&ask("small", "x")).await.text(), "as events");
    let whole = json!({"choices": [{"message": {"role": "assistant", "content": "as JSON"}, "finish_reason": "stop"}]});
    house.up.on("acme/small-fp8", Script::json(200, &whole));
    let told = house.stream(&ask("small", "x")).await.told().await;
    assert_eq!(told.is_whole().text, "as JSON");
}

#[tokio::test]
async fn connections_to_a_backend_are_kept() {
    let house = House::open(HOUSE).await;
    for _ in 0..10 {
        assert_eq!(house.chat(&ask("small", "x")).await.status, 200);
        assert!(house.stream(&ask("small", "x")).await.told().await.done);
    }
    assert_eq!(house.up.connections(), 1);
}
