//! The scripted backend on the bare socket: what a script says is what arrives.

use chorus_testkit::{ChatAnswer, Gate, IdleRule, Outcome, Script, ScriptedUpstream, Step};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

fn ask(model: &str, stream: bool) -> String {
    let body = json!({"model": model, "stream": stream, "messages": [{"role": "user", "content": "hello"}]});
    let body = body.to_string();
    format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Mark: 1\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// Sends and reads to the end of the connection.
async fn exchange(upstream: &ScriptedUpstream, request: &str) -> std::io::Result<String> {
    let mut socket = TcpStream::connect(upstream.address()).await?;
    socket.write_all(request.as_bytes()).await?;
    let mut all = String::new();
    socket.read_to_string(&mut all).await?;
    Ok(all)
}

#[tokio::test]
async fn bytes_arrive_as_written() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    upstream.on("raw", Script::raw([Step::write("any"), Step::Trickle("thing".into()), Step::Close]));
    assert_eq!(exchange(&upstream, &ask("raw", false)).await.unwrap(), "anything");
    upstream.on("cut", Script::sse([Step::event("a"), Step::Close]));
    let cut = exchange(&upstream, &ask("cut", true)).await.unwrap();
    assert!(cut.ends_with("\r\n\r\n9\r\ndata: a\n\n\r\n"), "{cut:?}");
    upstream.on("reset", Script::raw([Step::Reset]));
    let reset = exchange(&upstream, &ask("reset", false)).await.unwrap_err();
    assert_eq!(reset.kind(), std::io::ErrorKind::ConnectionReset);
}

#[tokio::test]
async fn it_echoes_without_a_script_and_records_what_came() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    upstream.set_idle_rule(IdleRule::Close(Duration::from_millis(50)));
    let reply = exchange(&upstream, &ask("any", false)).await.unwrap();
    let (head, body) = reply.split_once("\r\n\r\n").unwrap();
    assert!(
        head.starts_with("HTTP/1.1 200 ") && head.contains(&format!("content-length: {}", body.len())),
        "{head}"
    );
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body.pointer("/choices/0/message/content"), Some(&json!("hello")));
    let request = &upstream.requests_for("any")[0];
    assert_eq!((request.header("x-mark"), request.path.as_str()), (Some("1"), "/v1/chat/completions"));
    assert_eq!((request.outcome, request.last_user_text().as_str()), (Outcome::Answered, "hello"));
}

#[tokio::test]
async fn scripts_follow_one_another_and_the_last_stays() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    upstream.on_each("m", ["a", "b"].map(|text| Script::raw([Step::write(text), Step::Close])));
    upstream.otherwise(|request| Script::raw([Step::write(request.model.clone()), Step::Close]));
    let mut seen = Vec::new();
    for model in ["m", "m", "m", "other"] {
        seen.push(exchange(&upstream, &ask(model, false)).await.unwrap());
    }
    assert_eq!(seen, ["a", "b", "b", "other"]);
    assert_eq!((upstream.connections(), upstream.requests().len()), (4, 4));
}

#[tokio::test]
async fn a_gate_orders_events_and_a_leaving_client_is_seen() {
    let upstream = ScriptedUpstream::start().await.unwrap();
    let gate = Gate::new();
    upstream.on("m", Script::raw([Step::Await(gate.clone()), Step::write("x"), Step::Stall]));
    let mut socket = TcpStream::connect(upstream.address()).await.unwrap();
    socket.write_all(ask("m", true).as_bytes()).await.unwrap();
    assert!(upstream.wait(|u| u.requests().len() == 1).await);
    gate.open();
    assert_eq!(socket.read_u8().await.unwrap(), b'x');
    assert_eq!(upstream.requests()[0].outcome, Outcome::Open);
    drop(socket);
    assert!(
        upstream.wait(|u| u.requests()[0].outcome == Outcome::ClientLeft && u.open_connections() == 0).await
    );
}

#[test]
fn answers_say_the_same_whole_and_streamed() {
    let answer = ChatAnswer::pieces(["a ", "b"]).logprobs([("a ", -0.5), ("b", -0.25)]).usage(3, 2);
    let whole = answer.whole("m");
    let chunks = answer.chunks("m", true);
    let gather = |path: &str| chunks.iter().filter_map(|c| c.pointer(path)).cloned().collect::<Vec<_>>();
    let text: String = gather("/choices/0/delta/content").iter().filter_map(Value::as_str).collect();
    assert_eq!(whole.pointer("/choices/0/message/content"), Some(&json!(text)));
    let logprobs = gather("/choices/0/logprobs/content/0/logprob");
    assert_eq!(logprobs, [json!(-0.5), json!(-0.25)]);
    assert_eq!(chunks.last().and_then(|c| c.get("usage")), whole.get("usage"));
    assert_eq!(answer.chunks("m", false).len(), chunks.len() - 1);
}
