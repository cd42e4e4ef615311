//! What one request, one answer and one chunk of a stream cost to read and to write: time, and beside it allocations and
//! processor time.
//!
//! `cargo bench -p chorus-wire`.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench stops at what it cannot read, and tells figures"
)]

use chorus_wire::{
    ChatReply, ChatRequest, Chunk, ChunkReader, RequestLimits, SseDecoder, StreamIdentity, StreamRepair, sse,
    tokens,
};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

/// About 3 KiB of prose with what prose has: quotation marks, line breaks, an apostrophe beyond ASCII now and then.
fn prose(escapes: bool) -> String {
    let plain =
        "The ledger of the harbour lists every ship that came in since the spring, and what it carried. ";
    let quoted = "\"Nobody,\" said the clerk, \"has asked for it in years.\"\n\n";
    let mut text = String::new();
    while text.len() < 3000 {
        text.push_str(plain);
        if escapes {
            text.push_str(quoted);
        }
    }
    text
}

fn request(text: &str) -> Vec<u8> {
    let text = serde_json::to_string(text).unwrap();
    format!(
        r#"{{"model":"auto","messages":[{{"role":"user","content":{text}}}],"temperature":0.2,"max_tokens":256,"stream":false}}"#
    )
    .into_bytes()
}

fn answer() -> Vec<u8> {
    let text = "It came in on the ninth of May. ".repeat(8);
    format!(
        r#"{{"id":"chatcmpl-8f3ca1","object":"chat.completion","created":1726000000,"model":"small","choices":[{{"index":0,"message":{{"role":"assistant","content":"{text}"}},"logprobs":null,"finish_reason":"stop"}}],"usage":{{"prompt_tokens":640,"completion_tokens":72,"total_tokens":712}},"system_fingerprint":"fp_1"}}"#
    )
    .into_bytes()
}

const OPENING: &[u8] = br#"{"id":"chatcmpl-8f3ca1","object":"chat.completion.chunk","created":1726000000,"model":"small","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}"#;
const CHUNK: &[u8] = br#"{"id":"chatcmpl-8f3ca1","object":"chat.completion.chunk","created":1726000000,"model":"small","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{"content":" harbour"},"logprobs":null,"finish_reason":null}]}"#;

fn identity() -> StreamIdentity {
    StreamIdentity { id: "chatcmpl-ours".to_owned(), model: "auto".to_owned(), created: 1_726_000_001 }
}

/// Times `work`, and says how many allocations one run of it makes.
fn measured<T>(c: &mut Criterion, name: &str, mut work: impl FnMut() -> T) {
    drop(work());
    let once = allocation_counter::measure(|| drop(black_box(work())));
    c.bench_function(name, |b| b.iter(&mut work));
    println!(
        "{name}: {} allocations, {} bytes, {} ns of processor time\n",
        once.count_total,
        once.bytes_total,
        processor_ns(&mut work)
    );
}

/// Processor time of one run of many, which a busy machine does not stretch; 0 where the system does not tell.
fn processor_ns<T>(work: &mut impl FnMut() -> T) -> u64 {
    const RUNS: u64 = 50_000;
    // The first number of the file: nanoseconds on a processor (Linux, `proc_schedstat`).
    let so_far = || {
        let told = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
        told.split_whitespace().next().and_then(|ns| ns.parse().ok()).unwrap_or(0_u64)
    };
    let before = so_far();
    for _ in 0..RUNS {
        black_box(work());
    }
    (so_far() - before) / RUNS
}

fn requests(c: &mut Criterion) {
    let limits = RequestLimits::default();
    for (name, escapes) in [("plain", false), ("quoted", true)] {
        let body = request(&prose(escapes));
        let read = || ChatRequest::parse(black_box(&body), &limits).unwrap();
        measured(c, &format!("request/read/{name}"), read);
        let request = read();
        measured(c, &format!("request/send/{name}"), || {
            let mut sent = black_box(&request).clone();
            sent.set_model("small");
            sent.to_bytes()
        });
        measured(c, &format!("request/tokens/{name}"), || tokens::of_request(black_box(&request)));
    }
}

fn answers(c: &mut Criterion) {
    let body = answer();
    measured(c, "answer/pass", || {
        let mut reply = ChatReply::parse(black_box(&body)).unwrap();
        reply.normalise();
        reply.set("id", &"chatcmpl-ours");
        reply.set("created", &1_726_000_001_u64);
        reply.set("model", &"auto");
        reply.to_bytes()
    });
}

fn streams(c: &mut Criterion) {
    let mut repair = StreamRepair::new(identity());
    repair.push(Chunk::parse(OPENING).unwrap());
    measured(c, "chunk/read/any", || Chunk::parse(black_box(CHUNK)).unwrap());
    let mut reader = ChunkReader::default();
    measured(c, "chunk/read/like the one before", || reader.read(black_box(CHUNK)).unwrap());
    measured(c, "chunk/pass", || {
        let chunk = repair.push(Chunk::parse(black_box(CHUNK)).unwrap()).unwrap();
        sse::encode_object(chunk.body())
    });
    let event = sse::encode(CHUNK);
    let mut decoder = SseDecoder::new(sse::MAX_EVENT_BYTES);
    let mut events = Vec::new();
    measured(c, "sse/decode", || {
        events.clear();
        decoder.push(black_box(&event), &mut events).unwrap();
        events.len()
    });
}

criterion_group!(benches, requests, answers, streams);
criterion_main!(benches);
