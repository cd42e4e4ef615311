//! Run records and outcomes in a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_runs -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod redis_server;

use chorus_store::outcomes::OutcomeMark;
use chorus_store::{
    Content, Outcome, OutcomeStore as _, OutcomeTarget, OutcomeVerdict, Page, RedisOutcomes, RedisPlace,
    RedisRuns, RunFilter, RunId, RunRecord, RunStatus, RunStore as _, RunsPlace, SharedRunStore,
    SqliteRunStore, StoreFault, Told,
};
use redis_server::Server;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const DAY: Duration = Duration::from_secs(86_400);

fn runs(place: &RedisPlace, keep_for: Duration, most: usize, spool: SqliteRunStore) -> SharedRunStore {
    let line = || -> Arc<dyn RunsPlace> { Arc::new(RedisRuns::new(place, keep_for, most).unwrap()) };
    SharedRunStore::new(line(), line(), spool, None)
}

fn plain_runs(place: &RedisPlace, keep_for: Duration, most: usize) -> SharedRunStore {
    runs(place, keep_for, most, SqliteRunStore::in_memory().unwrap())
}

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

fn record(decision: &str, at: u64) -> RunRecord {
    RunRecord {
        started_at_ms: at,
        decision: Some(decision.into()),
        // A name that a client may send.
        requested_model: "zażółć\0 *:gęślą".into(),
        content: Some(Content { prompt: "p\0".to_owned(), ..Content::default() }),
        ..RunRecord::default()
    }
}

