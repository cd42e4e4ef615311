//! What routing adds to a request, against a direct call to the same backend in the same run.
//!
//! `cargo bench -p chorus-server --bench overhead`. The encoder's part needs the files of all-MiniLM-L6-v2 under
//! `$CHORUS_MODELS` (default `~/.cache/chorus/models`), as `chorus models pull all-minilm-l6-v2` puts them there.

#![expect(
    clippy::print_stdout,
    clippy::unwrap_used,
    clippy::panic,
    reason = "a benchmark speaks to the terminal"
)]

mod rig;

use bytes::Bytes;
use chorus_infer::TextEncoder;
use chorus_infer::encoder::MiniLm;
use chorus_testkit::Script;
use rig::{Backend, Chorus, Line, Threads, Times, client, report, say_load};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::runtime::Handle;

const WARM_UP: usize = 100;
/// Of each side, taken in turns.
const RUNS: usize = 1500;

/// Heuristics only; the last decision wins after all others were looked at.
const HEURISTICS: &str = include_str!("heuristics.yaml");

/// The winner depends on a domain and on complexity: one shared pass of the encoder.
const LEARNED: &str = r#"
version: v0.3
providers:
  models: [{ name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }]
routing:
  modelCards: [{ name: small, context_window_size: 32768 }]
  signals:
    domains: [{ name: science, mmlu_categories: [biology, chemistry, physics] }]
    complexity:
      - name: effort
        threshold: 0.05
        hard: { candidates: [Compare the evidence for two theories and say which is better supported] }
        easy: { candidates: [What is the capital of France?] }
  decisions:
    - name: research
      priority: 100
      rules: { operator: AND, conditions: [{ type: domain, name: science }, { type: complexity, name: "effort:hard" }] }
      modelRefs: [{ model: small }]
    - { name: rest, priority: 10, modelRefs: [{ model: small }] }
"#;

/// 20 tokens with the two special ones.
const PROMPT: &str = "What process do green plants use to turn the light of the sun into energy for growth?";

fn main() {
    say_load();
    // The runtime ends last: a runtime may not be dropped inside another.
    let client = client();
    let kept = client.block_on(async {
        let backend = Backend::start(Threads::own(Some(1))).await;
        backend.scripts.otherwise(|_| Script::reply("fine"));
        let shared = || Threads { handle: Handle::current(), _owned: None };
        let apart = heuristics("each side on threads of its own", &backend, Threads::own(None)).await;
        let near = Backend::start(shared()).await;
        near.scripts.otherwise(|_| Script::reply("fine"));
        let together = heuristics("all on one thread", &near, shared()).await;
        let learned = learned(&backend).await;
        (backend, apart, near, together, learned)
    });
    drop(kept);
    say_load();
}

/// A request of 1 KiB.
fn request(model: &str, text: &str) -> Bytes {
    let body = json!({"model": model, "temperature": 0, "messages": [{"role": "user", "content": text}]});
    Bytes::from(body.to_string())
}

async fn heuristics(layout: &str, backend: &Backend, threads: Threads) -> Chorus {
    let chorus = Chorus::serve(HEURISTICS, backend, None, threads).await;
    let filler = "The lighthouse keeper counts the ships that pass in the fog. ".repeat(16);
    let text = filler.get(..1024 - request("small", "").len()).unwrap();
    let (named, routed) = (request("small", text), request("vllm-sr/auto", text));
    let (mut bare, mut hop, mut added) = (Times::default(), Times::default(), Times::default());
    let mut to_backend = Line::to(backend.scripts.address()).await;
    let mut to_chorus = Line::to(chorus.data).await;
    for run in 0..WARM_UP + RUNS {
        let direct = to_backend.timed(&named).await;
        let passed = to_chorus.timed(&named).await;
        let decided = to_chorus.timed(&routed).await;
        if run >= WARM_UP {
            bare.push(direct);
            hop.push(passed.saturating_sub(direct));
            added.push(decided.saturating_sub(direct));
        }
    }
    println!(
        "\nheuristics only, a request of {} bytes, {RUNS} runs of each side in turns, {layout}",
        named.len()
    );
    println!(
        "  direct {:.1?}; a named model, not routed, adds {:.1?} (medians)",
        bare.median(),
        hop.median()
    );
    report("  added", &added, Duration::from_micros(150));
    chorus
}

async fn learned(backend: &Backend) -> Option<Chorus> {
    let encoder: Arc<dyn TextEncoder> = Arc::new(encoder()?);
    let chorus = Chorus::serve(LEARNED, backend, Some(Arc::clone(&encoder)), Threads::own(None)).await;
    let (named, routed) = (request("small", PROMPT), request("vllm-sr/auto", PROMPT));
    let (mut pass, mut added) = (Times::default(), Times::default());
    let mut to_backend = Line::to(backend.scripts.address()).await;
    let mut to_chorus = Line::to(chorus.data).await;
    for run in 0..WARM_UP + RUNS / 3 {
        let started = Instant::now();
        encoder.encode(&[PROMPT]).unwrap();
        let bare = started.elapsed();
        let direct = to_backend.timed(&named).await;
        let decided = to_chorus.timed(&routed).await;
        if run >= WARM_UP {
            pass.push(bare);
            added.push(decided.saturating_sub(direct));
        }
    }
    let tokens = encoder.count_tokens(PROMPT) + 2;
    println!(
        "\na decision on domain and complexity, a prompt of {tokens} tokens, {} runs in turns",
        RUNS / 3
    );
    report("  added", &added, Duration::from_millis(12));
    let ratio = added.median().as_secs_f64() / pass.median().as_secs_f64();
    let verdict = if ratio <= 1.2 { "within" } else { "OVER" };
    println!(
        "  bare pass of the encoder on one thread {:.1?}; ratio {ratio:.2}, {verdict} 1.2",
        pass.median()
    );
    Some(chorus)
}

/// The real encoder; says so when its files are not there.
fn encoder() -> Option<MiniLm> {
    let models = std::env::var_os("CHORUS_MODELS").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache/chorus/models"));
    let folder = models.or_else(home)?.join("all-minilm-l6-v2");
    match MiniLm::load(&folder.join("model.safetensors"), &folder.join("tokenizer.json"), &folder) {
        Ok(encoder) => Some(encoder),
        Err(fault) => {
            println!(
                "\nnot measured: a decision that needs the encoder ({fault}); `chorus models pull all-minilm-l6-v2`"
            );
            None
        }
    }
}
