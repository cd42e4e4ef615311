//! Responses in a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_responses -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod redis_server;

use chorus_store::{KeptResponse, RedisResponses, ResponseFault, ResponseLimits, ResponseStore as _};
use redis_server::Server;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()
}

fn response(n: u64, created_at: u64) -> KeptResponse {
    KeptResponse {
        id: format!("resp_{n}"),
        owner: n.is_multiple_of(2).then(|| "ada".to_owned()),
        created_at,
        settled: false,
        input: "[\"é\"]".to_owned(),
        object: r#"{"status":"in_progress"}"#.to_owned(),
    }
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn a_response_of_one_replica_is_the_others_and_is_settled_once() {
    let Some(server) = Server::start().await else { return };
    let open = || RedisResponses::new(&server.place("responses:"), ResponseLimits::default()).unwrap();
    let (one, other) = (open(), open());
    for n in 1..=2 {
        let kept = response(n, now());
        one.put(kept.clone()).await.unwrap();
        assert_eq!(other.get(&kept.id).await.unwrap(), Some(kept));
    }
    let settlers = (0..8).map(|n| {
        let store = open();
        tokio::spawn(async move { store.settle("resp_1", format!("{{{n}}}")).await.unwrap() })
    });
    let mut settled = 0;
    for settler in settlers.collect::<Vec<_>>() {
        settled += usize::from(settler.await.unwrap());
    }
    assert_eq!(settled, 1, "who comes second changes nothing");
    assert!(other.get("resp_1").await.unwrap().unwrap().settled);
    assert!(other.delete("resp_1").await.unwrap());
    assert!(!one.delete("resp_1").await.unwrap());
    assert!(!one.settle("resp_1", "{3}".to_owned()).await.unwrap());
    assert_eq!(one.get("resp_1").await.unwrap(), None);
    assert_eq!(one.get("ids").await.unwrap_or(None), None, "a name of ours is no response");
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn i02_every_bound_is_held() {
    let Some(server) = Server::start().await else { return };
    let limits = ResponseLimits { max_responses: 3, ttl: Duration::from_secs(60), max_response_bytes: 64 };
    let store = RedisResponses::new(&server.place("few:"), limits).unwrap();
    for n in 0..6 {
        store.put(response(n, now() - 10 + n)).await.unwrap();
    }
    assert_eq!(store.get("resp_2").await.unwrap(), None, "the oldest made room");
    assert!(store.get("resp_3").await.unwrap().is_some());
    store.put(response(9, now() - 61)).await.unwrap();
    assert_eq!(store.get("resp_9").await.unwrap(), None, "too old");
    let long = KeptResponse { input: "x".repeat(65), ..response(7, now()) };
    assert!(matches!(store.put(long).await, Err(ResponseFault::TooLarge { .. })));
    let settled = store.settle("resp_5", "x".repeat(65)).await;
    assert!(matches!(settled, Err(ResponseFault::TooLarge { .. })));
    let short = ResponseLimits { ttl: Duration::from_secs(1), ..limits };
    let short = RedisResponses::new(&server.place("short:"), short).unwrap();
    short.put(response(1, now())).await.unwrap();
    tokio::time::sleep(Duration::from_millis(1200)).await;
    assert_eq!(short.get("resp_1").await.unwrap(), None, "its time is over");
}
