//! The Responses door: what is made, kept, found again, cancelled and forgotten.

use crate::support::{HOUSE, House, Setup};
use bytes::Bytes;
use chorus_testkit::{ChatAnswer, Gate, Script, Step};
use chorus_wire::{SseDecoder, sse};
use http::Request;
use http_body_util::Full;
use serde_json::{Value, json};

const DOOR: &str = "/v1/responses";

async fn house() -> House {
    let house = House::open(HOUSE).await;
    house.up.on_with("acme/small-fp8", |request| Script::reply(&format!("to {}", request.last_user_text())));
    house
}

async fn send(house: &House, method: &str, path: &str, user: Option<&str>, body: &str) -> (u16, Value) {
    let mut request = Request::builder().method(method).uri(format!("http://{}{path}", house.bound.data));
    if let Some(user) = user {
        request = request.header("x-authz-user-id", user);
    }
    let answer =
        house.send(request.body(Full::new(Bytes::from(body.to_owned()))).unwrap()).await.whole().await;
    (answer.status, answer.json())
}

async fn make(house: &House, body: &Value) -> Value {
    let answer = house.post(DOOR, body.to_string()).await;
    assert_eq!(answer.status, 200, "{}", answer.json());
    answer.json()
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap()
}

fn events(body: &Bytes) -> Vec<Value> {
    let (mut decoder, mut out) = (SseDecoder::new(sse::MAX_EVENT_BYTES), Vec::new());
    decoder.push(body, &mut out).unwrap();
    out.iter().map(|event| serde_json::from_slice(&event.data).unwrap()).collect()
}

