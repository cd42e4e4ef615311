//! Files and vector stores, and routes that look questions up in them.

use crate::house::{by, chat, did, open, operated, sent, store, upload};
use crate::support::House;
use serde_json::{Value, json};

const HANDBOOK: &str = "Refunds are paid within fourteen working days after the parcel came back.\n\n\
    The warehouse opens at seven and closes at noon on Saturdays.\n";

fn rag(more: &str) -> String {
    format!(
        "[{{ type: rag, configuration: {{ enabled: true, backend: vectorstore, similarity_threshold: 0.2, {more}
            backend_config: {{ vector_store_id: handbook }} }} }}]"
    )
}

async fn house(more: &str) -> House {
    let house = open(&rag(more), "").await;
    let file = upload(&house, None, "handbook.md", HANDBOOK).await;
    store(&house, None, "handbook", &file).await;
    house
}

#[tokio::test]
async fn a_passage_is_shown_as_the_result_of_a_call() {
    let house = house("").await;
    let answer = chat(&house, "ada", "When are refunds paid after a parcel came back?").await;
    let messages = sent(&house)["messages"].as_array().unwrap().clone();
    let roles: Vec<&str> = messages.iter().map(|it| it["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
    assert_eq!(messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"], "a call has its result");
    let shown = messages[2]["content"].as_str().unwrap();
    assert!(shown.contains("fourteen working days") && shown.contains("source=\"handbook.md\""), "{shown}");
    let did = did(&house, &answer, "rag").await;
    assert_eq!(
        (&did["injected"], &did["shown"][0]["source"]),
        (&json!("tool_role"), &json!("handbook.md")),
        "{did}"
    );
    assert!(!did.to_string().contains("fourteen"), "no text in the record");
}

#[tokio::test]
async fn or_in_the_system_message() {
    let house = house("injection_mode: system_prompt,").await;
    chat(&house, "ada", "When are refunds paid after a parcel came back?").await;
    let messages = sent(&house)["messages"].as_array().unwrap().clone();
    assert_eq!((messages.len(), &messages[0]["role"]), (2, &json!("system")));
    assert!(messages[0]["content"].as_str().unwrap().contains("fourteen working days"));
}

#[tokio::test]
async fn nothing_near_shows_nothing_and_a_question_is_looked_up_once() {
    let house = house("cache_results: true,").await;
    let far = chat(&house, "ada", "Zebras gallop through savannahs").await;
    assert_eq!(sent(&house)["messages"].as_array().unwrap().len(), 1);
    assert_eq!(did(&house, &far, "rag").await["injected"], Value::Null);
    let question = "When does the warehouse close on Saturdays?";
    let first = chat(&house, "ada", question).await;
    assert_eq!(did(&house, &first, "rag").await["cached"], false);
    let again = chat(&house, "ada", question).await;
    assert_eq!(did(&house, &again, "rag").await["cached"], true);
    let other = chat(&house, "bob", question).await;
    assert_eq!(did(&house, &other, "rag").await["cached"], false, "what was found for one answers no other");
}

#[tokio::test]
async fn i07_a_store_that_is_not_there_is_skipped_warned_of_or_refused() {
    let question = "When are refunds paid?";
    let skipping = open(&rag(""), "").await;
    let answer = chat(&skipping, "ada", question).await;
    assert_eq!((answer.status, answer.header("x-vsr-response-warnings")), (200, None));
    assert_eq!(did(&skipping, &answer, "rag").await["failed"], "rag_no_store");
    let warning = open(&rag("on_failure: warn,"), "").await;
    let answer = chat(&warning, "ada", question).await;
    assert_eq!(answer.header("x-vsr-response-warnings"), Some("rag_no_store"));
    let refusing = open(&rag("on_failure: block,"), "").await;
    let answer = chat(&refusing, "ada", question).await;
    assert_eq!(answer.error().0, "misconfigured");
    assert!(refusing.up.requests().is_empty(), "no model was asked");
}

#[tokio::test]
async fn f01_a_caller_s_own_store_is_nobody_else_s() {
    let house = open(&rag(""), "").await;
    let file = upload(&house, Some("ada"), "diary.txt", "The treasure lies beneath the lighthouse.").await;
    let id = store(&house, Some("ada"), "handbook", &file).await;
    let question = "Where does the treasure lie beneath?";
    chat(&house, "bob", question).await;
    assert!(!sent(&house).to_string().contains("lighthouse"));
    chat(&house, "ada", question).await;
    assert!(sent(&house).to_string().contains("lighthouse"));
    for path in [
        format!("/v1/files/{file}"),
        format!("/v1/files/{file}/content"),
        format!("/v1/vector_stores/{id}"),
        format!("/v1/vector_stores/{id}/files"),
        format!("/v1/vector_stores/{id}/files/{file}"),
    ] {
        assert_eq!(by(&house, "ada", "GET", &path, &Value::Null).await.status, 200, "{path}");
        let other = by(&house, "bob", "GET", &path, &Value::Null).await;
        assert_eq!(other.status, 404, "{path}");
        assert_eq!(by(&house, "", "GET", &path, &Value::Null).await.status, 401, "{path}");
    }
    let search =
        by(&house, "bob", "POST", &format!("/v1/vector_stores/{id}/search"), &json!({"query": question}))
            .await;
    assert_eq!(search.status, 404);
    assert_eq!(by(&house, "bob", "DELETE", &format!("/v1/files/{file}"), &Value::Null).await.status, 404);
    let list = by(&house, "bob", "GET", "/v1/files", &Value::Null).await.json();
    assert_eq!(list["data"], json!([]));
    assert_eq!(operated(&house, "GET", "/v1/files", &Value::Null).await.json()["data"][0]["id"], json!(file));
}

#[tokio::test]
async fn the_doors_speak_as_openai_s_do() {
    let house = house("").await;
    let list = operated(&house, "GET", "/v1/vector_stores", &Value::Null).await.json();
    let id = list["data"][0]["id"].as_str().unwrap().to_owned();
    let second = upload(&house, None, "prices.csv", "item,price\nparcel,4 euro\n").await;
    let attach = json!({"file_id": second, "attributes": {"year": 2024}});
    let path = format!("/v1/vector_stores/{id}/files");
    let attached = operated(&house, "POST", &path, &attach).await.json();
    assert_eq!(
        (&attached["object"], &attached["attributes"]["year"]),
        (&json!("vector_store.file"), &json!(2024))
    );
    for _ in 0..1000 {
        let now = operated(&house, "GET", &format!("{path}/{second}"), &Value::Null).await.json();
        if now["status"] == "completed" {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
    let search = format!("/v1/vector_stores/{id}/search");
    let query =
        json!({"query": "price of a parcel", "filters": {"type": "eq", "key": "year", "value": 2024}});
    let found = operated(&house, "POST", &search, &query).await.json();
    assert_eq!(found["object"], "vector_store.search_results.page");
    assert_eq!(
        (found["data"].as_array().unwrap().len(), &found["data"][0]["filename"]),
        (1, &json!("prices.csv"))
    );
    for (body, param) in [
        (json!({}), "body"),
        (json!({"query": ""}), "query"),
        (json!({"query": "x", "max_num_results": 99}), "max_num_results"),
        (json!({"query": "x", "filters": {"type": "like"}}), "filters"),
    ] {
        let answer = operated(&house, "POST", &search, &body).await;
        assert_eq!((answer.status, answer.error().0.as_str()), (400, "invalid_request"), "{param}");
    }
    let renamed =
        operated(&house, "POST", &format!("/v1/vector_stores/{id}"), &json!({"name": "rules"})).await;
    assert_eq!(renamed.json()["name"], "rules");
    let content = operated(&house, "GET", &format!("/v1/files/{second}/content"), &Value::Null).await;
    assert_eq!(content.header("content-disposition"), Some("attachment"));
    assert!(content.body.starts_with(b"item,price"));
    assert_eq!(operated(&house, "DELETE", &format!("{path}/{second}"), &Value::Null).await.status, 200);
    assert_eq!(
        operated(&house, "DELETE", &format!("/v1/vector_stores/{id}"), &Value::Null).await.status,
        200
    );
    assert_eq!(operated(&house, "GET", &format!("/v1/vector_stores/{id}"), &Value::Null).await.status, 404);
    assert_eq!(
        operated(&house, "GET", &format!("/v1/files/{second}"), &Value::Null).await.status,
        200,
        "files stay"
    );
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing_at_the_management_plane() {
    let house = house("").await;
    let request = http::Request::delete(format!("http://{}/v1/memory?user=ada", house.bound.management));
    let request = request.header("host", "evil.example").body(http_body_util::Full::default()).unwrap();
    let answer = house.send(request).await.whole().await;
    assert_eq!((answer.status, answer.error().0.as_str()), (403, "foreign_host"));
}
