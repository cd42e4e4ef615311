//! The store of workflow states and the counters of limits against a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_redis -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod redis_server;

use chorus_collab::WorkflowStates as _;
use chorus_store::{Admission, LimitCounter, RedisLimits, RedisPlace, RedisStates, Window};
use redis_server::Server;
use std::time::Duration;

fn states(server: &Server, password: &str, ttl: Duration) -> RedisStates {
    let place = RedisPlace { password: Some(password.to_owned()), ..server.place("chorus:test:") };
    RedisStates::new(&place, ttl).unwrap()
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_real_server_keeps_a_state_gives_it_once_and_forgets_it() {
    let Some(server) = Server::start().await else { return };
    states(&server, "sesame", Duration::from_secs(60)).put("x", "{\"é\":1}".to_owned()).await.unwrap();
    let takers = (0..8).map(|_| {
        let states = states(&server, "sesame", Duration::from_secs(60));
        tokio::spawn(async move { states.take("x").await.unwrap() })
    });
    let mut taken = Vec::new();
    for taker in takers.collect::<Vec<_>>() {
        taken.extend(taker.await.unwrap());
    }
    assert_eq!(taken, ["{\"é\":1}"], "of eight connections one gets it");

    let short = states(&server, "sesame", Duration::from_millis(30));
    short.put("y", "z".to_owned()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(80)).await;
    assert_eq!(short.take("y").await.unwrap(), None, "forgotten after its time to live");

    let fault = states(&server, "wrong", Duration::from_secs(1)).take("x").await.unwrap_err().to_string();
    assert!(fault.contains("password"), "{fault}");
}

fn counter(key: &str, most: [Option<u64>; 3], unit: Duration) -> LimitCounter {
    LimitCounter { key: key.to_owned(), most, unit }
}

async fn admitted(limits: &RedisLimits, counters: &[LimitCounter], tokens: u64) -> Option<Vec<Window>> {
    match limits.admit(counters, tokens).await.unwrap() {
        Admission::Admitted(windows) => Some(windows),
        Admission::Refused { .. } => None,
    }
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn c12_c13_counters_of_two_connections_are_one_and_a_window_ends() {
    let Some(server) = Server::start().await else { return };
    let limits = || RedisLimits::new(&server.place("chorus:test:")).unwrap();
    let (one, other) = (limits(), limits());
    let day = Duration::from_secs(86_400);

    let requests = [counter("requests", [Some(7), None, None], day)];
    let asks = (0..40).map(|n| {
        let (limits, requests) = (if n % 2 == 0 { one.clone() } else { other.clone() }, requests.clone());
        tokio::spawn(async move { admitted(&limits, &requests, 1).await })
    });
    let mut passed = 0;
    for ask in asks.collect::<Vec<_>>() {
        passed += usize::from(ask.await.unwrap().is_some());
    }
    assert_eq!(passed, 7, "of forty at once on two connections");

    // What runs is counted before it ends; then what it took counts in its place.
    let tokens = [counter("free", [None; 3], day), counter("tokens", [None, Some(100), Some(10)], day)];
    let windows = admitted(&one, &tokens, 90).await.unwrap();
    assert_eq!(admitted(&other, &tokens, 20).await, None);
    one.settle(&windows, -40, 3).await.unwrap();
    let windows = admitted(&other, &tokens, 20).await.unwrap();
    other.settle(&windows, 0, 7).await.unwrap();
    match one.admit(&tokens, 1).await.unwrap() {
        Admission::Refused { counter: 1, bound: 2, wait } => {
            assert!(wait > day / 2 && wait <= day, "{wait:?}");
        }
        other => panic!("{other:?}"),
    }

    let short = [counter("short", [Some(1), None, None], Duration::from_millis(80))];
    let windows = admitted(&one, &short, 5).await.unwrap();
    assert_eq!(admitted(&other, &short, 5).await, None);
    tokio::time::sleep(Duration::from_millis(120)).await;
    assert!(admitted(&other, &short, 5).await.is_some(), "a new window");
    one.settle(&windows, 1000, 0).await.unwrap();
    assert_eq!(admitted(&one, &short, 5).await, None, "the old window's end changed nothing of the new one");
}
