//! What a choice costs without the encoder pass: `cargo bench -p chorus-select`.

#![expect(clippy::expect_used, reason = "a benchmark that cannot go on should say where")]

use chorus_select::learned::{Card, GuardCard, Kind, Learned, Tensor, write};
use chorus_select::live::{Deployment, Ended};
use chorus_select::{Candidate, Needs, SelectionAsk, Selector};
use chorus_select::{latency_aware::LatencyAware, multi_factor::MultiFactor, static_order::StaticOrder};
use criterion::{Criterion, criterion_group, criterion_main};
use std::collections::BTreeMap;
use std::hint::black_box;

const MODELS: [&str; 9] = ["a", "b", "c", "d", "e", "f", "g", "h", "i"];
const EXAMPLES: usize = 6_000;
const DIMENSION: usize = 384;

/// Unit vectors without any order.
fn vectors(count: usize) -> Vec<f32> {
    let mut state = 0x9e37_79b9_u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state as f32 / u32::MAX as f32 - 0.5
    };
    let mut all = Vec::with_capacity(count * DIMENSION);
    for _ in 0..count {
        let row: Vec<f32> = (0..DIMENSION).map(|_| next()).collect();
        let length = row.iter().map(|it| it * it).sum::<f32>().sqrt();
        all.extend(row.iter().map(|it| it / length));
    }
    all
}

fn knn() -> Learned {
    let models = MODELS.map(str::to_owned).to_vec();
    let card = Card {
        means: vec![0.5; MODELS.len()],
        k: 100,
        caution: 1.645,
        guard: Some(GuardCard { quantile: 0.95, distance: 2.0, neighbours: 5 }),
        ..Card::of(Kind::Knn, "sha256:bench", DIMENSION, models)
    };
    let scores = (0..EXAMPLES * MODELS.len()).map(|at| ((at * 7919) % 2) as f32).collect();
    let tensors = BTreeMap::from([
        ("vectors".to_owned(), Tensor::new(DIMENSION, vectors(EXAMPLES))),
        ("scores".to_owned(), Tensor::new(MODELS.len(), scores)),
    ]);
    let bytes = write(&card, &tensors).expect("the artifact is written");
    Learned::parse(Kind::Knn, &bytes).expect("the artifact is read")
}

/// Deployments as they are after many calls.
fn deployments() -> Vec<Deployment> {
    let one = |model: usize| {
        let mut it = Deployment::default();
        for call in 0..600 {
            it.start();
            let ms = 100.0 + (call * 37 % 400) as f64 + model as f64;
            it.end(Ended { ttft_ms: Some(ms), tpot_ms: Some(ms / 20.0), failed: false });
        }
        it
    };
    (0..MODELS.len()).map(one).collect()
}

fn candidates(deployments: &mut [Deployment], needs: Needs) -> Vec<Candidate<'static>> {
    let of = |(model, it): (&&'static str, &mut Deployment)| Candidate {
        model,
        quality: Some(0.5),
        usd_per_1m: 1.0,
        live: Deployment::figures(&mut [it], needs),
        ..Candidate::default()
    };
    MODELS.iter().zip(deployments.iter_mut()).map(of).collect()
}

/// The whole way, as in traffic: a call of one model ends, percentiles are read, the choice is made.
fn choose(c: &mut Criterion) {
    let mut deployments = deployments();
    let query = vectors(1);
    let plain: [(&str, Box<dyn Selector>); 4] = [
        ("static", Box::new(StaticOrder)),
        ("multi_factor", Box::new(MultiFactor(Default::default()))),
        ("latency_aware", Box::new(LatencyAware(Default::default()))),
        ("knn 6000 x 384", Box::new(knn())),
    ];
    for (name, selector) in plain {
        c.bench_function(name, |b| {
            b.iter(|| {
                if let Some(one) = deployments.first_mut() {
                    one.start();
                    one.end(Ended { ttft_ms: Some(210.0), tpot_ms: Some(11.0), failed: false });
                }
                let candidates = candidates(&mut deployments, selector.needs());
                let ask =
                    SelectionAsk { candidates: &candidates, query: Some(&query), category: None, seed: 1 };
                black_box(selector.choose(black_box(&ask)))
            });
        });
    }
}

criterion_group!(benches, choose);
criterion_main!(benches);