async fn all(store: &SharedRunStore) -> Vec<RunRecord> {
    store.list(RunFilter::default(), Page::default()).await.unwrap()
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn two_replicas_share_records() {
    let Some(server) = Server::start().await else { return };
    let place = server.place("runs:");
    let (one, other) = (plain_runs(&place, DAY, 10_000), plain_runs(&place, DAY, 10_000));
    let start = now_ms();
    let records: Vec<RunRecord> =
        (0..600).map(|n| record(if n % 2 == 0 { "even" } else { "odd" }, start + n)).collect();
    let writes = records.iter().enumerate().map(|(n, record)| {
        let (store, record) = (if n % 2 == 0 { one.clone() } else { other.clone() }, record.clone());
        tokio::spawn(async move { store.append(record).await.unwrap() })
    });
    for write in writes.collect::<Vec<_>>() {
        write.await.unwrap();
    }
    assert_eq!(other.get(&records[0].id).await.unwrap().as_ref(), Some(&records[0]));
    assert_eq!(other.get(&RunId::new()).await.unwrap(), None);
    let even = RunFilter { decision: Some("even".to_owned()), ..RunFilter::default() };
    let latest = other.list(even.clone(), Page { limit: 2, before: None }).await.unwrap();
    assert_eq!(latest, [records[598].clone(), records[596].clone()]);
    let before = Page { limit: 1, before: Some(latest[1].id.clone()) };
    assert_eq!(one.list(even, before).await.unwrap(), std::slice::from_ref(&records[594]));
    let named = RunFilter {
        requested_model: Some(records[0].requested_model.clone().into()),
        since_ms: Some(start + 599),
        ..RunFilter::default()
    };
    assert_eq!(one.list(named, Page::default()).await.unwrap(), std::slice::from_ref(&records[599]));
    let failed = RunFilter { status: Some(RunStatus::Failed), ..RunFilter::default() };
    assert_eq!(one.list(failed, Page::default()).await.unwrap(), []);
    let whole = other.list(RunFilter::default(), Page { limit: 1000, before: None }).await.unwrap();
    assert!(whole.iter().eq(records.iter().rev()));
    let again = one.append(records[0].clone()).await;
    assert!(matches!(again, Err(StoreFault::Duplicate(id)) if id == records[0].id));
    assert_eq!(one.trim_content("odd".to_owned(), 2, 10).await.unwrap(), 10);
    assert_eq!(one.trim_content("odd".to_owned(), 2, u64::MAX).await.unwrap(), 288);
    assert_eq!(other.get(&records[599].id).await.unwrap().unwrap().content, records[599].content);
    assert_eq!(other.get(&records[595].id).await.unwrap().unwrap().content, None);
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn there_are_never_more_runs_than_told_and_none_is_too_old() {
    let Some(server) = Server::start().await else { return };
    let few = plain_runs(&server.place("few:"), DAY, 5);
    let records: Vec<RunRecord> = (0..20).map(|_| record("d", now_ms())).collect();
    for record in &records {
        few.append(record.clone()).await.unwrap();
    }
    assert!(all(&few).await.iter().eq(records[15..].iter().rev()), "the oldest make room");
    assert_eq!(few.get(&records[0].id).await.unwrap(), None);
    let of = RunFilter { decision: Some("d".to_owned()), ..RunFilter::default() };
    assert_eq!(few.list(of, Page::default()).await.unwrap().len(), 5);

    let short = plain_runs(&server.place("short:"), Duration::from_millis(300), 5);
    let (old, young) = (record("d", now_ms() - 1000), record("d", now_ms()));
    short.append(old).await.unwrap();
    short.append(young.clone()).await.unwrap();
    assert_eq!(all(&short).await, [young]);
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(all(&short).await, []);
    assert_eq!(left_of(&server, "short:").await, [""; 0], "nothing is left of them");
}

/// The names of all keys that begin so.
async fn left_of(server: &Server, prefix: &str) -> Vec<String> {
    let place = server.place(prefix);
    let url = format!("redis://:{}@{}/{}", place.password.unwrap(), place.address, place.database);
    let mut line = redis::Client::open(url).unwrap().get_multiplexed_async_connection().await.unwrap();
    redis::cmd("KEYS").arg(format!("{prefix}*")).query_async(&mut line).await.unwrap()
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn what_waits_in_the_spool_is_brought_over_once() {
    let Some(server) = Server::start().await else { return };
    let place = server.place("spool:");
    let spool = SqliteRunStore::in_memory().unwrap();
    let (kept, waiting) = (record("kept", now_ms()), record("waiting", now_ms()));
    plain_runs(&place, DAY, 10).append(kept.clone()).await.unwrap();
    // What a server had taken before it could say so waits too.
    for record in [&kept, &waiting] {
        spool.append(record.clone()).await.unwrap();
    }
    let store = runs(&place, DAY, 10, spool.clone());
    for _ in 0..200 {
        if spool.list(RunFilter::default(), Page::default()).await.unwrap().is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(all(&store).await, [waiting, kept], "each once");
    assert_eq!(spool.list(RunFilter::default(), Page::default()).await.unwrap(), []);
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_wrong_password_is_no_absence() {
    let Some(server) = Server::start().await else { return };
    let place = RedisPlace { password: Some("hunter2".to_owned()), ..server.place("p:") };
    let fault = RedisRuns::new(&place, DAY, 10).unwrap().reached().await.unwrap_err();
    assert!(!fault.is_absence() && fault.to_string() == "it refused the password", "{fault}");
    assert!(RedisRuns::new(&server.place("p:"), DAY, 10).unwrap().reached().await.is_ok());
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn e11_replicas_judge_a_run_once_and_read_on_from_a_mark() {
    let Some(server) = Server::start().await else { return };
    let open = || RedisOutcomes::new(&server.place("runs:"), DAY, 100).unwrap();
    let (one, other) = (open(), open());
    let outcome = |verdict| Outcome {
        run: RunId::new(),
        told_at_ms: 5,
        target: OutcomeTarget::Model,
        target_ref: Some("small".to_owned()),
        decision: None,
        verdict,
        reason: Some("a\0b".to_owned()),
        score: Some(0.5),
        metadata: Default::default(),
    };
    let (good, bad) = (outcome(OutcomeVerdict::GoodFit), outcome(OutcomeVerdict::Failed));
    assert_eq!(one.latest(10).await.unwrap(), (Vec::new(), OutcomeMark::default()));
    assert_eq!(one.tell("k1".to_owned(), good.clone()).await.unwrap(), Told::New);
    let later = Outcome { told_at_ms: 9, ..good.clone() };
    assert_eq!(other.tell("k1".to_owned(), later).await.unwrap(), Told::Again);
    assert_eq!(other.tell("k1".to_owned(), bad.clone()).await.unwrap(), Told::Other);
    let second = Outcome { verdict: OutcomeVerdict::Failed, ..good.clone() };
    assert_eq!(other.tell("k2".to_owned(), second).await.unwrap(), Told::Other, "a run is judged once");
    let (first, mark) = one.after(OutcomeMark::default(), 10).await.unwrap();
    assert_eq!(first, std::slice::from_ref(&good));
    assert_eq!(other.tell("k2".to_owned(), bad.clone()).await.unwrap(), Told::New);
    assert_eq!(one.of(&bad.run).await.unwrap(), std::slice::from_ref(&bad));
    let (next, end) = one.after(mark, 10).await.unwrap();
    assert_eq!(next, std::slice::from_ref(&bad));
    assert_eq!(one.after(end, 10).await.unwrap(), (Vec::new(), end));
    assert_eq!(one.latest(10).await.unwrap(), (vec![bad, good], end));
}
