//! A stop: running requests come to their end, or are told that they cannot (case C10).

use crate::support::{HOUSE, House, Setup, ask};
use chorus_store::RunStatus;
use chorus_testkit::openai::chunk;
use chorus_testkit::{Gate, Outcome, Script, Step};
use serde_json::json;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;

/// A stream that says "one ", waits for the gate, and ends well.
fn held(gate: &Gate) -> Script {
    let piece = |text: &str| Step::event(&chunk("x", &json!({"content": text})).to_string());
    let stop = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
    Script::sse([
        piece("one "),
        Step::Await(gate.clone()),
        piece("two"),
        Step::event(&stop.to_string()),
        Step::event("[DONE]"),
    ])
}

async fn with_grace(grace: Duration) -> House {
    let mut setup = Setup::of(HOUSE);
    setup.grace = grace;
    setup.open().await
}

#[tokio::test]
async fn c10_within_its_grace_a_stream_ends_well() {
    let mut house = with_grace(Duration::from_secs(30)).await;
    let gate = Gate::new();
    house.up.on("acme/small-fp8", held(&gate));
    let mut stream = house.stream(&ask("small", "x")).await;
    stream.until("one ").await;
    let stopped = Instant::now();
    house.stop.cancel();
    closed(&house).await;
    gate.open();
    let told = stream.told().await;
    assert_eq!(told.is_whole().text, "two");
    (&mut house.serving).await.unwrap().unwrap();
    assert!(stopped.elapsed() < Duration::from_secs(3), "nothing waits for the rest of the grace");
    let [record] = house.all_records(1).await.try_into().unwrap();
    assert_eq!(record.status, RunStatus::Ok);
}

/// Waits until nobody is let in any more.
async fn closed(house: &House) {
    for _ in 0..500 {
        if TcpStream::connect(house.bound.data).await.is_err() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    panic!("the door is still open");
}

#[tokio::test]
async fn c10_after_its_grace_a_stream_ends_with_an_error_event() {
    let mut house = with_grace(Duration::from_millis(100)).await;
    house.up.on("acme/small-fp8", held(&Gate::new()));
    house.up.on("b", Script::raw([Step::Stall]));
    let mut stream = house.stream(&ask("small", "x")).await;
    stream.until("one ").await;
    let request = ask("b", "x");
    let waiting = house.chat(&request);
    let stop = async {
        house.up.wait(|up| up.requests().len() == 2).await;
        house.stop.cancel();
    };
    let (whole, told, ()) = tokio::join!(waiting, stream.told(), stop);
    assert_eq!((whole.status, whole.error().0.as_str()), (503, "shutting_down"));
    assert_eq!(told.broken().0, "shutting_down");
    (&mut house.serving).await.unwrap().unwrap();
    for record in house.all_records(2).await {
        assert_eq!((record.status, record.error_code.as_deref()), (RunStatus::Failed, Some("shutting_down")));
    }
    assert!(house.up.wait(|up| up.requests().iter().all(|r| r.outcome == Outcome::ClientLeft)).await);
}

#[tokio::test]
async fn readiness_ends_before_the_door_closes() {
    let house = House::open(HOUSE).await;
    assert_eq!(house.get("/ready").await.status, 200);
    assert_eq!(house.get("/health").await.json()["status"], "ok");
    let digest = house.get("/ready").await.json()["spec_digest"].as_str().map(str::to_owned);
    house.still_serves().await;
    let [record] = house.all_records(1).await.try_into().unwrap();
    assert_eq!(
        Some(record.spec_digest.as_str()),
        digest.as_deref(),
        "a record names the configuration that was served"
    );
}
