//! What a run record costs from the end of its request to the disk, in processor time of all threads:
//! `cargo bench -p chorus-store --bench run_records`.
//!
//! A record is a typical one of `crates/chorus-server/benches/heuristics.yaml`. Each is kept by a task of its own, as the
//! engine does it; the figures are of one record, with its task and its drop.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a measurement that cannot go on should say where")]

use chorus_store::{
    CallRecord, Losses, Proof, RunId, RunRecord, RunStore as _, SignalRecord, SignalState, SqliteRunStore,
    StoreFault,
};
use chorus_wire::Usage;
use criterion::{Criterion, criterion_group, criterion_main};
use nix::time::{ClockId, clock_gettime};
use std::fs::read_to_string;
use std::hint::black_box;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Records of a round.
const ROUND: usize = 1_000;

/// What was looked at, and what was found.
const SIGNALS: [(&str, Option<f64>); 9] = [
    ("context:long", Some(771.0)),
    ("conversation:turns", Some(1.0)),
    ("keyword:code", None),
    ("keyword:refund", None),
    ("keyword:ticket", None),
    ("keyword:urgent", None),
    ("language:de", None),
    ("language:en", Some(0.97)),
    ("structure:questions", Some(0.0)),
];

/// What became of the decisions.
const PROOFS: [(&str, &str, &str); 5] = [
    ("support", "false", "(-keyword:urgent and -keyword:ticket)"),
    ("money", "false", "(-keyword:refund or -language:de)"),
    ("long", "false", "(-context:long or -conversation:turns or -structure:questions)"),
    ("coding", "false", "-keyword:code"),
    ("rest", "true", "no rules: every request"),
];

fn typical(started_at_ms: u64) -> RunRecord {
    let signal = |&(key, raw): &(&str, Option<f64>)| SignalRecord {
        key: key.into(),
        state: SignalState::Unmatched,
        raw,
        ..SignalRecord::default()
    };
    let proof = |&(decision, verdict, because): &(&str, &str, &str)| Proof {
        decision: decision.into(),
        verdict: verdict.into(),
        because: because.to_owned(),
    };
    let usage = Usage { prompt_tokens: 771, completion_tokens: 120, total_tokens: 891, estimated: false };
    let budget = serde_json::json!({
        "limits": {"max_calls": 64, "max_time_seconds": 600.0, "when_spent": "answer"},
        "spent": null,
        "when_spent": null,
        "by": [{"model": "small", "role": "direct", "calls": 1, "tokens": 891, "micro_usd": 0, "joules": 0.0}],
    });
    RunRecord {
        started_at_ms,
        duration_ms: 12,
        requested_model: "vllm-sr/auto".into(),
        recipe: Some("default".into()),
        decision: Some("rest".into()),
        algorithm: Some("static".into()),
        path: Some("decision".into()),
        models: vec!["small".into()],
        spec_digest: format!("sha256:{}", "ab".repeat(32)).into(),
        signals: SIGNALS.iter().map(signal).collect(),
        signals_us: SIGNALS
            .iter()
            .filter_map(|(key, _)| Some(((*key).split_once(':')?.0.into(), 7)))
            .collect(),
        proof: PROOFS.iter().map(proof).collect(),
        calls: vec![CallRecord {
            role: "direct".into(),
            model: "small".into(),
            backend: Some("main".into()),
            usage,
            latency_ms: 11,
            ..CallRecord::default()
        }],
        usage,
        traces: [("budget".to_owned(), budget)].into(),
        ..RunRecord::default()
    }
}

/// A measurement of records that are lost is none.
struct NoLosses;

impl Losses for NoLosses {
    fn lost(&self, fault: &StoreFault) {
        panic!("{fault}");
    }
}

fn processor_time() -> Duration {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).unwrap().into()
}

/// Processor time of the store's thread, as the scheduler counts it.
fn writing_time() -> Duration {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().map(|thread| thread.unwrap().path());
    let is_it = |thread: &PathBuf| read_to_string(thread.join("comm")).unwrap().trim_end() == "run-records";
    let told = read_to_string(threads.into_iter().find(is_it).unwrap().join("schedstat")).unwrap();
    Duration::from_nanos(told.split(' ').next().unwrap().parse().unwrap())
}

/// Processor time of keeping so many records, `together` of them at a time.
fn kept(runtime: &Runtime, store: &SqliteRunStore, together: usize) -> Duration {
    let mut records: Vec<RunRecord> = (0..ROUND as u64).map(|at| typical(1_700_000_000_000 + at)).collect();
    let losses: Arc<dyn Losses> = Arc::new(NoLosses);
    let before = processor_time();
    while !records.is_empty() {
        let rest = records.len().saturating_sub(together);
        let part = records.drain(rest..).map(|record| {
            let store = store.clone();
            let losses = Arc::clone(&losses);
            runtime.spawn(async move { store.hand_over(Box::new(record), losses).await })
        });
        let part: Vec<_> = part.collect();
        runtime.block_on(async {
            for task in part {
                task.await.unwrap();
            }
            store.flush().await.unwrap();
        });
    }
    processor_time() - before
}

fn records(c: &mut Criterion) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteRunStore::open(&folder.path().join("runs.sqlite")).unwrap();
    let mut group = c.benchmark_group("a run record to the disk");
    group.sample_size(10).warm_up_time(Duration::from_secs(1));
    for together in [64, 250, 1000] {
        group.bench_function(format!("{together} together"), |b| {
            b.iter_custom(|rounds| {
                let spent: Duration = (0..rounds).map(|_| kept(&runtime, &store, together)).sum();
                spent / ROUND as u32
            });
        });
    }
    // Its thread has a name by now.
    runtime.block_on(store.flush()).unwrap();
    group.bench_function("1000 together, on the thread that writes", |b| {
        b.iter_custom(|rounds| {
            let before = writing_time();
            for _ in 0..rounds {
                kept(&runtime, &store, 1000);
            }
            (writing_time() - before) / ROUND as u32
        });
    });
    group.finish();
    let record = typical(1_700_000_000_000);
    c.bench_function("a run record as JSON", |b| {
        b.iter_custom(|rounds| spent(rounds, || black_box(serde_json::to_vec(&record)).unwrap()));
    });
    c.bench_function("a new run id", |b| b.iter_custom(|rounds| spent(rounds, RunId::new)));
}

/// Processor time of doing it so many times.
fn spent<T>(rounds: u64, what: impl Fn() -> T) -> Duration {
    let before = processor_time();
    for _ in 0..rounds {
        black_box(what());
    }
    processor_time() - before
}

criterion_group!(benches, records);
criterion_main!(benches);
