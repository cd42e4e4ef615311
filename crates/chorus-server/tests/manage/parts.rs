//! Recipes and knowledge bases written one at a time, and what the plane tells of itself.

use crate::house::{House, policy};
use serde_json::{Value, json};
use std::fs;

fn two_recipes() -> String {
    policy("gen-1")
        + "recipes:\n  - { name: other, routing: { decisions: [{ name: all, modelRefs: [{ model: small }] }] } }\n\
           entrypoints: [{ model_names: [mine], recipe: other }]\n"
}

fn recipe(decision: &str) -> Value {
    json!({ "routing": { "decisions": [{ "name": decision, "modelRefs": [{ "model": "small" }] }] } })
}

#[tokio::test]
async fn a_recipe_takes_the_place_of_the_one_of_its_name() {
    let house = House::open(&two_recipes()).await;
    let changed = house.change("PUT", "/config/router/recipes/other", recipe("each").to_string()).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let shown = house.get("/config/router/recipes/other").await.json();
    assert_eq!(shown["routing"]["decisions"][0]["name"], "each");
    assert_eq!(
        house.get("/config/router/recipes/default").await.json()["routing"]["decisions"][0]["name"],
        "greet"
    );
    let written = fs::read_to_string(&house.file).unwrap();
    assert!(written.contains("each") && written.contains("1e3"), "{written}");

    let first = house.change("PUT", "/config/router/recipes/default", recipe("any").to_string()).await;
    assert_eq!(first.status, 200, "{:?}", first.body);
    assert_eq!(
        house.get("/config/router/recipes/default").await.json()["routing"]["decisions"][0]["name"],
        "any"
    );
}

#[tokio::test]
async fn a_recipe_that_is_not_sound_or_not_there_changes_nothing() {
    let house = House::open(&two_recipes()).await;
    let unsound =
        json!({ "routing": { "decisions": [{ "name": "x", "modelRefs": [{ "model": "nobody" }] }] } });
    let named = json!({ "name": "other", "routing": unsound["routing"] });
    let report = house.post("/config/router/recipes/validate", &named).await.json();
    assert_eq!((&report["valid"], &report["errors"]), (&json!(false), &json!(1)), "{report}");
    let refused = house.change("PUT", "/config/router/recipes/other", unsound.to_string()).await;
    assert_eq!(refused.refused(), (422, "invalid_configuration".to_owned()));
    let foreign = house.change("PUT", "/config/router/recipes/other", json!({"name": "x"}).to_string()).await;
    assert_eq!(foreign.refused(), (400, "invalid_request".to_owned()));
    let blind = house.send(house.ask("PUT", "/config/router/recipes/other"), recipe("y").to_string()).await;
    assert_eq!(blind.refused(), (428, "precondition_required".to_owned()));
    for name in ["none", "default"] {
        let gone = house.change("DELETE", &format!("/config/router/recipes/{name}"), "").await;
        assert_eq!(gone.refused(), (404, "not_found".to_owned()));
    }
    // An entrypoint still leads there.
    let led = house.change("DELETE", "/config/router/recipes/other", "").await;
    assert_eq!(led.refused(), (422, "invalid_configuration".to_owned()));
    assert_eq!(house.configuration.state().generation, 1);
}

#[tokio::test]
async fn a_knowledge_base_is_added_replaced_and_taken_away() {
    let house = House::open(&policy("gen-1")).await;
    let base = |threshold: f64| {
        json!({"name": "tides", "source": {"path": "kb"}, "threshold": threshold}).to_string()
    };
    let added = house.change("POST", "/config/kbs", base(0.3)).await;
    assert_eq!(added.status, 200, "{:?}", added.body);
    assert_eq!(house.get("/config/kbs/tides").await.json()["threshold"], 0.3);
    assert_eq!(house.change("POST", "/config/kbs", base(0.4)).await.status, 400);
    assert_eq!(house.change("PUT", "/config/kbs/tides", base(0.4)).await.status, 200);
    assert_eq!(house.get("/config/kbs/tides").await.json()["threshold"], 0.4);
    assert_eq!(house.change("DELETE", "/config/kbs/tides", "").await.status, 200);
    assert_eq!(house.get("/config/kbs/tides").await.status, 404);
    assert_eq!(house.change("DELETE", "/config/kbs/tides", "").await.status, 404);
}

#[tokio::test]
async fn the_plane_tells_of_itself_without_loading_anything_from_elsewhere() {
    let house = House::open(&policy("gen-1")).await;
    let page = house.get("/docs").await;
    let text = String::from_utf8(page.body.to_vec()).unwrap();
    assert!(page.headers["content-security-policy"].to_str().unwrap().contains("default-src 'none'"));
    assert!(text.contains("/config/router/recipes/{name}") && !text.contains("http"), "{text}");
    let status = house.get("/startup-status").await.json();
    assert_eq!((&status["phase"], &status["ready"]), (&json!("ready"), &json!(true)));
}

#[tokio::test]
async fn d24_only_live_requests_are_counted_by_family() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(|_| chorus_testkit::Script::reply("ok"));
    house.post("/api/v1/eval", &json!({"text": "hello"})).await;
    assert_eq!(house.get("/metrics/classification").await.json()["families"], json!({}));
    house.chat("hello").await;
    house.chat("good night").await;
    let families = house.get("/metrics/classification").await.json()["families"].clone();
    let keyword = &families["keyword"];
    assert_eq!(
        (&keyword["matched"], &keyword["unmatched"], &keyword["absent"]),
        (&json!(1), &json!(1), &json!(0))
    );
    assert_eq!(keyword["evaluations"], 2);
}
