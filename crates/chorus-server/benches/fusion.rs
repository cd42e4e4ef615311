//! What the engine adds to a panel, against the same calls made one after the other in the same run; and how long the
//! first word of the synthesis is on its way.
//!
//! `cargo bench -p chorus-server --bench fusion`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark speaks to the terminal"
)]

mod rig;

use bytes::Bytes;
use chorus_testkit::openai::chunk;
use chorus_testkit::{ChatAnswer, Gate, Received, Script, Step};
use http_body_util::BodyExt;
use rig::{Backend, Chorus, Line, Threads, Times, client, report, say_load};
use serde_json::json;
use std::time::{Duration, Instant};

const RUNS: usize = 60;
const WARM_UP: usize = 5;

const FILE: &str = r#"
version: v0.3
providers:
  models:
    - { name: a, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: b, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: c, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: judge, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: a }, { name: b }, { name: c }, { name: judge }]
  decisions:
    - name: panel
      modelRefs: [{ model: a }, { model: b }, { model: c }]
      algorithm: { type: fusion, fusion: { model: judge, max_concurrent: 3 } }
"#;

const ANALYSIS: &str = r#"{"consensus": ["yes"], "contradictions": [], "partial_coverage": [], "unique_insights": [], "blind_spots": []}"#;

/// Members wait 20, 30 and 40 ms; the judge 30 ms; the writer 10 ms and streams 20 words, 2 ms apart.
fn script(request: &Received) -> Script {
    let wait = |millis| Step::Wait(Duration::from_millis(millis));
    let long = "It depends on the season, the latitude and the weather of the week before. ".repeat(8);
    let stream = request.json().get("stream").is_some_and(|stream| stream == true);
    match request.model.as_str() {
        "a" => Script::reply(&long).first(wait(20)),
        "b" => Script::reply(&format!("No. {long}")).first(wait(30)),
        "c" => Script::reply(&format!("Yes. {long}")).first(wait(40)),
        _ if stream => Script::reply(&"word ".repeat(20)).first(wait(10)).gap(Duration::from_millis(2)),
        _ => Script::chat(ChatAnswer::text(ANALYSIS)).first(wait(30)),
    }
}

/// The writer is always asked for its totals, and so is it here: they are an event more.
fn request(model: &str, stream: bool) -> Bytes {
    let messages = json!([{"role": "user", "content": "Is it so?"}]);
    let mut body = json!({"model": model, "stream": stream, "messages": messages});
    if let Some(fields) = body.as_object_mut().filter(|_| stream) {
        fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    Bytes::from(body.to_string())
}

fn main() {
    say_load();
    // The runtime ends last: a runtime may not be dropped inside another.
    let client = client();
    let kept = client.block_on(async {
        let backend = Backend::start(Threads::own(Some(1))).await;
        let chorus = Chorus::serve(FILE, &backend, None, Threads::own(None)).await;
        beyond_its_calls(&backend, &chorus).await;
        first_word(&backend, &chorus).await;
        (backend, chorus)
    });
    drop(kept);
    say_load();
}

async fn beyond_its_calls(backend: &Backend, chorus: &Chorus) {
    backend.scripts.otherwise(script);
    let mut to_backend = Line::to(backend.scripts.address()).await;
    let mut to_chorus = Line::to(chorus.data).await;
    let (mut calls, mut whole, mut beyond) = (Times::default(), Times::default(), Times::default());
    for run in 0..WARM_UP + RUNS {
        let slowest = to_backend.timed(&request("c", false)).await;
        let judge = to_backend.timed(&request("judge", false)).await;
        let synthesis = to_backend.timed(&request("judge", true)).await;
        let fused = to_chorus.timed(&request("vllm-sr/fusion", true)).await;
        if run >= WARM_UP {
            calls.push(slowest + judge + synthesis);
            whole.push(fused);
            beyond.push(fused.saturating_sub(slowest + judge + synthesis));
        }
    }
    println!("\na panel of three, a judge, a streamed synthesis; {RUNS} runs of each side in turns");
    println!(
        "  slowest member + judge + synthesis {:.1?}, Fusion {:.1?} (medians)",
        calls.median(),
        whole.median()
    );
    report("  beyond its calls", &beyond, Duration::from_millis(3));
}

/// From the moment at which the backend is told to send it (a little before it does) to the moment at which the
/// client has it.
async fn first_word(backend: &Backend, chorus: &Chorus) {
    let (first, later) = (Gate::new(), Gate::new());
    let word = |text: &str| Step::event(&chunk("judge", &json!({"content": text})).to_string());
    let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}).to_string();
    let synthesis = Script::sse([
        Step::Await(first.clone()),
        word("first"),
        Step::Await(later.clone()),
        word("later"),
        Step::event(&end),
        Step::event("[DONE]"),
    ]);
    backend.scripts.otherwise(move |request| {
        let stream = request.json().get("stream").is_some_and(|stream| stream == true);
        if stream { synthesis.clone() } else { Script::reply(ANALYSIS) }
    });
    let mut line = Line::to(chorus.data).await;
    let (mut opening, mut next) = (Times::default(), Times::default());
    for run in 0..WARM_UP + 5 * RUNS {
        let seen = backend.scripts.requests().len();
        let open = async {
            assert!(backend.scripts.wait(|up| up.requests().len() == seen + 5).await);
            // The backend's head is out, and everybody waits.
            tokio::time::sleep(Duration::from_millis(2)).await;
            let told = Instant::now();
            first.open();
            told
        };
        let body = request("vllm-sr/fusion", true);
        let answer = async {
            let mut answer = line.send(&body).await;
            until(&mut answer, b"first").await;
            (answer, Instant::now())
        };
        let (told, (mut answer, had)) = tokio::join!(open, answer);
        let told_later = Instant::now();
        later.open();
        until(&mut answer, b"later").await;
        let had_later = told_later.elapsed();
        answer.collect().await.unwrap();
        if run >= WARM_UP {
            opening.push(had.duration_since(told));
            next.push(had_later);
        }
    }
    println!("\nfrom the backend's order to send to the client, {} runs", 5 * RUNS);
    report("  first word of the synthesis, with head and trace", &opening, Duration::from_millis(2));
    report("  a later word", &next, Duration::from_millis(2));
}

/// Reads on until a piece holds that text.
async fn until(body: &mut hyper::body::Incoming, text: &[u8]) {
    while let Some(frame) = body.frame().await {
        let bytes = frame.unwrap().into_data().unwrap_or_default();
        if bytes.windows(text.len()).any(|window| window == text) {
            return;
        }
    }
    panic!("the stream ended early");
}
