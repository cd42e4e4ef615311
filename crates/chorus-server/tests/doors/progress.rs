//! Progress of a streamed looper: named events for who asks for them, and a stream that others read as ever.

use crate::fusion::seat;
use crate::loopers::house_of;
use crate::support::{HOUSE, House, ask};
use chorus_testkit::{ChatAnswer, Script};
use chorus_wire::{SseDecoder, sse};
use serde_json::{Value, json};

/// The events of a stream as (name, data), `[DONE]` left out.
fn events(raw: &[u8]) -> Vec<(String, Value)> {
    let mut decoder = SseDecoder::new(sse::MAX_EVENT_BYTES);
    let mut events = Vec::new();
    decoder.push(raw, &mut events).unwrap();
    let read = |data: &[u8]| serde_json::from_slice(data).ok();
    events.into_iter().filter_map(|it| Some((it.event.unwrap_or_default(), read(&it.data)?))).collect()
}

async fn watched(house: &House) -> Vec<(String, Value)> {
    let mut request = ask("vllm-sr/auto", "think deeply");
    request["stream"] = true.into();
    let answer = house.chat_with(("x-vsr-progress", "true"), &request).await.whole().await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.ends_with(b"data: [DONE]\n\n"));
    events(&answer.body)
}

/// The names of the moments, in order.
fn moments(events: &[(String, Value)]) -> Vec<&str> {
    let told = events.iter().filter(|(name, _)| name == "chorus.progress");
    told.map(|(_, data)| data["event"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_panel_is_watched_from_its_start_to_its_writer() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let events = watched(&house).await;
    let expected = [
        "round_started",
        "member_done",
        "member_done",
        "member_done",
        "round_finished",
        "judge_started",
        "judge_finished",
        "synthesis_started",
    ];
    assert_eq!(moments(&events), expected);
    let judged = events.iter().find(|(_, data)| data["event"] == "judge_finished").unwrap();
    assert_eq!(judged.1["disagreements"], 1, "{judged:?}");
    let first_chunk = events.iter().position(|(name, _)| name.is_empty()).unwrap();
    assert!(
        events[first_chunk..].iter().all(|(name, _)| name.is_empty()),
        "progress comes before the answer"
    );
}

#[tokio::test]
async fn a_cascade_tells_each_model_that_it_tried() {
    let cascade = "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }";
    let house = House::open(&house_of(cascade)).await;
    house.up.on("a", Script::chat(ChatAnswer::text("no").logprobs([("no", -2.5)])));
    house.up.on("b", Script::chat(ChatAnswer::text("yes").logprobs([("yes", -0.01)])));
    let events = watched(&house).await;
    let tried: Vec<&Value> =
        events.iter().map(|(_, data)| data).filter(|data| data["event"] == "tried").collect();
    assert_eq!((&tried[0]["model"], &tried[0]["accepted"]), (&json!("a"), &json!(false)));
    assert_eq!((&tried[1]["model"], &tried[1]["accepted"]), (&json!("b"), &json!(true)));
}

#[tokio::test]
async fn nobody_is_told_who_did_not_ask() {
    let house = House::open(HOUSE).await;
    seat(&house);
    let incoming = house.stream(&ask("vllm-sr/auto", "think deeply")).await;
    let told = incoming.told().await;
    assert!(told.is_whole().chunks.iter().all(|chunk| chunk.get("event").is_none()));
    // A whole answer has no events, whatever is asked.
    let whole = house.chat_with(("x-vsr-progress", "true"), &ask("vllm-sr/auto", "think deeply")).await;
    assert_eq!(whole.whole().await.text(), "the final answer");
}
