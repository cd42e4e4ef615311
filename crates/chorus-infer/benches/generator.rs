//! Speed of the generator on real weights: prefill and decode, on one thread and on two.
//!
//! `CHORUS_MODELS=~/.cache/chorus/models cargo bench -p chorus-infer --bench generator [-- MODEL…]`
//!
//! Prints the machine's load, tokens a second, and the ratio of two threads to one. On a busy machine look at the
//! tokens a second of processor time, which other processes hardly change. Without model files it says so and ends
//! well.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]
#![expect(clippy::expect_used, reason = "a benchmark that cannot run should stop loudly")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use chorus_infer::store::{Catalog, ModelKind};
use chorus_infer::{
    ChatTurn, GenerateEvent, GenerateRequest, Generator, GeneratorOptions, SamplingParams, Usage,
};
use futures_util::StreamExt;

const DECODE_TOKENS: usize = 96;
const PREFILL_WORDS: usize = 360;
const RUNS: usize = 3;

/// Tokens a second of one run; the processor's are per second of work on one core.
#[derive(Clone, Copy, Default)]
struct Speed {
    prefill: f64,
    decode: f64,
    prefill_processor: f64,
    decode_processor: f64,
}

impl Speed {
    fn best(self, other: Self) -> Self {
        Self {
            prefill: self.prefill.max(other.prefill),
            decode: self.decode.max(other.decode),
            prefill_processor: self.prefill_processor.max(other.prefill_processor),
            decode_processor: self.decode_processor.max(other.decode_processor),
        }
    }
}

/// Processor time of this process so far. Source: proc(5), `/proc/pid/stat`, fields 14 and 15, in 1/100 s.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn main() {
    let Some(folder) = std::env::var_os("CHORUS_MODELS").map(PathBuf::from) else {
        println!("skipped: CHORUS_MODELS names no folder of models");
        return;
    };
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    println!("load average: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
    for model in Catalog::builtin().models().iter().filter(|model| model.kind == ModelKind::Generator) {
        let file = model.files.first().map(|file| folder.join(&model.id).join(&file.name));
        match file.filter(|path| path.exists()) {
            Some(_) if !wanted.is_empty() && !wanted.contains(&model.id) => {}
            Some(path) => measure(&model.id, &path),
            None => println!("{}: skipped, not in {}", model.id, folder.display()),
        }
    }
}

fn measure(id: &str, path: &Path) {
    println!("{id}");
    let [one, two] = [1, 2].map(|threads| best(path, threads));
    let rows = [
        ("prefill", one.prefill, two.prefill),
        ("decode", one.decode, two.decode),
        ("prefill, per processor second", one.prefill_processor, two.prefill_processor),
        ("decode, per processor second", one.decode_processor, two.decode_processor),
    ];
    for (what, one, two) in rows {
        println!(
            "  {what:30} 1 thread {one:7.1} tokens/s   2 threads {two:7.1} tokens/s   ratio {:.2}",
            two / one
        );
    }
    println!("  load average: {}", std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim());
}

/// The best of some runs, each with a prompt of its own so that nothing is reused.
fn best(path: &Path, threads: usize) -> Speed {
    let options = GeneratorOptions { threads: Some(threads), cache_bytes: 0, ..Default::default() };
    let began = std::time::Instant::now();
    let generator = Generator::load(path, &options).expect("the model loads");
    println!(
        "  loaded in {:.2} s, {} MB of weights",
        began.elapsed().as_secs_f64(),
        generator.info().weight_bytes >> 20
    );
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let mut best = Speed::default();
    for run in 0..RUNS {
        let speed = runtime.block_on(one_run(&generator, run));
        best = best.best(speed);
    }
    best
}

async fn one_run(generator: &Generator, run: usize) -> Speed {
    let long = format!("{run} {}", "river mountain letter seven ".repeat(PREFILL_WORDS / 4));
    let before = processor_seconds();
    let (usage, prefill, _) = answer(generator, &long, 1).await;
    let tokens = usage.prompt_tokens as f64;
    let (prefill, prefill_processor) =
        (tokens / prefill.as_secs_f64(), tokens / (processor_seconds() - before));
    let before = processor_seconds();
    let (usage, _, decode) = answer(generator, "Write a long story about the sea.", DECODE_TOKENS).await;
    // The first token comes out of the prefill.
    let tokens = usage.completion_tokens.saturating_sub(1) as f64;
    let (decode, decode_processor) = (tokens / decode.as_secs_f64(), tokens / (processor_seconds() - before));
    Speed { prefill, decode, prefill_processor, decode_processor }
}

async fn answer(generator: &Generator, text: &str, max_tokens: usize) -> (Usage, Duration, Duration) {
    let params = SamplingParams { temperature: 0.0, max_tokens: Some(max_tokens), ..Default::default() };
    let request =
        GenerateRequest { messages: vec![ChatTurn::new("user", text)], params, ..Default::default() };
    let events = generator.generate(request).expect("the queue is empty");
    let events: Vec<_> = events.map(|event| event.expect("no fault")).collect().await;
    match events.last() {
        Some(GenerateEvent::Done { usage, timings, .. }) => (*usage, timings.prefill, timings.decode),
        _ => (Usage::default(), Duration::ZERO, Duration::ZERO),
    }
}
