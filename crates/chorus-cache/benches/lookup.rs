//! A lookup by meaning among many answers of one partition, without the encoder: `cargo bench -p chorus-cache --bench lookup`.

use chorus_cache::mirror::Row;
use chorus_cache::{Answers, Bounds, Labels, Least, Mirror, NewAnswer, Question, Worded};
use chorus_spec::CacheEviction;
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::sync::Arc;

const DIMENSION: usize = 384;
const BOUNDS: Bounds = Bounds { entries: 200_000, bytes: usize::MAX, eviction: CacheEviction::Lru };

fn vector(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    let raw: Vec<f32> = (0..DIMENSION).map(|_| next()).collect();
    let length = raw.iter().map(|v| v * v).sum::<f32>().sqrt();
    raw.iter().map(|v| v / length).collect()
}

fn answer(n: u64) -> NewAnswer {
    NewAnswer {
        id: format!("a{n}"),
        exact: format!("k{n}"),
        worded: Some(Worded {
            partition: "p".to_owned(),
            text: format!("What does the word number {n} mean?"),
            language: Some("en"),
            vector: vector(n),
        }),
        labels: Labels::default(),
        body: Arc::from(&b"{}"[..]),
        ttl_ms: u64::MAX,
    }
}

fn filled(entries: u64) -> Answers {
    let mut answers = Answers::default();
    for n in 1..=entries {
        answers.put(answer(n), BOUNDS, 0);
    }
    answers
}

fn lookup(c: &mut Criterion) {
    for entries in [1_000, 10_000, 100_000] {
        let answers = filled(entries);
        let Some(asked) = answer(entries / 2).worded else { return };
        let question = Question { worded: &asked, least: Least::of(0.8, |it| it), max_age_ms: None };
        c.bench_function(&format!("by meaning among {entries}"), |b| {
            b.iter(|| black_box(answers.alike(black_box(question), 1)));
        });
    }
    let answers = filled(100_000);
    c.bench_function("exactly among 100000", |b| {
        b.iter(|| black_box(answers.exact(black_box("k777"), 1, None)));
    });
    drop(answers);
    c.bench_function("store, with one making room", |b| {
        let mut answers = filled(1_000);
        let bounds = Bounds { entries: 1_000, ..BOUNDS };
        let mut n = 1_000_000;
        b.iter_batched(
            || {
                n += 1;
                answer(n)
            },
            |new| answers.put(new, bounds, 0),
            BatchSize::SmallInput,
        );
    });
}

/// As [`lookup`], where the answers are in a server that replicas share and its rows were read.
fn shared(c: &mut Criterion) {
    for entries in [1_000, 10_000, 100_000] {
        let mut mirror = Mirror::default();
        let rows = (1..=entries).map(|n| Row {
            exact: format!("k{n}"),
            id: format!("a{n}"),
            text: format!("What does the word number {n} mean?"),
            language: Some("en"),
            vector: vector(n),
        });
        let stored = usize::try_from(entries).unwrap_or(usize::MAX);
        mirror.take_in("p", 1, stored, rows.collect(), entries, usize::MAX);
        let Some(asked) = answer(entries / 2).worded else { return };
        c.bench_function(&format!("by meaning among {entries} of a shared store"), |b| {
            b.iter(|| black_box(mirror.alike(black_box(&asked), Least::of(0.8, |it| it))));
        });
    }
}

criterion_group!(benches, lookup, shared);
criterion_main!(benches);
