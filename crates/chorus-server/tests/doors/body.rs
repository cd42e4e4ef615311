//! The body's bounds: size, time, and how it ends.

use crate::support::{HOUSE, House, Setup, ask};
use chorus_server::DoorLimits;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const MIB: usize = 1 << 20;

#[tokio::test]
async fn b14_a_body_of_50_mib_is_refused_and_one_of_6_mib_is_not() {
    let house = House::open(HOUSE).await;
    let answer = house.post("/v1/chat/completions", vec![b' '; 50 * MIB]).await;
    let (code, message) = answer.error();
    assert_eq!((answer.status, code.as_str()), (413, "body_too_large"));
    assert!(message.contains("max_body_bytes") && message.contains("33554432"), "{message}");
    assert!(answer.header("x-request-id").is_some());
    house.still_serves().await;

    let image = format!("data:image/png;base64,{}", "A".repeat(4 * MIB + MIB / 2));
    let parts = json!([{"type": "text", "text": "x".repeat(MIB + MIB / 2)}, {"type": "image_url", "image_url": {"url": image}}]);
    let answer = house.chat(&json!({"model": "b", "messages": [{"role": "user", "content": parts}]})).await;
    // An image counts for 8,192 tokens and the text for 393,216: too much for this model, not for the door.
    assert_eq!(answer.error().0, "context_length_exceeded");
}

/// What a client can make the door take before it is told off; the rest stays in its own buffers.
/// Most clients read nothing before they have sent everything: a door that closes too early is a broken connection
/// to them, not a 413.
#[tokio::test]
async fn b14_a_client_that_sends_first_and_reads_later_sees_the_refusal() {
    let house = House::open(HOUSE).await;
    let mut socket = TcpStream::connect(house.bound.data).await.unwrap();
    let length = 50 * MIB;
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(&vec![b' '; length]).await.unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
    assert_eq!(error_code(&answer), "body_too_large");
}

#[tokio::test]
async fn b14_a_body_without_end_is_cut_off() {
    let mut setup = Setup::of(HOUSE);
    setup.door.max_body_bytes = MIB;
    let house = setup.open().await;
    let mut socket = TcpStream::connect(house.bound.data).await.unwrap();
    let head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n";
    socket.write_all(head).await.unwrap();
    let mut chunk = format!("{MIB:x}\r\n").into_bytes();
    chunk.extend(std::iter::repeat_n(b' ', MIB));
    chunk.extend_from_slice(b"\r\n");
    let mut sent = 0;
    while sent < 1024 && socket.write_all(&chunk).await.is_ok() {
        sent += 1;
    }
    assert!(sent < 32, "the door took {sent} MiB");
    house.still_serves().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_or_breaks_off() {
    let mut setup = Setup::of(HOUSE);
    setup.door.body_timeout = Duration::from_millis(100);
    let house = setup.open().await;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 99\r\n\r\n{\"model\"";
    let mut slow = TcpStream::connect(house.bound.data).await.unwrap();
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert_eq!(error_code(&answer), "body_timeout");

    let mut broken = TcpStream::connect(house.bound.data).await.unwrap();
    broken.write_all(head.as_bytes()).await.unwrap();
    drop(broken);
    let mut noise = TcpStream::connect(house.bound.data).await.unwrap();
    noise.write_all(b"\x16\x03\x01 this is not HTTP\r\n\r\n").await.unwrap();
    let mut answer = String::new();
    noise.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    house.still_serves().await;
}

/// The body of a raw answer.
fn error_code(answer: &str) -> String {
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    let body: Value = serde_json::from_str(body).unwrap();
    body["error"]["code"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_bounds_hold_on_the_management_plane_too() {
    let mut setup = Setup::of(HOUSE);
    setup.door = DoorLimits { max_body_bytes: 1000, ..setup.door };
    let house = setup.open().await;
    let answer = house.post("/api/v1/eval", vec![b' '; 2000]).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (413, "body_too_large"));
    let fits = house.post("/api/v1/eval", ask("vllm-sr/auto", "deeply").to_string()).await;
    assert_eq!(fits.json()["decision_result"]["decision_name"], "deep-fusion");
}
