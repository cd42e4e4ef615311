//! What both stores of memories do, and what the Qdrant one asks of its server.

use super::*;
use crate::Recall;
use crate::qdrant::fake::FakeQdrant;
use serde_json::json;
use std::sync::Arc;

const RULE: KeepRule = KeepRule { same_cosine: 0.95, most: 3, initial_days: 30.0, least_strength: 0.0 };
const DAY: u64 = 86_400;

fn statement(user: &str, text: &str, vector: [f32; 2], at: u64) -> Statement {
    let (user, text) = (user.to_owned(), text.to_owned());
    Statement { user, text, encoder: "e".to_owned(), vector: vector.to_vec(), at, run: None }
}

fn texts(memories: &[Memory]) -> Vec<&str> {
    memories.iter().map(|it| it.text.as_str()).collect()
}

fn served(server: &Arc<FakeQdrant>) -> QdrantMemories {
    QdrantMemories::new(Arc::clone(server) as Arc<dyn crate::QdrantLink>, "memories")
}

fn stores() -> [Arc<dyn MemoryStore>; 2] {
    [Recall::in_memory().unwrap().memories, Arc::new(served(&Arc::default()))]
}

#[tokio::test]
async fn what_is_said_again_is_one_memory_and_fresh() {
    for it in stores() {
        assert_eq!(it.of("ada", "e").await.unwrap(), [], "nothing is there yet");
        let first = it.keep(statement("ada", "likes tea", [1.0, 0.0], 1), RULE).await.unwrap();
        let Kept::New(id) = first else { panic!("{first:?}") };
        let again = it.keep(statement("ada", "loves tea", [0.99, 0.1], 9), RULE).await.unwrap();
        assert_eq!(again, Kept::Known(id.clone()));
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!((texts(&all), all[0].stated_at), (vec!["loves tea"], 9));
        assert_eq!(it.of("ada", "another encoder").await.unwrap(), []);
        it.read("ada", vec![id.clone()], 12).await.unwrap();
        assert_eq!(it.get(Some("ada"), &id).await.unwrap().map(|it| (it.reads, it.read_at)), Some((1, 12)));
        assert_eq!(it.get(Some("ada"), "no name of a memory").await.unwrap(), None);
    }
}

#[tokio::test]
async fn f01_no_user_reaches_another_s_memories() {
    for it in stores() {
        let kept = it.keep(statement("ada", "lives in Kiel", [1.0, 0.0], 1), RULE).await.unwrap();
        let Kept::New(id) = kept else { panic!("{kept:?}") };
        it.keep(statement("bob", "lives in Rome", [1.0, 0.0], 1), RULE).await.unwrap();
        let told = "the same vector, another user";
        assert_eq!(texts(&it.of("bob", "e").await.unwrap()), ["lives in Rome"], "{told}");
        assert_eq!(texts(&it.near("bob", "e", &[1.0, 0.0], 9).await.unwrap()), ["lives in Rome"], "{told}");
        assert_eq!(it.get(Some("bob"), &id).await.unwrap(), None);
        assert!(!it.forget(Some("bob"), &id).await.unwrap());
        it.read("bob", vec![id.clone()], 5).await.unwrap();
        assert_eq!(it.get(None, &id).await.unwrap().map(|it| it.reads), Some(0));
        assert_eq!(it.list(None, 10).await.unwrap().len(), 2);
        assert_eq!(texts(&it.list(Some("ada"), 10).await.unwrap()), ["lives in Kiel"]);
        assert_eq!(it.forget_all("bob").await.unwrap(), 1);
        assert!(it.forget(Some("ada"), &id).await.unwrap());
        assert_eq!(it.list(None, 10).await.unwrap(), []);
    }
}

#[tokio::test]
async fn i02_the_weakest_make_room() {
    for it in stores() {
        for (n, vector) in [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]].into_iter().enumerate() {
            it.keep(statement("ada", &format!("fact {n}"), vector, n as u64 * DAY), RULE).await.unwrap();
        }
        let oldest = it.of("ada", "e").await.unwrap().pop().unwrap();
        for _ in 0..40 {
            it.read("ada", vec![oldest.id.clone()], 3 * DAY).await.unwrap();
        }
        it.keep(statement("ada", "fact 3", [0.0, -1.0], 4 * DAY), RULE).await.unwrap();
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!(texts(&all), ["fact 3", "fact 2", "fact 0"], "the one that was read often stays");
        let strict = KeepRule { least_strength: 0.5, ..RULE };
        it.keep(statement("ada", "fact 4", [0.7, 0.7], 90 * DAY), strict).await.unwrap();
        let all = it.of("ada", "e").await.unwrap();
        assert_eq!(texts(&all), ["fact 4"], "90 days leave less than half");
    }
}

