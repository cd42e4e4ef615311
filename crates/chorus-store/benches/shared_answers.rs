//! Questions to a server of cached answers, over this machine's own network, where a `redis-server` is on the PATH:
//! `cargo bench -p chorus-store --bench shared_answers`.

#![expect(clippy::unwrap_used, reason = "a measurement that cannot go on should say where")]

use chorus_cache::{Bounds, Labels, NewAnswer, Worded};
use chorus_spec::CacheEviction;
use chorus_store::shared_answers::KeyWish;
use chorus_store::{RedisAnswers, RedisPlace, SharedAnswers as _};
use chorus_testkit::RedisServer;
use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;

const BOUNDS: Bounds = Bounds { entries: 20_000, bytes: usize::MAX, eviction: CacheEviction::Fifo };
const ANSWERS: u64 = 10_000;

fn answer(n: u64) -> NewAnswer {
    let vector = (0..384).map(|at| if at % 384 == n % 384 { 1.0 } else { 0.0 }).collect();
    let text = format!("What does the word number {n} mean?");
    NewAnswer {
        id: format!("a{n}"),
        exact: format!("k{n}"),
        worded: Some(Worded { partition: "p".to_owned(), text, language: None, vector }),
        labels: Labels::default(),
        body: vec![b'x'; 2_000].into(),
        ttl_ms: 3_600_000,
    }
}

async fn filled(it: &RedisAnswers) -> u64 {
    let mut epoch = it.epoch().await;
    while epoch.is_err() {
        tokio::time::sleep(Duration::from_millis(100)).await;
        epoch = it.epoch().await;
    }
    let epoch = epoch.unwrap();
    for n in 0..ANSWERS {
        it.put(answer(n), epoch, BOUNDS).await.unwrap();
    }
    epoch
}

fn questions(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let Some(server) = runtime.block_on(RedisServer::start(None)).unwrap() else { return };
    let place = RedisPlace {
        address: format!("127.0.0.1:{}", server.port()),
        database: 0,
        password: None,
        tls: false,
        tls_any_certificate: false,
        retries: 0,
        key_prefix: "bench:".to_owned(),
    };
    let it = RedisAnswers::new(&place, Duration::from_secs(5)).unwrap();
    let epoch = runtime.block_on(filled(&it));
    let after = runtime.block_on(it.rows("p", 0)).unwrap().after;
    c.bench_function("the very same request, of 10000", |b| {
        b.iter(|| black_box(runtime.block_on(it.exact("k777", KeyWish::default())).unwrap()));
    });
    c.bench_function("a page of 256 rows of a partition", |b| {
        b.iter(|| black_box(runtime.block_on(it.rows("p", 0)).unwrap()));
    });
    c.bench_function("a partition in which little is new", |b| {
        let last = runtime.block_on(latest(&it, after));
        b.iter(|| black_box(runtime.block_on(it.rows("p", last)).unwrap()));
    });
    let mut n = ANSWERS;
    c.bench_function("store", |b| {
        b.iter(|| {
            n += 1;
            runtime.block_on(it.put(answer(n), epoch, BOUNDS)).unwrap()
        });
    });
}

/// The place behind the last row.
async fn latest(it: &RedisAnswers, mut after: u64) -> u64 {
    loop {
        let page = it.rows("p", after).await.unwrap();
        after = page.after;
        if !page.more {
            return after;
        }
    }
}

criterion_group!(benches, questions);
criterion_main!(benches);
