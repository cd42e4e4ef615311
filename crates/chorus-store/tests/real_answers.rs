//! Cached answers in a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_answers -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod redis_server;

use chorus_cache::{Bounds, Filter, Labels, NewAnswer, Worded};
use chorus_spec::CacheEviction;
use chorus_store::shared_answers::{KeyWish, SharedPut};
use chorus_store::{RedisAnswers, SharedAnswers as _};
use redis_server::Server;
use std::process::Command;
use std::time::{Duration, Instant};

const BOUNDS: Bounds = Bounds { entries: 3, bytes: 1 << 20, eviction: CacheEviction::Fifo };
const TOUCH: KeyWish = KeyWish { max_age_ms: None, touch: true };

fn replica(server: &Server, prefix: &str, timeout: Duration) -> RedisAnswers {
    RedisAnswers::new(&server.place(prefix), timeout).unwrap()
}

fn two(server: &Server, prefix: &str) -> (RedisAnswers, RedisAnswers) {
    let timeout = Duration::from_secs(5);
    (replica(server, prefix, timeout), replica(server, prefix, timeout))
}

fn answer(id: &str, key: &str) -> NewAnswer {
    NewAnswer {
        id: id.to_owned(),
        exact: key.to_owned(),
        worded: None,
        labels: Labels { model: "m".to_owned(), owner: Some(format!("owner of {id}")), ..Labels::default() },
        body: format!("{{\"é\":\"{id}\"}}").into_bytes().into(),
        ttl_ms: 60_000,
    }
}

fn worded(id: &str, key: &str, partition: &str) -> NewAnswer {
    let (partition, text) = (partition.to_owned(), format!("question of {id}"));
    let worded = Worded { partition, text, language: None, vector: vec![0.6, -0.8] };
    NewAnswer { worded: Some(worded), ..answer(id, key) }
}

async fn found(it: &RedisAnswers, key: &str) -> Option<String> {
    it.exact(key, KeyWish::default()).await.unwrap().answer.map(|it| it.id)
}