#[tokio::test]
async fn f01_a_server_that_ignores_the_condition_gives_nobody_another_s_memory() {
    let server = Arc::new(FakeQdrant::without_conditions());
    let it = served(&server);
    it.keep(statement("ada", "lives in Kiel", [1.0, 0.0], 1), RULE).await.unwrap();
    let id = it.list(None, 10).await.unwrap().pop().unwrap().id;
    assert_eq!(it.of("bob", "e").await.unwrap(), []);
    assert_eq!(it.near("bob", "e", &[1.0, 0.0], 9).await.unwrap(), []);
    assert_eq!(it.list(Some("bob"), 9).await.unwrap(), []);
    assert_eq!(it.get(Some("bob"), &id).await.unwrap(), None);
    assert!(!it.forget(Some("bob"), &id).await.unwrap());
    // What bob says is a memory of his own, and not ada's made fresh.
    let kept = it.keep(statement("bob", "lives in Kiel", [1.0, 0.0], 5), RULE).await.unwrap();
    assert!(matches!(kept, Kept::New(_)), "{kept:?}");
    assert_eq!(it.get(Some("ada"), &id).await.unwrap().map(|it| it.stated_at), Some(1));
}

#[tokio::test]
async fn the_questions_are_those_of_the_server_s_api() {
    let server = Arc::default();
    let it = served(&server);
    let kept = it.keep(statement("ada", "likes tea", [0.5, 0.25], 7), RULE).await.unwrap();
    let Kept::New(id) = kept else { panic!("{kept:?}") };
    let point = uuid::Uuid::parse_str(id.trim_start_matches("mem_")).unwrap().hyphenated().to_string();
    it.near("ada", "e", &[1.0, 0.0], 40).await.unwrap();
    it.forget(Some("ada"), &id).await.unwrap();
    let asked = server.asked.lock().unwrap();
    let lines: Vec<String> = asked.iter().map(|it| format!("{} {}", it.method, it.path)).collect();
    assert_eq!(
        lines,
        [
            "POST /collections/memories/points/query",
            "GET /collections/memories",
            "PUT /collections/memories",
            "GET /collections/memories",
            "PUT /collections/memories/index?wait=true",
            "PUT /collections/memories/index?wait=true",
            "PUT /collections/memories/index?wait=true",
            "PUT /collections/memories/points?wait=true",
            "POST /collections/memories/points/count",
            "POST /collections/memories/points/query",
            "POST /collections/memories/points/scroll",
            "POST /collections/memories/points/delete?wait=true",
        ]
    );
    let body = |at: usize| asked[at].body.clone().unwrap();
    let user = json!({"key": "user", "match": {"value": "ada"}});
    let encoder = json!({"key": "encoder", "match": {"value": "e"}});
    assert_eq!(body(2), json!({"vectors": {"size": 2, "distance": "Cosine"}}));
    assert_eq!(
        body(4),
        json!({"field_name": "user", "field_schema": {"type": "keyword", "is_tenant": true}})
    );
    assert_eq!(
        body(7),
        json!({"points": [{"id": point, "vector": [0.5, 0.25], "payload": {"user": "ada", "text": "likes tea",
            "encoder": "e", "stated_at": 7, "read_at": 7, "reads": 0, "run": null}}]})
    );
    assert_eq!(
        body(9),
        json!({"query": [1.0, 0.0], "filter": {"must": [user, encoder]}, "limit": 40, "with_payload": true,
            "with_vector": true})
    );
    assert_eq!(body(11), json!({"filter": {"must": [{"has_id": [point]}, user]}}));
}

#[tokio::test]
async fn a_collection_of_another_width_is_named_and_nothing_is_kept() {
    let server = Arc::default();
    served(&server).keep(statement("ada", "a", [1.0, 0.0], 1), RULE).await.unwrap();
    let wide = Statement { vector: vec![1.0, 0.0, 0.0], ..statement("ada", "b", [0.0, 0.0], 2) };
    let fault = served(&server).keep(wide, RULE).await.unwrap_err().to_string();
    assert!(fault.contains("`memories` holds vectors of 2 numbers, the encoder makes 3"), "{fault}");
}
