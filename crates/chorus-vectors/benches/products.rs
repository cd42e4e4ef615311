//! One vector against many, coded and as they are: `cargo bench -p chorus-vectors`.

use chorus_vectors::{Coded, Exact};
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

const WIDTH: usize = 384;

fn unit(seed: usize) -> Vec<f32> {
    let raw: Vec<f32> = (0..WIDTH).map(|at| ((seed * 97 + at * at) as f32 * 0.37).sin()).collect();
    let length = raw.iter().map(|it| it * it).sum::<f32>().sqrt();
    raw.iter().map(|it| it / length).collect()
}

fn products(criterion: &mut Criterion) {
    for count in [1_000_i64, 100_000] {
        let (mut coded, mut exact) = (Coded::of_width(WIDTH), Exact::of_width(WIDTH));
        for key in 0..count {
            let vector = unit(usize::try_from(key).unwrap_or_default());
            coded.push(&vector);
            exact.push(key, &vector);
        }
        let asked = unit(1_000_000);
        criterion.bench_function(&format!("coded, {count}"), |it| {
            it.iter(|| black_box(coded.products(black_box(&asked))));
        });
        criterion.bench_function(&format!("the ten nearest as they are, {count}"), |it| {
            it.iter(|| black_box(exact.nearest(black_box(&asked), 10, &|_| true)));
        });
    }
}

criterion_group!(benches, products);
criterion_main!(benches);
