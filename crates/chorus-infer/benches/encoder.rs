//! How long the real encoder takes: `CHORUS_MODELS=DIR cargo bench -p chorus-infer --bench encoder`.
//!
//! `DIR` holds `model.safetensors` and `tokenizer.json` of all-MiniLM-L6-v2. It knows the public encoder only.
//! Invariant: without the files it says so and measures nothing.

#![expect(clippy::print_stderr, reason = "a benchmark speaks to the terminal")]

use std::path::PathBuf;

use chorus_infer::TextEncoder;
use chorus_infer::encoder::{MiniLm, Precision};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// 20 tokens with the two special ones.
const SHORT: &str = "What process do green plants use to turn the light of the sun into energy for growth?";

fn passes(criterion: &mut Criterion) {
    let Some(folder) =
        std::env::var_os("CHORUS_MODELS").map(|dir| PathBuf::from(dir).join("all-minilm-l6-v2"))
    else {
        eprintln!("skipped: CHORUS_MODELS does not name a model store");
        return;
    };
    let long = "light ".repeat(254);
    let mut group = criterion.benchmark_group("encode");
    group.sample_size(50);
    for precision in [Precision::Int8, Precision::Float] {
        let files = [folder.join("model.safetensors"), folder.join("tokenizer.json")];
        let encoder = match MiniLm::load_as(&files[0], &files[1], &folder.join("converted"), precision) {
            Ok(encoder) => encoder,
            Err(fault) => {
                eprintln!("skipped: {fault}");
                return;
            }
        };
        for text in [SHORT, &long] {
            let tokens = encoder.count_tokens(text) + 2;
            let id = BenchmarkId::new(format!("{precision:?}"), format!("{tokens} tokens"));
            group.bench_function(id, |bencher| bencher.iter(|| encoder.encode(&[text])));
        }
    }
    group.finish();
    if let Some(kilobytes) = resident_kilobytes() {
        eprintln!("resident, both encoders loaded: {} MiB", kilobytes / 1024);
    }
}

/// Source: proc(5), `VmRSS`.
fn resident_kilobytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

criterion_group!(benches, passes);
criterion_main!(benches);