async fn keep(it: &RedisAnswers, new: NewAnswer, bounds: Bounds) -> SharedPut {
    let epoch = it.epoch().await.unwrap();
    it.put(new, epoch, bounds).await.unwrap()
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_replica_is_given_what_another_stored_until_its_time_is_over() {
    let Some(server) = Server::start().await else { return };
    let (one, other) = two(&server, "share:");
    assert_eq!(keep(&one, answer("a", "k"), BOUNDS).await, SharedPut::Stored);
    let look = other.exact("k", KeyWish::default()).await.unwrap();
    let it = look.answer.unwrap();
    assert_eq!(
        (it.id.as_str(), it.labels.model.as_str(), it.body.as_slice()),
        ("a", "m", "{\"é\":\"a\"}".as_bytes())
    );
    assert!(it.age_ms < 5_000 && look.epoch == one.epoch().await.unwrap());
    assert_eq!(found(&other, "another key").await, None);
    // In place of the one of the same request.
    keep(&other, answer("b", "k"), BOUNDS).await;
    assert_eq!(found(&one, "k").await.as_deref(), Some("b"));
    let (_, tally) = one.tally().await.unwrap();
    assert_eq!((tally.entries, tally.stored, tally.bytes), (1, 2, answer("b", "k").bytes()));

    keep(&one, NewAnswer { ttl_ms: 40, ..answer("short", "s") }, BOUNDS).await;
    tokio::time::sleep(Duration::from_millis(5)).await;
    let wish = KeyWish { max_age_ms: Some(1), touch: false };
    assert_eq!(other.exact("s", wish).await.unwrap().answer, None, "older than the client wants");
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(found(&other, "s").await, None);
    let (_, tally) = other.tally().await.unwrap();
    assert_eq!((tally.entries, tally.expired, tally.bytes), (1, 1, answer("b", "k").bytes()));
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn f01_a_partition_gives_its_own_rows_and_then_what_is_new() {
    let Some(server) = Server::start().await else { return };
    let (one, other) = two(&server, "rows:");
    let bounds = Bounds { entries: 1_000, ..BOUNDS };
    keep(&one, worded("a", "ka", "t1"), bounds).await;
    keep(&one, worded("of another", "kb", "t2"), bounds).await;
    let first = other.rows("t1", 0).await.unwrap();
    let [row] = first.rows.as_slice() else { panic!("{first:?}") };
    assert_eq!((row.exact.as_str(), row.id.as_str(), row.text.as_str()), ("ka", "a", "question of a"));
    assert_eq!((row.vector.as_slice(), first.stored, first.more), (&[0.6, -0.8][..], 1, false));
    assert_eq!(other.rows("t1", first.after).await.unwrap().rows, [], "nothing is new");
    keep(&one, worded("c", "kc", "t1"), bounds).await;
    keep(&one, answer("exact alone", "kd"), bounds).await;
    let next = other.rows("t1", first.after).await.unwrap();
    assert_eq!(next.rows.iter().map(|it| it.id.as_str()).collect::<Vec<_>>(), ["c"]);
    assert!(next.stored == 2 && next.after > first.after);

    for n in 0..600 {
        keep(&one, worded(&format!("n{n}"), &format!("kn{n}"), "many"), bounds).await;
    }
    let (mut after, mut read, mut pages) = (0, 0, 0);
    loop {
        let page = other.rows("many", after).await.unwrap();
        (after, read, pages) = (page.after, read + page.rows.len(), pages + 1);
        if !page.more {
            break;
        }
    }
    assert_eq!((read, pages), (600, 3));
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn f09_what_one_replica_takes_out_no_other_gives() {
    let Some(server) = Server::start().await else { return };
    let (one, other) = two(&server, "out:");
    for id in ["a", "b", "c"] {
        keep(&one, worded(id, id, "p"), BOUNDS).await;
    }
    assert_eq!(found(&one, "a").await.as_deref(), Some("a"));
    let all = other.list(&Filter::default(), 10).await.unwrap();
    let told: Vec<_> = all.iter().map(|it| (it.id.as_str(), it.hits, it.semantic, it.bytes)).collect();
    let bytes = worded("a", "a", "p").bytes();
    assert_eq!(told, [("c", 0, true, bytes), ("b", 0, true, bytes), ("a", 1, true, bytes)]);
    assert_eq!(other.list(&Filter::default(), 2).await.unwrap().len(), 2);
    let only = Filter { owner: Some("owner of b".to_owned()), ..Filter::default() };
    assert_eq!(other.invalidate(&only, true).await.unwrap(), 1);
    assert_eq!(found(&one, "b").await.as_deref(), Some("b"), "a dry run takes nothing");
    assert_eq!(other.invalidate(&only, false).await.unwrap(), 1);
    assert_eq!(found(&one, "b").await, None);
    assert_eq!(one.rows("p", 0).await.unwrap().rows.len(), 2);

    // What was looked up before a flush is not stored after it.
    let before = one.epoch().await.unwrap();
    assert_eq!(other.flush().await.unwrap(), 2);
    assert_eq!((found(&one, "a").await, found(&one, "c").await), (None, None));
    assert_eq!(one.put(answer("late", "k"), before, BOUNDS).await.unwrap(), SharedPut::OfAnEarlierEpoch);
    let (epoch, tally) = one.tally().await.unwrap();
    assert_eq!((tally.entries, tally.bytes, tally.invalidated), (0, 0, 3));
    assert!(epoch > before);
    assert_eq!(keep(&one, answer("new", "a"), BOUNDS).await, SharedPut::Stored);
    assert_eq!(found(&other, "a").await.as_deref(), Some("new"));
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn the_first_or_the_least_recently_used_makes_room_within_both_bounds() {
    let Some(server) = Server::start().await else { return };
    for (touch, gone, prefix) in [(false, "a", "fifo:"), (true, "b", "lru:")] {
        let (one, other) = two(&server, prefix);
        for id in ["a", "b", "c"] {
            keep(&one, worded(id, id, "p"), BOUNDS).await;
        }
        other.exact("a", KeyWish { touch, ..TOUCH }).await.unwrap();
        keep(&other, worded("d", "d", "p"), BOUNDS).await;
        assert_eq!(found(&one, gone).await, None);
        let (_, tally) = one.tally().await.unwrap();
        assert_eq!((tally.entries, tally.evicted), (3, 1));
        assert_eq!(one.rows("p", 0).await.unwrap().stored, 3);
    }
    let (one, _) = two(&server, "bytes:");
    let bytes = answer("a", "a").bytes();
    let bounds = Bounds { entries: 100, bytes: 2 * bytes, ..BOUNDS };
    for id in ["a", "b", "c"] {
        keep(&one, answer(id, id), bounds).await;
    }
    let (_, tally) = one.tally().await.unwrap();
    assert_eq!((tally.entries, tally.bytes), (2, 2 * bytes));
    let large = NewAnswer { body: vec![b'x'; 3 * bytes].into(), ..answer("d", "d") };
    assert_eq!(keep(&one, large, bounds).await, SharedPut::TooLarge);
    assert_eq!(one.tally().await.unwrap().1.entries, 2);
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_server_that_forgot_everything_begins_an_epoch_that_never_was() {
    let Some(server) = Server::start().await else { return };
    let (one, _) = two(&server, "lost:");
    keep(&one, answer("a", "k"), BOUNDS).await;
    let before = one.epoch().await.unwrap();
    // As an eviction of that one key would: the answer itself is still there.
    let port = server.0.port().to_string();
    let forget =
        ["-p", &port, "-a", "sesame", "--no-auth-warning", "-n", "2", "DEL", "lost:epoch", "lost:turns"];
    let Ok(done) = Command::new("redis-cli").args(forget).output() else { return };
    assert!(done.status.success(), "{done:?}");
    assert_eq!(found(&one, "k").await, None);
    assert!(one.epoch().await.unwrap() > before);
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_server_that_hangs_is_asked_once_and_then_left_alone() {
    let Some(server) = Server::start().await else { return };
    let it = replica(&server, "slow:", Duration::from_millis(60));
    it.epoch().await.unwrap();
    let pid = server.0.process_id().to_string();
    let stop = |signal: &str| assert!(Command::new("kill").args([signal, &pid]).status().unwrap().success());
    stop("-STOP");
    let started = Instant::now();
    let fault = it.exact("k", TOUCH).await.unwrap_err().to_string();
    assert!(fault.contains("in time") && started.elapsed() < Duration::from_millis(500), "{fault}");
    let started = Instant::now();
    for _ in 0..100 {
        assert!(it.exact("k", TOUCH).await.is_err());
    }
    assert!(started.elapsed() < Duration::from_millis(60), "nobody waits for it: {:?}", started.elapsed());
    stop("-CONT");
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    for _ in 0..20 {
        if it.exact("k", TOUCH).await.is_ok() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    panic!("it is never asked again");
}