#[tokio::test]
async fn a_response_is_kept_until_it_is_forgotten() {
    let house = house().await;
    let made = make(&house, &json!({"model": "small", "input": "one", "metadata": {"k": "v"}})).await;
    assert_eq!(
        (text(&made), &made["status"], &made["metadata"]["k"]),
        ("to one", &json!("completed"), &json!("v"))
    );
    let place = format!("{DOOR}/{}", made["id"].as_str().unwrap());
    assert_eq!(send(&house, "GET", &place, None, "").await, (200, made.clone()));
    let next =
        make(&house, &json!({"model": "small", "input": "two", "previous_response_id": made["id"]})).await;
    let sent = house.up.requests_for("acme/small-fp8").pop().unwrap().json();
    let said: Vec<&str> =
        sent["messages"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(said, ["one", "to one", "two"]);
    let (_, gone) = send(&house, "DELETE", &place, None, "").await;
    assert_eq!(gone["deleted"], true);
    let (status, error) = send(&house, "GET", &place, None, "").await;
    assert_eq!((status, &error["error"]["code"]), (404, &json!("response_not_found")));
    let items = format!("{DOOR}/{}/input_items", next["id"].as_str().unwrap());
    let (_, page) = send(&house, "GET", &format!("{items}?limit=2&order=asc"), None, "").await;
    assert_eq!((page["data"].as_array().unwrap().len(), &page["has_more"]), (2, &json!(true)));
    let after = format!("{items}?order=asc&after={}", page["last_id"].as_str().unwrap());
    let (_, rest) = send(&house, "GET", &after, None, "").await;
    assert_eq!(
        rest["data"][0]["content"][0]["text"], "two",
        "a forgotten response leaves its children whole"
    );
}

#[tokio::test]
async fn what_cannot_be_found_or_read_is_refused() {
    let house = house().await;
    let unstored = make(&house, &json!({"model": "small", "input": "x", "store": false})).await;
    let id = unstored["id"].as_str().unwrap();
    for (method, path, body, status, code) in [
        ("GET", format!("{DOOR}/{id}"), "", 404, "response_not_found"),
        ("DELETE", format!("{DOOR}/nobody"), "", 404, "response_not_found"),
        ("POST", format!("{DOOR}/nobody/cancel"), "", 404, "response_not_found"),
        ("GET", format!("{DOOR}/nobody/input_items?limit=x"), "", 400, "invalid_request"),
        (
            "POST",
            DOOR.to_owned(),
            r#"{"model":"small","input":"x","previous_response_id":"nobody"}"#,
            400,
            "previous_response_not_found",
        ),
        ("POST", DOOR.to_owned(), r#"{"model":"small"}"#, 400, "invalid_request"),
        ("POST", DOOR.to_owned(), r#"{"model":"nobody","input":"x"}"#, 404, "model_not_found"),
    ] {
        let (found, error) = send(&house, method, &path, None, body).await;
        assert_eq!((found, error["error"]["code"].as_str()), (status, Some(code)), "{method} {path} {body}");
    }
}

#[tokio::test]
async fn f01_a_response_is_found_by_its_own_caller_alone() {
    let identity = "global: { services: { authz: { identity: { user_id_header: x-authz-user-id } } } }";
    let house = House::open(&format!("{HOUSE}\n{identity}\n")).await;
    house.up.on("acme/small-fp8", Script::reply("secret"));
    let body = json!({"model": "small", "input": "x"}).to_string();
    let (_, made) = send(&house, "POST", DOOR, Some("ada"), &body).await;
    let place = format!("{DOOR}/{}", made["id"].as_str().unwrap());
    for (user, status) in [(Some("ada"), 200), (Some("bob"), 404), (None, 404)] {
        assert_eq!(send(&house, "GET", &place, user, "").await.0, status, "{user:?}");
    }
    let next = json!({"model": "small", "input": "x", "previous_response_id": made["id"]}).to_string();
    assert_eq!(send(&house, "POST", DOOR, Some("bob"), &next).await.0, 400);
}

#[tokio::test]
async fn a_stream_ends_with_the_object_that_is_kept() {
    let house = house().await;
    let request = json!({"model": "small", "input": "x", "stream": true}).to_string();
    let all = events(&house.post(DOOR, request.clone()).await.body);
    let last = all.last().unwrap();
    assert_eq!((&all[0]["type"], &last["type"]), (&json!("response.created"), &json!("response.completed")));
    let place = format!("{DOOR}/{}", last["response"]["id"].as_str().unwrap());
    assert_eq!(send(&house, "GET", &place, None, "").await.1, last["response"]);
    let piece = chorus_testkit::openai::chunk("x", &json!({"content": "half"}));
    house.up.on("acme/small-fp8", Script::sse([Step::event(&piece.to_string())]));
    let all = events(&house.post(DOOR, request).await.body);
    let last = all.last().unwrap();
    assert_eq!(last["type"], "response.failed", "a13");
    let place = format!("{DOOR}/{}", last["response"]["id"].as_str().unwrap());
    assert_eq!(send(&house, "GET", &place, None, "").await.1["status"], "failed");
}

async fn settled(house: &House, place: &str) -> Value {
    loop {
        let (status, object) = send(house, "GET", place, None, "").await;
        assert_eq!(status, 200);
        if object["status"] != "in_progress" {
            return object;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_response_in_the_background_comes_to_its_end_or_is_cancelled() {
    let house = house().await;
    let gate = Gate::new();
    let held = gate.clone();
    house.up.on_with("acme/small-fp8", move |_| {
        Script::chat(ChatAnswer::text("made").usage(3, 2)).first(Step::Await(held.clone()))
    });
    let body = json!({"model": "small", "input": "x", "background": true});
    let first = make(&house, &body).await;
    assert_eq!((&first["status"], &first["output"]), (&json!("queued"), &json!([])));
    let place = |response: &Value| format!("{DOOR}/{}", response["id"].as_str().unwrap());
    assert_eq!(send(&house, "GET", &place(&first), None, "").await.1["status"], "in_progress");
    let next = json!({"model": "small", "input": "x", "previous_response_id": first["id"]}).to_string();
    assert_eq!(send(&house, "POST", DOOR, None, &next).await.0, 400, "it is not there to go on from");
    gate.open();
    let done = settled(&house, &place(&first)).await;
    assert_eq!((text(&done), &done["usage"]["total_tokens"]), ("made", &json!(5)));
    let second = make(&house, &body).await;
    let (_, cancelled) = send(&house, "POST", &format!("{}/cancel", place(&second)), None, "").await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(house.up.wait(|up| up.open_connections() <= 1).await, "a16: the call is dropped");
    gate.open();
    assert_eq!(send(&house, "GET", &place(&second), None, "").await.1["status"], "cancelled");
    // One that has ended stays as it is.
    let (_, ended) = send(&house, "POST", &format!("{}/cancel", place(&first)), None, "").await;
    assert_eq!(ended["status"], "completed");
    house.up.on("acme/small-fp8", Script::error(500, "broken"));
    let third = make(&house, &body).await;
    let failed = settled(&house, &place(&third)).await;
    assert_eq!((&failed["status"], failed["error"]["code"].is_string()), (&json!("failed"), true));
}

#[tokio::test]
async fn a_stop_ends_what_is_made_in_the_background() {
    let mut setup = Setup::of(HOUSE);
    setup.grace = std::time::Duration::from_millis(50);
    let mut house = setup.open().await;
    house.up.on("acme/small-fp8", Script::reply("late").first(Step::Await(Gate::new())));
    make(&house, &json!({"model": "small", "input": "x", "background": true})).await;
    house.stop.cancel();
    (&mut house.serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_configuration_can_close_the_door() {
    let closed = format!("{HOUSE}\nglobal: {{ services: {{ response_api: {{ enabled: false }} }} }}\n");
    let house = House::open(&closed).await;
    let answer = house.post(DOOR, json!({"model": "small", "input": "one"}).to_string()).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (404, "not_found"));
    assert_eq!(house.chat(&crate::support::ask("a", "hi")).await.status, 200);
}
