//! Whole answers, refusals, and answers that are something else.

use crate::bench::{Bench, drain, said};
use bytes::Bytes;
use chorus_testkit::{ChatAnswer, Script, Step};
use chorus_upstream::{Blame, Retry, UpstreamFault};
use futures_util::StreamExt;
use serde_json::json;
use std::time::Duration;

#[tokio::test]
async fn a_whole_answer_with_usage_and_tool_calls() {
    let answer =
        ChatAnswer::text("Hello there").reasoning("hm").tool_call("c1", "f", "{\"a\":1}").usage(7, 3);
    let bench = Bench::new(Script::chat(answer)).await;
    let reply = bench.complete().await.unwrap();
    assert_eq!(reply.content, "Hello there");
    assert_eq!(reply.reasoning.as_deref(), Some("hm"));
    assert_eq!(reply.tool_calls[0].arguments, "{\"a\":1}");
    assert_eq!(reply.finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(reply.usage.map(|u| (u.prompt_tokens, u.completion_tokens)), Some((7, 3)));
}

#[tokio::test]
async fn the_body_goes_up_as_it_is() {
    let bench = Bench::new(Script::reply("ok")).await;
    let body = Bytes::from_static(b"{\"model\":\"m\", \"temperature\":1.50, \"x\":null,\"seed\":0}");
    bench.client.complete(&bench.target, body.clone(), &[], &bench.limits).await.unwrap();
    let request = &bench.backend.requests()[0];
    assert_eq!(request.body, body);
    assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/chat/completions"));
}

#[tokio::test]
async fn a13_a_whole_answer_cut_short() {
    let raw = "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"choices\":";
    let bench = Bench::new(Script::raw([Step::write(raw), Step::Close])).await;
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::Truncated { .. }), "{fault:?}");
}

#[tokio::test]
async fn a14_a_refusal_is_a_status_not_a_stream() {
    let bench = Bench::new(Script::error(429, "slow down, sk-123").header("retry-after", "7")).await;
    for fault in [bench.stream().await.unwrap_err(), bench.complete().await.unwrap_err()] {
        assert_eq!((fault.status(), fault.retry()), (Some(429), Retry::Same));
        assert_eq!(fault.retry_after(), Some(Duration::from_secs(7)));
        assert!(!fault.public().contains("sk-123"));
        let UpstreamFault::Status { body: Some(body), .. } = fault else { panic!("{fault:?}") };
        assert_eq!(body.message, "slow down, sk-123");
    }
}

#[tokio::test]
async fn b08_an_unprocessable_request_is_an_error_each_time() {
    let bench = Bench::new(Script::error(422, "content not allowed")).await;
    for _ in 0..2 {
        let fault = bench.complete().await.unwrap_err();
        assert_eq!((fault.status(), fault.blame(), fault.retry()), (Some(422), Blame::Client, Retry::Other));
    }
}

