//! Found memories in a real `redis-server`, where one is on the PATH:
//! `cargo test -p chorus-store --test real_memories -- --ignored`. Without one it says so and passes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod redis_server;

use chorus_store::{CachedMemories, KeepRule, MemoryStore as _, Recall, Statement};
use redis_server::Server;
use std::sync::Arc;
use std::time::Duration;

const RULE: KeepRule = KeepRule { same_cosine: 0.99, most: 100, initial_days: 30.0, least_strength: 0.0 };

fn statement(user: &str, text: &str, vector: [f32; 2]) -> Statement {
    let (user, text, encoder) = (user.to_owned(), text.to_owned(), "e".to_owned());
    Statement { user, text, encoder, vector: vector.to_vec(), at: 1, run: None }
}

async fn near(it: &CachedMemories, user: &str) -> Vec<String> {
    let near = it.near(user, "e", &[1.0, 0.0], 5).await.unwrap();
    let mut texts: Vec<String> = near.into_iter().map(|it| it.text).collect();
    texts.sort();
    texts
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn what_is_found_at_one_replica_is_found_at_the_other_until_it_changes() {
    let Some(server) = Server::start().await else { return };
    let store = Recall::in_memory().unwrap().memories;
    let replica = |ttl| CachedMemories::in_redis(Arc::clone(&store), &server.place("found:"), ttl).unwrap();
    let (one, other) = (replica(Duration::from_secs(60)), replica(Duration::from_secs(60)));
    one.keep(statement("ada", "I live in Kiel", [1.0, 0.0]), RULE).await.unwrap();
    assert_eq!(near(&one, "ada").await, ["I live in Kiel"]);
    // Behind the back of both: the other one is told what the first one found.
    store.keep(statement("ada", "I have a dog", [0.0, 1.0]), RULE).await.unwrap();
    assert_eq!(near(&other, "ada").await, ["I live in Kiel"]);
    let found = other.near("ada", "e", &[1.0, 0.0], 5).await.unwrap();
    assert_eq!(found[0].vector, [1.0, 0.0]);
    assert_eq!(near(&other, "bob").await, [""; 0], "another user's memories are another's");
    other.keep(statement("ada", "I like tea", [0.6, 0.8]), RULE).await.unwrap();
    assert_eq!(near(&one, "ada").await, ["I have a dog", "I like tea", "I live in Kiel"]);
    let all = one.of("ada", "e").await.unwrap();
    assert!(other.forget(Some("ada"), &all[0].id).await.unwrap());
    assert_eq!(near(&one, "ada").await.len(), 2, "forgotten at both");
    assert_eq!(other.forget_all("ada").await.unwrap(), 2);
    assert_eq!(near(&one, "ada").await, [""; 0]);

    let short = replica(Duration::from_millis(200));
    short.keep(statement("eve", "one", [1.0, 0.0]), RULE).await.unwrap();
    assert_eq!(near(&short, "eve").await, ["one"]);
    store.keep(statement("eve", "two", [0.0, 1.0]), RULE).await.unwrap();
    assert_eq!(near(&short, "eve").await, ["one"]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(near(&short, "eve").await, ["one", "two"], "no longer than its time");
}

#[tokio::test]
#[ignore = "needs a redis-server"]
async fn without_its_server_memories_are_found_and_not_forgotten() {
    let Some(server) = Server::start().await else { return };
    let store = Recall::in_memory().unwrap().memories;
    let place = server.place("found:");
    let cached = CachedMemories::in_redis(Arc::clone(&store), &place, Duration::from_secs(60)).unwrap();
    cached.keep(statement("ada", "one", [1.0, 0.0]), RULE).await.unwrap();
    drop(server);
    assert_eq!(near(&cached, "ada").await, ["one"]);
    let fault = cached.forget_all("ada").await.unwrap_err().to_string();
    assert!(fault.contains("could not be reached") && !fault.contains("127.0.0.1"), "{fault}");
    assert_eq!(store.of("ada", "e").await.unwrap().len(), 1);
}
