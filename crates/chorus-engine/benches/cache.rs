//! What a lookup by meaning costs a request: the encoder pass over its question, and the search among 100,000 answers of
//! one partition, in one run. `CHORUS_MODELS=DIR cargo bench -p chorus-engine --bench cache`.
//!
//! `DIR` is a model store with all-minilm-l6-v2; without it nothing is measured, and that is said.

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark speaks to the terminal")]

use chorus_cache::{Answers, Bounds, Labels, Least, NewAnswer, Question, Worded};
use chorus_infer::TextEncoder;
use chorus_infer::encoder::{MiniLm, Precision};
use chorus_signals::{SharedPass, language_of};
use chorus_spec::CacheEviction;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

const ANSWERS: usize = 100_000;
const RUNS: usize = 200;

/// Bound of issue 7.
const MOST: Duration = Duration::from_millis(15);

const BOUNDS: Bounds = Bounds { entries: 2 * ANSWERS, bytes: usize::MAX, eviction: CacheEviction::Lru };

fn main() {
    let Some(folder) =
        std::env::var_os("CHORUS_MODELS").map(|dir| PathBuf::from(dir).join("all-minilm-l6-v2"))
    else {
        println!("skipped: CHORUS_MODELS does not name a model store");
        return;
    };
    let files = [folder.join("model.safetensors"), folder.join("tokenizer.json")];
    let encoder = match MiniLm::load_as(&files[0], &files[1], &folder.join("converted"), Precision::Int8) {
        Ok(encoder) => encoder,
        Err(fault) => {
            println!("skipped: {fault}");
            return;
        }
    };
    let answers = filled(encoder.dimension());
    let (mut passes, mut lookups, mut both) = (Vec::new(), Vec::new(), Vec::new());
    for run in 0..RUNS {
        let text =
            format!("How do I change the address of my account before order {run} is sent to my old home?");
        let started = Instant::now();
        let vector = SharedPass::new().encode(&encoder, &text).unwrap().mean.clone();
        let pass = started.elapsed();
        let asked = Worded { partition: "p".to_owned(), language: language_of(&text), text, vector };
        let question = Question { worded: &asked, least: Least::of(0.8, |it| it), max_age_ms: None };
        black_box(answers.alike(black_box(question), 1));
        let whole = started.elapsed();
        passes.push(pass);
        lookups.push(whole.saturating_sub(pass));
        both.push(whole);
    }
    for (name, times) in [("encoder pass, 20 tokens", &mut passes), ("lookup among 100,000", &mut lookups)] {
        println!("{name}: median {:.1?}", median(times));
    }
    let median = median(&mut both);
    let verdict = if median <= MOST { "within" } else { "beyond" };
    println!("both: median {median:.1?}, most {:.1?}; bound {MOST:?}: {verdict}", both.last().unwrap());
}

/// Answers to questions that lie in all directions.
fn filled(dimension: usize) -> Answers {
    let mut answers = Answers::default();
    for n in 1..=ANSWERS {
        let worded = Worded {
            partition: "p".to_owned(),
            text: format!("What does the word number {n} mean?"),
            language: Some("en"),
            vector: vector(n as u64, dimension),
        };
        let new = NewAnswer {
            id: format!("a{n}"),
            exact: format!("k{n}"),
            worded: Some(worded),
            labels: Labels::default(),
            body: Arc::from(&b"{}"[..]),
            ttl_ms: u64::MAX,
        };
        answers.put(new, BOUNDS, 0);
    }
    answers
}

/// A unit vector that looks random and is always the same.
fn vector(seed: u64, dimension: usize) -> Vec<f32> {
    let mut rng = fastrand::Rng::with_seed(seed);
    let raw: Vec<f32> = (0..dimension).map(|_| rng.f32() - 0.5).collect();
    let length = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
    raw.iter().map(|v| v / length).collect()
}

/// The middle one; the times are sorted then.
fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
