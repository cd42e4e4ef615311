//! Answers that two servers share over a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-server --test doors shared_cache -- --ignored`. Without one it says so and passes.

use crate::cache::{CACHED, Words, auto, is_hit, repeating};
use crate::support::{House, Setup};
use chorus_store::SqliteKeys;
use chorus_testkit::{RedisServer, Script};
use serde_json::json;
use std::sync::Arc;

/// A server whose answers are in that Redis.
async fn house(redis: &RedisServer, keys: &SqliteKeys) -> House {
    let file = format!(
        "{CACHED}global:\n  stores:\n    response_cache:\n      backend_type: redis\n      redis: {{ connection: {{ \
         host: 127.0.0.1, port: {} }} }}\n",
        redis.port()
    );
    let mut setup = Setup { encoder: Some(Arc::new(Words)), ..Setup::of(&file) };
    setup.keys = Some((keys.clone(), false));
    setup.open().await
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn f01_f09_replicas_share_answers_and_what_is_taken_out_and_tenants_share_nothing() {
    let Some(redis) = RedisServer::start(None).await.unwrap() else { return };
    let keys = SqliteKeys::in_memory().unwrap();
    let (one, other) = (house(&redis, &keys).await, house(&redis, &keys).await);
    one.up.on_each("m", [Script::reply("first"), Script::reply("never")]);
    other.up.on_each("m", [Script::reply("of the other tenant"), Script::reply("second")]);
    let of = |user: &str| {
        let (_, key) = keys.create("test", user, &[], 1).unwrap();
        format!("Bearer {}", key.reveal())
    };
    let (t1, t2) = (of("t1"), of("t2"));
    let ask = async |house: &House, key: &str, text: &str| {
        let answer = house.chat_with(("authorization", key), &auto(text)).await.whole().await;
        // An answer is stored when all of it has left, and then the record is written.
        house.record(answer.header("x-vsr-replay-id")).await;
        answer
    };
    let question = "How do I enable guest access?";
    assert_eq!(ask(&one, &t1, question).await.text(), "first");
    let hit = ask(&other, &t1, question).await;
    assert_eq!(
        (is_hit(&hit), hit.text().as_str(), hit.header("x-vsr-cache-kind")),
        (true, "first", Some("exact"))
    );
    let alike = ask(&other, &t1, "how do I enable guest access").await;
    assert_eq!((alike.header("x-vsr-cache-kind"), alike.text().as_str()), (Some("semantic"), "first"));
    let tenant = ask(&other, &t2, question).await;
    assert_eq!((is_hit(&tenant), tenant.text().as_str()), (false, "of the other tenant"));
    let opposite = ask(&one, &t1, "How do I disable guest access?").await;
    assert!(!is_hit(&opposite), "a guard refuses across replicas too");

    let health = one.get("/api/v1/response-cache/health").await.json();
    assert_eq!((&health["status"], &health["backend"]), (&json!("ok"), &json!("redis")));
    let listed = one.get("/api/v1/response-cache/entries").await.json();
    assert_eq!(listed["entries"].as_array().map(Vec::len), Some(3), "of all replicas: {listed}");
    // Taken out at one, gone at the other.
    let entry = hit.header("x-vsr-cache-entry").unwrap();
    assert_eq!(one.delete(&format!("/api/v1/response-cache/entries/{entry}")).await.status, 200);
    let after = ask(&other, &t1, question).await;
    assert_eq!((is_hit(&after), after.text().as_str()), (false, "second"));
    let stats = one.get("/api/v1/response-cache/stats").await.json();
    assert_eq!(
        (&stats["entries"], &stats["invalidated"], &stats["unanswered"]),
        (&json!(3), &json!(1), &json!(0))
    );
    let flushed = one.post("/api/v1/response-cache/flush", r#"{"confirm":"flush response cache"}"#).await;
    assert_eq!((flushed.status, &flushed.json()["removed"]), (200, &json!(3)));
    assert!(!is_hit(&ask(&other, &t2, question).await));
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn requests_go_on_without_their_redis_server() {
    let Some(redis) = RedisServer::start(None).await.unwrap() else { return };
    let house = house(&redis, &SqliteKeys::in_memory().unwrap()).await;
    let body = repeating("the answer?", &json!({}));
    let first = house.chat(&body).await;
    house.record(first.header("x-vsr-replay-id")).await;
    assert!(is_hit(&house.chat(&body).await));
    drop(redis);
    let answer = house.chat(&body).await;
    assert_eq!((answer.status, is_hit(&answer)), (200, false));
    let record = house.record(answer.header("x-vsr-replay-id")).await;
    let trace = &record.traces["plugins"]["response_cache"];
    assert_eq!(*trace, json!({"hit": false, "failed": "the store did not answer"}));
    let health = house.get("/api/v1/response-cache/health").await.json();
    assert_eq!(health["status"], "unreachable");
    let stats = house.get("/api/v1/response-cache/stats").await;
    assert_eq!((stats.status, &stats.json()["error"]["code"]), (503, &json!("store_unavailable")));
}
