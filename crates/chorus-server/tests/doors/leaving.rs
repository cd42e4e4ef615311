//! A client that hangs up: nothing works on for nobody, and the record says what it had cost.

use crate::support::{HOUSE, House, ask};
use chorus_store::{CallStatus, RunRecord, RunStatus};
use chorus_testkit::openai::chunk;
use chorus_testkit::{Outcome, Script, Step};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

/// Within what time every upstream socket must be closed (case A16).
const BOUND: Duration = Duration::from_secs(2);

fn never_ends() -> Script {
    let piece = chunk("x", &json!({"role": "assistant", "content": "word ".repeat(20)}));
    Script::sse([Step::event(&piece.to_string()), Step::Stall])
}

/// As fast as the client reads, without end.
fn babble() -> Script {
    let piece = chunk("x", &json!({"content": "word ".repeat(200)})).to_string();
    Script::sse(std::iter::repeat_n(Step::event(&piece), 20_000))
}

/// Waits until every call is seen to be left, and returns the only record.
async fn left(house: &House, since: Instant) -> RunRecord {
    let all_left = house.up.wait(|up| up.requests().iter().all(|r| r.outcome != Outcome::Open)).await;
    assert!(all_left && since.elapsed() < BOUND, "{:?} after {:?}", house.up.requests(), since.elapsed());
    house.all_records(1).await.remove(0)
}

#[tokio::test]
async fn a16_hanging_up_amid_the_panel_drops_every_member() {
    for stream in [false, true] {
        let house = House::open(HOUSE).await;
        for model in ["a", "b", "c"] {
            house.up.on(model, never_ends());
        }
        let body = {
            let mut body = ask("vllm-sr/auto", "deeply");
            body["stream"] = stream.into();
            body.to_string()
        };
        let mut socket = TcpStream::connect(house.bound.data).await.unwrap();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        socket.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
        assert!(house.up.wait(|up| up.requests().len() == 3).await);
        drop(socket);
        let record = left(&house, Instant::now()).await;
        assert!(house.up.requests().iter().all(|r| r.outcome == Outcome::ClientLeft));
        assert!(house.up.requests_for("judge").is_empty());
        assert_eq!((record.status, record.calls.len()), (RunStatus::Cancelled, 3));
        for call in &record.calls {
            assert_eq!((call.status, call.role.as_str()), (CallStatus::Cancelled, "panel"));
            assert!(call.usage.estimated && call.usage.prompt_tokens > 0, "{:?}", call.usage);
        }
        assert!(record.usage.estimated && record.usage.prompt_tokens > 0);
        house.still_serves().await;
    }
}

#[tokio::test]
async fn a17_a_stream_left_before_its_usage_is_counted_by_what_it_said() {
    let house = House::open(HOUSE).await;
    let words = chunk("x", &json!({"content": "word ".repeat(150)}));
    house.up.on("acme/small-fp8", Script::sse([Step::event(&words.to_string()), Step::Stall]));
    let mut stream = house.stream(&ask("small", "x")).await;
    stream.until("word").await;
    drop(stream);
    let record = left(&house, Instant::now()).await;
    assert_eq!(record.status, RunStatus::Cancelled);
    assert!(record.usage.completion_tokens > 100 && record.usage.estimated, "{:?}", record.usage);
    assert!(record.cost_micro_usd > 200, "{} at 2 dollars a million", record.cost_micro_usd);
    let [call] = record.calls.as_slice() else { panic!("{:?}", record.calls) };
    assert_eq!((call.status, call.usage), (CallStatus::Cancelled, record.usage));
    assert!(call.first_token_ms.is_some());
}

#[tokio::test]
async fn a16_hanging_up_amid_the_synthesis_counts_the_panel_too() {
    let house = House::open(HOUSE).await;
    house.up.on_each("judge", [Script::reply("no analysis"), never_ends()]);
    let mut stream = house.stream(&ask("vllm-sr/auto", "deeply")).await;
    stream.until("word").await;
    drop(stream);
    let record = left(&house, Instant::now()).await;
    let calls: Vec<_> = record.calls.iter().map(|c| (c.role.as_str(), c.status)).collect();
    assert_eq!(calls.last(), Some(&("synthesis", CallStatus::Cancelled)));
    assert_eq!(calls.iter().filter(|(_, status)| *status == CallStatus::Ok).count(), 4);
    assert_eq!(record.usage.prompt_tokens, record.calls.iter().map(|c| c.usage.prompt_tokens).sum::<u64>());
    assert!(record.traces.contains_key("fusion"));
}

/// The client leaves while chunks are on their way to it.
#[tokio::test]
async fn a16_hanging_up_on_a_fast_stream_is_no_failure_of_ours() {
    let house = House::open(HOUSE).await;
    house.up.on("acme/small-fp8", babble());
    let mut stream = house.stream(&ask("small", "x")).await;
    stream.until("word").await;
    drop(stream);
    let record = left(&house, Instant::now()).await;
    assert_eq!((record.status, record.error_code), (RunStatus::Cancelled, None));
    assert_eq!(record.calls[0].status, CallStatus::Cancelled);
}
