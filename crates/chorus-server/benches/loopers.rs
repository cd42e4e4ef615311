//! What the engine adds to each looper beyond its critical path, against the calls of that path made one after the other
//! in the same run; and what two hundred Fusions at once make of their streams and of their time.
//!
//! `cargo bench -p chorus-server --bench loopers`.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark speaks to the terminal"
)]

mod rig;

use bytes::Bytes;
use chorus_testkit::{ChatAnswer, Received, Script, Step};
use futures_util::future::join_all;
use http_body_util::BodyExt;
use rig::{Backend, Chorus, Line, Threads, Times, client, report, say_load};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const RUNS: usize = 40;
const WARM_UP: usize = 5;

/// Fusions at once.
const CROWD: usize = 200;
/// Times that the crowd comes.
const WAVES: usize = 5;
/// Share of the critical path that the crowd may add to it, at the median.
const CROWD_ADDS: f64 = 0.20;
/// Words of a streamed answer in the crowd.
const CROWD_WORDS: usize = 50;

/// Every model is the scripted backend; `ALGORITHM` is a looper's.
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
    - name: team
      modelRefs: [MEMBERS]
      algorithm: ALGORITHM
"#;

/// A call of a critical path: whom, and whether its answer streams.
type Stage = (&'static str, bool);

/// A looper, and the calls that it cannot do without waiting for.
struct Case {
    name: &'static str,
    members: &'static str,
    algorithm: &'static str,
    path: &'static [Stage],
}

const TRIO: &str = "{ model: a }, { model: b }, { model: c }";

const CASES: [Case; 6] = [
    Case {
        name: "confidence: one is not sure, the next answers",
        members: "{ model: a }, { model: b }",
        algorithm: "{ type: confidence, confidence: { escalation_order: declared } }",
        path: &[("a", false), ("b", true)],
    },
    Case {
        name: "ratings: three answers, a judge, a vote",
        members: TRIO,
        algorithm: "{ type: ratings, ratings: { raters: judge, judge: judge, aggregate: vote } }",
        path: &[("c", false), ("judge", false)],
    },
    Case {
        name: "remom: a round of three, a writer",
        members: "{ model: c }, { model: a }, { model: b }",
        algorithm: "{ type: remom, remom: { breadth_schedule: [3], model_distribution: equal } }",
        path: &[("c", false), ("c", true)],
    },
    Case {
        name: "fusion: a panel of three, a judge, a writer",
        members: TRIO,
        algorithm: "{ type: fusion, fusion: { model: judge } }",
        path: &[("c", false), ("judge", false), ("judge", true)],
    },
    Case {
        name: "poll: two do not agree, a third decides",
        members: TRIO,
        algorithm: "{ type: poll, poll: { steps: [{ models: [a, b] }, { models: [c] }] } }",
        path: &[("b", false), ("c", false)],
    },
    Case {
        name: "workflows: two steps, a writer",
        members: TRIO,
        algorithm: "{ type: workflows, workflows: { roles: [{ name: solver, models: [a] }, { name: verifier, models: [b] }], final: { model: c } } }",
        path: &[("a", false), ("b", false), ("c", true)],
    },
];

fn main() {
    say_load();
    // The runtime ends last: a runtime may not be dropped inside another.
    let client = client();
    let kept = client.block_on(async {
        let backend = Backend::start(Threads::own(Some(1))).await;
        let mut served = Vec::new();
        println!("\nbeyond the critical path, {RUNS} runs of each side in turns");
        for case in &CASES {
            served.push(beyond_its_path(case, &backend).await);
        }
        served.push(crowd(&backend).await);
        (backend, served)
    });
    drop(kept);
    say_load();
}

fn file(members: &str, algorithm: &str) -> String {
    FILE.replace("MEMBERS", members).replace("ALGORITHM", algorithm)
}

fn request(model: &str, stream: bool, mark: &str) -> Bytes {
    let messages = json!([{"role": "user", "content": format!("Is it so, {mark}")}]);
    let mut body = json!({"model": model, "stream": stream, "messages": messages});
    if let Some(fields) = body.as_object_mut().filter(|_| stream) {
        // A stage that streams is always asked for its totals, and so is it here: they are an event more.
        fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
    }
    Bytes::from(body.to_string())
}

fn wants_stream(request: &Received) -> bool {
    request.json().get("stream").is_some_and(|stream| stream == true)
}

/// What a judge says, whatever it judges.
fn verdict() -> ChatAnswer {
    let verdict = json!({
        "consensus": ["yes"], "contradictions": [], "partial_coverage": [], "unique_insights": [],
        "blind_spots": [], "scores": {"A": 3, "B": 5, "C": 7},
    });
    ChatAnswer::text(&verdict.to_string())
}

/// Members wait 20, 30 and 40 ms, a judge 30 ms; what streams begins after 10 ms and writes 20 words, 2 ms apart.
fn script(request: &Received) -> Script {
    let wait = |millis| Step::Wait(Duration::from_millis(millis));
    if wants_stream(request) {
        return Script::reply(&"word ".repeat(20)).first(wait(10)).gap(Duration::from_millis(2));
    }
    let answer = format!("{} It depends on the season. ANSWER: {}", request.model, request.model);
    // Tokens of which one cannot be sure.
    let unsure = ChatAnswer::text(&answer).logprobs([("It", -3.0), (" depends", -3.0)]);
    match request.model.as_str() {
        "a" => Script::chat(unsure).first(wait(20)),
        "b" => Script::chat(unsure).first(wait(30)),
        "c" => Script::chat(unsure).first(wait(40)),
        _ => Script::chat(verdict()).first(wait(30)),
    }
}

async fn beyond_its_path(case: &Case, backend: &Backend) -> Chorus {
    backend.scripts.otherwise(script);
    let chorus = Chorus::serve(&file(case.members, case.algorithm), backend, None, Threads::own(None)).await;
    let mut to_backend = Line::to(backend.scripts.address()).await;
    let mut to_chorus = Line::to(chorus.data).await;
    let mut beyond = Times::default();
    for run in 0..WARM_UP + RUNS {
        let mut path = Duration::ZERO;
        for (model, stream) in case.path {
            path += to_backend.timed(&request(model, *stream, "you?")).await;
        }
        let calls = backend.scripts.requests().len();
        let whole = to_chorus.timed(&request("vllm-sr/auto", true, "you?")).await;
        let made = backend.scripts.requests().len() - calls;
        assert!(made >= case.path.len(), "{}: {made} calls, its path has {}", case.name, case.path.len());
        if run >= WARM_UP {
            beyond.push(whole.saturating_sub(path));
        }
    }
    report(&format!("  {}", case.name), &beyond, Duration::from_millis(3));
    chorus
}

/// Members take 300, 400 and 500 ms, the judge 400 ms; the writer begins after 200 ms and writes 50 words, 10 ms apart,
/// each with the mark of the question that it answers.
fn crowd_script(request: &Received) -> Script {
    let wait = |millis| Step::Wait(Duration::from_millis(millis));
    if wants_stream(request) {
        let mark = mark_in(&request.json().to_string());
        return Script::stream(words(&mark)).first(wait(200)).gap(Duration::from_millis(10));
    }
    match request.model.as_str() {
        "a" => Script::reply("It does.").first(wait(300)),
        "b" => Script::reply("It does not.").first(wait(400)),
        "c" => Script::reply("It depends.").first(wait(500)),
        _ => Script::chat(verdict()).first(wait(400)),
    }
}

fn words(mark: &str) -> Vec<String> {
    (0..CROWD_WORDS).map(|at| format!("{mark}-{at} ")).collect()
}

/// `mark17?` in a request's text.
fn mark_in(text: &str) -> String {
    let digits = text.rsplit_once("mark").map_or("", |(_, after)| after);
    let digits: String = digits.chars().take_while(char::is_ascii_digit).collect();
    format!("mark{digits}")
}

async fn crowd(backend: &Backend) -> Chorus {
    backend.scripts.otherwise(crowd_script);
    let fusion = "{ type: fusion, fusion: { model: judge, max_concurrent: 3 } }";
    let chorus = Chorus::serve(&file(TRIO, fusion), backend, None, Threads::own(None)).await;
    let mut alone = Times::default();
    let mut line = Line::to(backend.scripts.address()).await;
    for _ in 0..WAVES {
        alone.push(path_of_one(&mut line, 0).await);
    }
    let (mut bare, mut fused) = (Times::default(), Times::default());
    let mut to_backend = lines(backend.scripts.address()).await;
    let mut to_chorus = lines(chorus.data).await;
    for wave in 0..=WAVES {
        let direct = join_all(to_backend.iter_mut().enumerate().map(|(at, line)| path_of_one(line, at)));
        let direct = direct.await;
        let through = join_all(to_chorus.iter_mut().enumerate().map(|(at, line)| fusion_of_one(line, at)));
        let through = through.await;
        // The first wave opens the connections.
        if wave > 0 {
            direct.into_iter().for_each(|time| bare.push(time));
            through.into_iter().for_each(|time| fused.push(time));
        }
    }
    let adds = fused.median().as_secs_f64() / alone.median().as_secs_f64() - 1.0;
    let (ratio, bound) = (fused.median().as_secs_f64() / bare.median().as_secs_f64(), 100.0 * CROWD_ADDS);
    let verdict = if adds <= CROWD_ADDS { "within" } else { "OVER" };
    println!(
        "\n{CROWD} Fusions of three members at once, {WAVES} waves; every stream was whole and in order"
    );
    println!("  critical path, one alone, called directly             median {:>10.1?}", alone.median());
    println!("  critical path, {CROWD} at once, called directly           median {:>10.1?}", bare.median());
    report_crowd(&fused);
    println!(
        "  added to the path of one alone {:.1}%, {verdict} {bound:.0}%; to that of {CROWD} at once {:.1}%",
        100.0 * adds,
        100.0 * (ratio - 1.0)
    );
    chorus
}

fn report_crowd(fused: &Times) {
    let (median, p95) = (fused.median(), fused.quantile(0.95));
    println!(
        "  Fusion, {CROWD} at once                                   median {median:>10.1?}   p95 {p95:>10.1?}"
    );
}

async fn lines(address: std::net::SocketAddr) -> Vec<Line> {
    join_all((0..CROWD).map(|_| Line::to(address))).await
}

/// The slowest member, the judge, the writer: one after the other, straight to the backend.
async fn path_of_one(line: &mut Line, at: usize) -> Duration {
    let started = Instant::now();
    let mark = format!("mark{at}?");
    line.timed(&request("c", false, &mark)).await;
    line.timed(&request("judge", false, &mark)).await;
    let text = line.send(&request("judge", true, &mark)).await.collect().await.unwrap().to_bytes();
    assert_eq!(content(&text), words(&format!("mark{at}")).concat());
    started.elapsed()
}

/// The same through Chorus; a stream that lost, doubled or mixed up a word ends the benchmark.
async fn fusion_of_one(line: &mut Line, at: usize) -> Duration {
    let started = Instant::now();
    let body = request("vllm-sr/fusion", true, &format!("mark{at}?"));
    let text = line.send(&body).await.collect().await.unwrap().to_bytes();
    let took = started.elapsed();
    assert_eq!(content(&text), words(&format!("mark{at}")).concat());
    took
}

/// The contents of a stream's events, in order.
fn content(stream: &[u8]) -> String {
    let text = String::from_utf8_lossy(stream);
    let events = text.lines().filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    let pieces = events.filter_map(|event| {
        event.pointer("/choices/0/delta/content").and_then(Value::as_str).map(str::to_owned)
    });
    pieces.collect()
}
