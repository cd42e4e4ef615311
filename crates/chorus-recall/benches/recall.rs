//! What looking up and shortening cost: `cargo bench -p chorus-recall`.

use chorus_recall::{Bm25, ChunkRule, Draft, chunks};
use chorus_vectors::Exact;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

/// Vectors of the default encoder's length, and as many as one vector store may hold.
const WIDTH: usize = 384;
const PASSAGES: i64 = 100_000;

fn vector(seed: i64) -> Vec<f32> {
    (0..WIDTH as i64).map(|at| ((seed * 31 + at * 17) % 101) as f32 / 101.0 - 0.5).collect()
}

fn text(lines: usize) -> String {
    (0..lines)
        .map(|n| format!("12:{:02} INFO request {n} of client {} took {} ms\n", n % 60, n % 13, n % 97))
        .collect()
}

fn nearest(c: &mut Criterion) {
    let mut matrix = Exact::of_width(WIDTH);
    for key in 0..PASSAGES {
        matrix.push(key, &vector(key));
    }
    let query = vector(7);
    c.bench_function("nearest of 100,000 x 384", |b| {
        b.iter(|| black_box(matrix.nearest(black_box(&query), 10, &|_| true)));
    });
}

fn shorten(c: &mut Criterion) {
    let text = text(2200);
    c.bench_function("shorten 100 KiB by words", |b| {
        b.iter(|| {
            let draft = Draft::of(black_box(&text));
            let scores = Bm25::of(draft.units()).scores("why did client 7 wait?");
            black_box(draft.shorten(&scores, 1000, ""))
        });
    });
}

fn cut(c: &mut Criterion) {
    let text = text(22_000);
    c.bench_function("cut 1 MiB into passages", |b| {
        b.iter(|| black_box(chunks(black_box(&text), &ChunkRule::default())));
    });
}

criterion_group!(benches, nearest, shorten, cut);
criterion_main!(benches);
