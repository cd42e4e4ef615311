//! Streams: what is read of them, and whether they ended well.

use crate::bench::{Bench, drain, piece, said, stop};
use chorus_testkit::{Gate, Script, Step};
use chorus_upstream::UpstreamFault;
use chorus_wire::Chunk;
use futures_util::StreamExt;
use serde_json::json;

#[tokio::test]
async fn a_streamed_answer_ends_well_and_frees_its_connection() {
    let bench = Bench::new(Script::stream(["Hel", "lo"])).await;
    for _ in 0..5 {
        let mut chunks: Vec<Chunk> = Vec::new();
        let mut stream = bench.stream().await.unwrap();
        while let Some(chunk) = stream.next().await {
            chunks.push(chunk.unwrap());
        }
        assert_eq!(chunks.iter().map(said).collect::<String>(), "Hello");
        assert_eq!(chunks.iter().filter_map(|c| c.usage).map(|u| u.total_tokens).collect::<Vec<_>>(), [12]);
    }
    // i08: sockets are used again. One more is opened where the next call comes before the last socket is back.
    assert!(bench.backend.connections() <= 2, "{}", bench.backend.connections());
}

#[tokio::test]
async fn a09_letters_cut_between_reads() {
    let event = format!("data: {}\n\ndata: {}\n\ndata: [DONE]\n\n", piece("źdźbło 🦦 海"), stop());
    let bench = Bench::new(Script::sse([Step::Trickle(event.into())])).await;
    let (text, fault) = drain(bench.stream().await.unwrap()).await;
    assert_eq!((text.as_str(), fault), ("źdźbło 🦦 海", None));
    let whole = bench.complete().await.unwrap();
    assert_eq!(whole.content, "źdźbło 🦦 海");
}

#[tokio::test]
async fn a10_lines_of_every_kind() {
    let (one, two) = (piece("one "), piece("two"));
    let body = format!(": hi\r\n\r\ndata:{one}\r\n\r\ndata: \r\n\r\ndata: {two}\n\ndata: [DONE]");
    let bench = Bench::new(Script::sse([Step::write(body)])).await;
    assert_eq!(drain(bench.stream().await.unwrap()).await, ("one two".to_owned(), None));
}

#[tokio::test]
async fn a11_filter_reports_without_choices_or_delta() {
    let events = [
        json!({"id": "", "choices": [], "prompt_filter_results": []}).to_string(),
        json!({"choices": [{"index": 0, "finish_reason": null, "content_filter_results": {}}]}).to_string(),
        piece("fine"),
        stop(),
        "[DONE]".to_owned(),
    ];
    let bench = Bench::new(Script::sse(events.iter().map(|event| Step::event(event)))).await;
    assert_eq!(drain(bench.stream().await.unwrap()).await, ("fine".to_owned(), None));
}

#[tokio::test]
async fn a12_an_error_in_band_before_output_is_a_failed_attempt() {
    let error = json!({"choices": [], "error": {"code": 502, "message": "worker limit"}}).to_string();
    let scripts = [
        Script::sse([Step::event(&error), Step::event("[DONE]")]),
        // a role chunk is no output yet
        Script::sse([Step::event(&piece("")), Step::event(&error)]),
        Script::json(200, &serde_json::from_str(&error).unwrap()),
        Script::sse([Step::write(format!("event: error\ndata: {error}\n\n"))]),
    ];
    for (row, script) in scripts.into_iter().enumerate() {
        let bench = Bench::new(script).await;
        for fault in [bench.stream().await.unwrap_err(), bench.complete().await.unwrap_err()] {
            assert_eq!(fault.status(), Some(502), "row {row}: {fault:?}");
            assert!(!fault.public().contains("worker"), "row {row}: {}", fault.public());
        }
    }
}

#[tokio::test]
async fn a12_an_error_in_band_after_output_ends_the_stream() {
    let error = json!({"error": {"code": 500, "message": "boom"}}).to_string();
    let bench = Bench::new(Script::sse([Step::event(&piece("half")), Step::event(&error)])).await;
    let (text, fault) = drain(bench.stream().await.unwrap()).await;
    assert_eq!(text, "half");
    assert_eq!(fault.unwrap().status(), Some(500));
}

#[tokio::test]
async fn a13_backend_dies_mid_answer() {
    let cut = || Step::event(&piece("The capital is "));
    let rows = [Script::sse([cut(), Step::Close]), Script::sse_until_close([cut()]), Script::sse([cut()])];
    for (row, script) in rows.into_iter().enumerate() {
        let bench = Bench::new(script).await;
        let (text, fault) = drain(bench.stream().await.unwrap()).await;
        assert_eq!(text, "The capital is ", "row {row}");
        assert!(matches!(fault, Some(UpstreamFault::Truncated { .. })), "row {row}: {fault:?}");
        let whole = bench.complete().await;
        assert!(matches!(whole, Err(UpstreamFault::Truncated { .. })), "row {row}: {whole:?}");
    }
}

#[tokio::test]
async fn a13_backend_resets_mid_answer() {
    let gate = Gate::new();
    let script = Script::sse([Step::event(&piece("half")), Step::Await(gate.clone()), Step::Reset]);
    let bench = Bench::new(script).await;
    let mut stream = bench.stream().await.unwrap();
    assert_eq!(said(&stream.next().await.unwrap().unwrap()), "half");
    gate.open();
    let (text, fault) = drain(stream).await;
    assert_eq!(text, "");
    assert!(matches!(fault, Some(UpstreamFault::Truncated { .. })), "{fault:?}");
}

#[tokio::test]
async fn a13_half_a_code_point_at_the_end() {
    let mut event = format!("data: {}\n\ndata: {{\"x\":\"", piece("ok ")).into_bytes();
    event.extend_from_slice(&"海".as_bytes()[..2]);
    let bench = Bench::new(Script::sse([Step::write(event)])).await;
    let (text, fault) = drain(bench.stream().await.unwrap()).await;
    assert_eq!(text, "ok ");
    assert!(matches!(fault, Some(UpstreamFault::Truncated { .. })), "{fault:?}");
}

#[tokio::test]
async fn a_finish_reason_and_a_clean_end_are_enough() {
    let bench = Bench::new(Script::sse([Step::event(&piece("all")), Step::event(&stop())])).await;
    assert_eq!(drain(bench.stream().await.unwrap()).await, ("all".to_owned(), None));
}

#[tokio::test]
async fn a23_one_long_line_up_to_the_bound() {
    let long = "x".repeat(2 << 20);
    let event = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": long}}
    ]}, "finish_reason": "tool_calls"}]})
    .to_string();
    let script = Script::sse([Step::event(&piece("a")), Step::event(&event), Step::event("[DONE]")]);
    let mut bench = Bench::new(script).await;
    let chunks: Vec<_> = bench.stream().await.unwrap().collect().await;
    let last = chunks.last().unwrap().as_ref().unwrap();
    assert_eq!(last.choices[0].tool_calls[0].arguments.len(), 2 << 20);
    bench.limits.max_event_bytes = event.len() - 1;
    let (text, fault) = drain(bench.stream().await.unwrap()).await;
    assert_eq!(text, "a");
    assert!(matches!(fault, Some(UpstreamFault::TooLarge { bound: "max_event_bytes", .. })), "{fault:?}");
}
