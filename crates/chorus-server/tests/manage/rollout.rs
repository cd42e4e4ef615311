//! A rollout by the management plane: begun, widened, promoted and taken back, by whoever may, while requests go on.

use crate::house::{House, policy};
use chorus_testkit::{Received, Script};
use futures_util::future::join_all;
use serde_json::{Value, json};

fn says_who(request: &Received) -> Script {
    Script::reply(request.json()["model"].as_str().unwrap_or_default())
}

async fn house() -> House {
    let house = House::open(&policy("base")).await;
    house.up.otherwise(says_who);
    std::fs::write(house.folder.path().join("next.yaml"), policy("next")).unwrap();
    house
}

async fn rollout(house: &House, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = house.change(method, &format!("/config/rollout{path}"), body.to_string()).await;
    (answer.status, answer.json())
}

fn next(house: &House, stage: &str, percent: f64) -> Value {
    json!({"path": house.folder.path().join("next.yaml"), "stage": stage, "percent": percent})
}

#[tokio::test]
async fn a_candidate_goes_the_whole_way_and_back() {
    let house = house().await;
    assert_eq!(house.get("/config/rollout").await.json(), json!({"rollout": null}));
    let (status, begun) = rollout(&house, "POST", "", &next(&house, "shadow", 100.0)).await;
    assert_eq!((status, &begun["rollout"]["standing"]), (200, &json!("shadow")), "{begun}");
    assert_eq!(house.chat("x").await.text(), "base");
    let (status, wider) = rollout(&house, "PATCH", "", &json!({"stage": "canary", "percent": 100})).await;
    assert_eq!((status, &wider["rollout"]["standing"]), (200, &json!("canary")));
    assert_eq!(house.chat("x").await.text(), "next");
    let (status, promoted) = rollout(&house, "POST", "/promote", &json!({})).await;
    assert_eq!((status, &promoted["rollout"]["standing"]), (200, &json!("promoted")));
    assert_eq!(house.get("/config/hash").await.json()["hash"], promoted["rollout"]["candidate"]);
    assert_eq!(house.chat("x").await.text(), "next");
    let (status, back) = rollout(&house, "POST", "/rollback", &json!({})).await;
    assert_eq!((status, &back["digest"]), (200, &begun["rollout"]["base"]));
    assert_eq!(house.chat("x").await.text(), "base");
    let refused = rollout(&house, "POST", "/rollback", &json!({})).await;
    assert_eq!((refused.0, &refused.1["error"]["code"]), (404, &json!("rollout_not_found")));
}

#[tokio::test]
async fn what_cannot_be_tried_is_refused_by_name() {
    let house = house().await;
    for (body, status, code) in [
        (json!({"path": "/nowhere.yaml"}), 503, "configuration_unreadable"),
        (next(&house, "canary", 101.0), 400, "invalid_request"),
        (next(&house, "parade", 1.0), 400, "invalid_request"),
        (json!({"path": "x", "policy": {}}), 400, "invalid_request"),
    ] {
        let (got, answer) = rollout(&house, "POST", "", &body).await;
        assert_eq!((got, &answer["error"]["code"]), (status, &json!(code)), "{body}");
    }
    let blind =
        house.send(house.ask("POST", "/config/rollout"), next(&house, "canary", 5.0).to_string()).await;
    assert_eq!(blind.refused(), (428, "precondition_required".to_owned()));
    assert_eq!(rollout(&house, "POST", "", &next(&house, "canary", 100.0)).await.0, 200);
    assert_eq!(rollout(&house, "POST", "/promote", &json!({})).await.0, 200);
    let (status, answer) = rollout(&house, "POST", "", &next(&house, "canary", 5.0)).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("rollout_conflict")));
}

#[tokio::test]
async fn who_may_not_write_may_not_roll_out() {
    let house = House::open(&format!(
        "{}global:\n  services:\n    management_api:\n      auth:\n        mode: bearer\n        tokens: [{{ env: UP_KEY, role: looker }}]\n        roles: {{ looker: [config.read] }}\n",
        policy("base")
    ))
    .await;
    let token = "Bearer sk-manage-0123456789";
    let asked = house.ask("GET", "/config/rollout").header("authorization", token);
    assert_eq!(house.send(asked, "").await.status, 200);
    let begun = house.ask("POST", "/config/rollout").header("authorization", token).header("if-match", "*");
    assert_eq!(house.send(begun, "{}").await.refused(), (403, "permission_denied".to_owned()));
    assert_eq!(house.get("/config/rollout").await.status, 401);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_request_fails_while_a_candidate_is_promoted_and_taken_back() {
    let house = house().await;
    assert_eq!(rollout(&house, "POST", "", &next(&house, "canary", 50.0)).await.0, 200);
    let load = async {
        let mut answers = Vec::new();
        for _ in 0..10 {
            answers.extend(
                join_all((0..30).map(|at| {
                    let house = &house;
                    async move { house.chat(&format!("number {at}")).await }
                }))
                .await,
            );
        }
        answers
    };
    let moves = async {
        for _ in 0..3 {
            assert_eq!(rollout(&house, "POST", "/promote", &json!({})).await.0, 200);
            assert_eq!(rollout(&house, "POST", "/rollback", &json!({})).await.0, 200);
            assert_eq!(rollout(&house, "POST", "", &next(&house, "canary", 50.0)).await.0, 200);
        }
    };
    let (answers, ()) = tokio::join!(load, moves);
    assert_eq!(answers.len(), 300);
    assert!(answers.iter().all(|it| it.status == 200 && ["base", "next"].contains(&it.text().as_str())));
}