#[tokio::test]
async fn b15_content_in_parts_is_a_string_downstream() {
    let message = json!({"role": "assistant", "content": [{"type": "text", "text": "Hi"}]});
    let body = json!({"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let bench = Bench::new(Script::json(200, &body)).await;
    let reply = bench.complete().await.unwrap();
    assert_eq!(reply.content, "Hi");
    let sent: serde_json::Value = serde_json::from_slice(&reply.to_bytes()).unwrap();
    assert_eq!(sent.pointer("/choices/0/message/content"), Some(&json!("Hi")));
}

#[tokio::test]
async fn json_instead_of_a_stream_becomes_chunks() {
    let answer = ChatAnswer::text("whole").tool_call("a", "f", "{}").tool_call("b", "g", "{}").usage(3, 4);
    let bench = Bench::new(Script::json(200, &answer.whole("m"))).await;
    let chunks: Vec<_> = bench.stream().await.unwrap().collect().await;
    let chunk = chunks.into_iter().next().unwrap().unwrap();
    assert_eq!(said(&chunk), "whole");
    let calls = &chunk.choices[0].tool_calls;
    assert_eq!(calls.iter().map(|c| c.index).collect::<Vec<_>>(), [Some(0), Some(1)]);
    assert_eq!(chunk.choices[0].finish_reason.as_deref(), Some("tool_calls"));
    assert_eq!(chunk.usage.map(|u| u.total_tokens), Some(7));
    let sent: serde_json::Value = serde_json::from_slice(&chunk.to_bytes()).unwrap();
    assert_eq!(sent["object"], "chat.completion.chunk");
    assert!(sent.pointer("/choices/0/message").is_none());
}

#[tokio::test]
async fn a_stream_instead_of_json_is_put_together() {
    let answer = ChatAnswer::pieces(["a ", "b"]).tool_call("c", "f", "{\"k\":2}").usage(1, 2);
    let events = answer.chunks("m-1", true).into_iter().map(|chunk| Step::event(&chunk.to_string()));
    let bench = Bench::new(Script::sse(events.chain([Step::event("[DONE]")]))).await;
    let reply = bench.complete().await.unwrap();
    assert_eq!((reply.content.as_str(), reply.tool_calls[0].arguments.as_str()), ("a b", "{\"k\":2}"));
    assert_eq!(reply.usage.map(|u| u.total_tokens), Some(3));
    let sent: serde_json::Value = serde_json::from_slice(&reply.to_bytes()).unwrap();
    assert_eq!((&sent["model"], &sent["id"]), (&json!("m-1"), &json!(chorus_testkit::openai::ID)));
}

#[tokio::test]
async fn a22_numbers_that_json_does_not_have() {
    let head = "{\"id\":\"x\",\"choices\":[{\"index\":0,\"finish_reason\":\"stop\",";
    for (value, readable) in
        [("-0.1", true), ("null", true), ("-9999.0", true), ("-Infinity", false), ("NaN", false)]
    {
        let logprobs = format!("\"logprobs\":{{\"content\":[{{\"token\":\"x\",\"logprob\":{value}}}]}}");
        let whole = format!("{head}\"message\":{{\"role\":\"assistant\",\"content\":\"x\"}},{logprobs}}}]}}");
        let event = format!("{head}\"delta\":{{\"content\":\"x\"}},{logprobs}}}]}}");
        let bench = Bench::new(Script::body(200, "application/json", [Step::write(whole)])).await;
        let reply = bench.complete().await;
        bench.backend.on("m", Script::sse([Step::event(&event), Step::event("[DONE]")]));
        let stream = bench.stream().await;
        if readable {
            assert_eq!(reply.unwrap().content, "x", "{value}");
            assert_eq!(drain(stream.unwrap()).await, ("x".to_owned(), None), "{value}");
        } else {
            assert!(matches!(reply, Err(UpstreamFault::Malformed { .. })), "{value}: {reply:?}");
            assert!(matches!(stream, Err(UpstreamFault::Malformed { .. })), "{value}: {stream:?}");
        }
    }
}

#[tokio::test]
async fn answers_and_heads_have_bounds() {
    let mut bench = Bench::new(Script::reply(&"x".repeat(5000))).await;
    bench.limits.max_response_bytes = 4096;
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::TooLarge { bound: "max_response_bytes", .. }), "{fault:?}");
    bench.backend.on("m", Script::reply("x").header("x-long", &"y".repeat(200_000)));
    let fault = bench.complete().await.unwrap_err();
    assert!(matches!(fault, UpstreamFault::TooLarge { bound: "max_head_bytes", .. }), "{fault:?}");
}

#[tokio::test]
async fn answers_that_are_something_else() {
    let rows = [
        Script::body(200, "text/html", [Step::write("<html>login</html>")]),
        Script::body(200, "text/plain", [Step::write("upstream error")]),
        Script::body(200, "application/json", [Step::write("{\"choices\": 3}")]),
        Script::body(200, "application/json", [Step::write("{broken")]),
        Script::raw([Step::write("SSH-2.0-OpenSSH_9.6\r\n"), Step::Close]),
        Script::reply("zipped").header("content-encoding", "gzip"),
        Script::sse([Step::event("{\"choices\":[{"), Step::event("[DONE]")]),
    ];
    for (row, script) in rows.into_iter().enumerate() {
        let bench = Bench::new(script).await;
        for fault in [bench.complete().await.unwrap_err(), bench.stream().await.unwrap_err()] {
            assert!(matches!(fault, UpstreamFault::Malformed { .. }), "row {row}: {fault:?}");
            assert_eq!((fault.blame(), fault.retry()), (Blame::Upstream, Retry::Other), "row {row}");
        }
    }
}

#[tokio::test]
async fn i05_missing_usage_stays_missing() {
    let bench = Bench::new(Script::chat(ChatAnswer::text("x").without_usage())).await;
    assert_eq!(bench.complete().await.unwrap().usage, None);
}
