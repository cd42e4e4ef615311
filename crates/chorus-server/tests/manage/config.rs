//! The configuration over HTTP: shown, checked, changed, taken back.

use crate::house::{House, broken, policy};
use chorus_testkit::{Received, Script};
use serde_json::{Value, json};
use std::fs;

fn says_who(request: &Received) -> Script {
    Script::reply(request.json()["model"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn what_is_served_is_shown_with_a_tag() {
    let house = House::open(&policy("gen-1")).await;
    let shown = house.get("/config/router").await;
    assert_eq!(shown.json()["providers"]["models"][0]["provider_model_id"], "gen-1");
    let digest = house.get("/config/hash").await.json()["hash"].clone();
    assert_eq!(json!(shown.etag().trim_matches('"')), digest);
    let again = house.ask("GET", "/config/router").header("if-none-match", shown.etag());
    assert_eq!(house.send(again, "").await.status, 304);
    let yaml = house.send(house.ask("GET", "/config/router").header("accept", "application/yaml"), "").await;
    let text = String::from_utf8(yaml.body.to_vec()).unwrap();
    assert!(text.contains("keywords:\n          - hello\n          - no\n          - 1e3\n"), "{text}");
    assert!(chorus_spec::read(&text).spec.is_some(), "{text}");
}

#[tokio::test]
async fn no_literal_credential_is_shown_and_a_mask_cannot_replace_one() {
    let text = policy("gen-1").replace("\"${UP_KEY}\"", "sk-literal-1");
    let house = House::open(&text).await;
    for path in [
        "/config/router",
        "/config/status",
        "/config/router/recipes",
        "/config/router/versions",
        "/info/models",
    ] {
        let answer = house.get(path).await;
        assert!(!String::from_utf8_lossy(&answer.body).contains("sk-literal"), "{path}");
    }
    let shown = house.get("/config/router").await;
    assert_eq!(shown.json()["providers"]["models"][0]["backend_refs"][0]["api_key"], "***");
    let request = house.ask("PUT", "/config/router").header("if-match", shown.etag());
    let sent_back = house.send(request.header("content-type", "application/json"), shown.body.clone()).await;
    assert_eq!(sent_back.refused(), (422, "masked_credential".to_owned()));
    // A patch does not touch what it does not name.
    let patched = house.change("PATCH", "/config/router", r#"{"routing": {"strategy": "confidence"}}"#).await;
    assert_eq!(patched.status, 200, "{:?}", patched.body);
    assert!(fs::read_to_string(&house.file).unwrap().contains("api_key: sk-literal-1"));
}

#[tokio::test]
async fn a_change_says_what_it_is_based_on() {
    let house = House::open(&policy("gen-1")).await;
    for (method, path) in
        [("PUT", "/config/router"), ("PATCH", "/config/router"), ("POST", "/config/router/rollback")]
    {
        let bare = house.send(house.ask(method, path), policy("gen-2")).await;
        assert_eq!(bare.refused(), (428, "precondition_required".to_owned()), "{method}");
        for tag in ["\"sha256:0\"", "W/\"sha256:0\"", ""] {
            let old = house.send(house.ask(method, path).header("if-match", tag), "{}").await;
            assert_eq!(old.refused(), (412, "precondition_failed".to_owned()), "{method} {tag}");
        }
    }
    // Two changes with one basis: one of them is told that it is late.
    let etag = house.get("/config/router").await.etag();
    let change = |name: &str| {
        let request = house.ask("PUT", "/config/router").header("if-match", &etag);
        house.send(request, policy(name))
    };
    let (one, other) = tokio::join!(change("gen-2"), change("gen-3"));
    let mut statuses = [one.status, other.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    let any = house.send(house.ask("PUT", "/config/router").header("if-match", "*"), policy("gen-4")).await;
    assert_eq!((any.status, any.json()["generation"].as_u64()), (200, Some(3)));
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let house = House::open(&policy("gen-1")).await;
    for (host, status) in [("evil.example:8080", 403), ("localhost:8080", 200), ("[::1]:8080", 200)] {
        let request = house.ask("PUT", "/config/router").header("if-match", "*").header("host", host);
        assert_eq!(
            house.send(request, policy(host.len().to_string().as_str())).await.status,
            status,
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_text_is_written_whole_served_at_once_and_can_be_taken_back() {
    let house = House::open(&policy("gen-1")).await;
    house.up.otherwise(says_who);
    let changed = house.change("PUT", "/config/router", policy("gen-2")).await;
    assert_eq!((changed.status, changed.json()["generation"].as_u64()), (200, Some(2)));
    assert_eq!(fs::read_to_string(&house.file).unwrap(), policy("gen-2"), "comments too");
    assert_eq!(house.chat("hello").await.text(), "gen-2");
    let versions = house.get("/config/router/versions").await.json();
    let causes: Vec<&str> =
        versions["versions"].as_array().unwrap().iter().map(|v| v["cause"].as_str().unwrap()).collect();
    assert_eq!(causes, ["api", "start"]);
    assert_eq!(versions["served"], versions["versions"][0]["digest"]);

    let back = house.change("POST", "/config/router/rollback", "").await;
    assert_eq!(back.status, 200, "{:?}", back.body);
    assert_eq!(fs::read_to_string(&house.file).unwrap(), policy("gen-1"));
    assert_eq!(house.chat("hello").await.text(), "gen-1");
    let forth = house.change("POST", "/config/router/rollback", r#"{"version": 2}"#).await;
    assert_eq!((forth.status, house.chat("hello").await.text().as_str()), (200, "gen-2"));
    let nowhere = house.change("POST", "/config/router/rollback", r#"{"version": 99}"#).await;
    assert_eq!(nowhere.refused(), (404, "version_not_found".to_owned()));
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_stays_a_link_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt;
    let house = House::open(&policy("gen-1")).await;
    let real = house.folder.path().join("real.yaml");
    fs::rename(&house.file, &real).unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink(&real, &house.file).unwrap();
    assert_eq!(house.change("PUT", "/config/router", policy("gen-2")).await.status, 200);
    assert!(fs::symlink_metadata(&house.file).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), policy("gen-2"));
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o640);
}

#[tokio::test]
async fn a_patch_changes_what_it_names() {
    let house = House::open(&policy("gen-1")).await;
    let patch = json!({"global": {"router": {"auto_model_names": ["mine"]}}, "listeners": null});
    let changed = house.change("PATCH", "/config/router", patch.to_string()).await;
    assert_eq!(changed.status, 200, "{:?}", changed.body);
    let shown = house.get("/config/router").await.json();
    assert_eq!(
        (&shown["global"]["router"]["auto_model_names"], &shown["listeners"]),
        (&json!(["mine"]), &Value::Null)
    );
    assert_eq!(shown["routing"]["signals"]["keywords"][0]["keywords"], json!(["hello", "no", "1e3"]));
    let models = house.get("/v1/models").await.json();
    assert!(models["data"].as_array().unwrap().iter().any(|card| card["id"] == "mine"), "{models}");
    // An empty patch changes nothing.
    let before = house.configuration.state();
    assert_eq!(house.change("PATCH", "/config/router", "{}").await.status, 200);
    assert_eq!(house.configuration.state().digest, before.digest);
    assert_eq!(
        house.change("PATCH", "/config/router", "[1]").await.refused(),
        (400, "invalid_request".to_owned())
    );
}

#[tokio::test]
async fn a_patch_leaves_the_rest_of_the_file_byte_for_byte() {
    let text = format!("# of the shop\n{}# the end\n", policy("gen-1"));
    let house = House::open(&text).await;
    let patch = json!({"routing": {"strategy": "confidence"}});
    assert_eq!(house.change("PATCH", "/config/router", patch.to_string()).await.status, 200);
    let patched = fs::read_to_string(&house.file).unwrap();
    assert!(patched.contains("# who answers"), "{patched}");
    // One line more, and every other as it was.
    let others: Vec<&str> = patched.lines().filter(|line| line.trim() != "strategy: confidence").collect();
    assert_eq!(others, text.lines().collect::<Vec<_>>());
    assert_eq!(patched.lines().count(), text.lines().count() + 1);
}

#[tokio::test]
async fn h09_validation_says_what_a_change_does_and_has_no_effect() {
    let files = [
        (policy("gen-2"), true),
        (broken(), false),
        (policy("x").replace("hello", "\"(\"").replace("keywords: [", "method: regex, keywords: ["), false),
        (policy("x").replace("  defaults: { default_model: small }\n", ""), false),
        ("a: [".to_owned(), false),
        (policy("x").replace("provider_model_id", "provider_modelid"), false),
    ];
    for (text, good) in files {
        let house = House::open(&policy("gen-1")).await;
        let report = house.send(house.ask("POST", "/config/router/validate"), text.clone()).await;
        assert_eq!((report.status, report.json()["valid"].as_bool()), (200, Some(good)), "{:?}", report.body);
        let state = house.configuration.state();
        assert_eq!((state.generation, state.last.refused.as_deref()), (1, None));
        assert_eq!(fs::read_to_string(&house.file).unwrap(), policy("gen-1"));
        let changed = house.change("PUT", "/config/router", text).await;
        assert_eq!(changed.status == 200, good, "{:?}", changed.body);
        assert!(house.up.requests().is_empty());
        house.records(0).await;
    }
}

#[tokio::test]
async fn h01_h04_a_refused_text_names_every_problem_at_its_place() {
    let house = House::open(&policy("gen-1")).await;
    let text = policy("x").replace("keywords:\n", "keyword:\n") + "version: v0.3\n";
    let refused = house.change("PUT", "/config/router", text).await;
    assert_eq!(refused.refused(), (422, "invalid_configuration".to_owned()));
    let body = refused.json();
    let codes: Vec<&str> =
        body["diagnostics"].as_array().unwrap().iter().map(|d| d["code"].as_str().unwrap()).collect();
    assert!(codes.contains(&"unknown-key") && codes.contains(&"duplicate-key"), "{codes:?}");
    let typo =
        body["diagnostics"].as_array().unwrap().iter().find(|d| d["code"] == "unknown-key").unwrap().clone();
    assert!(typo["help"].as_str().unwrap().contains("keywords"), "{typo}");
}

#[tokio::test]
async fn a_file_that_somebody_edits_is_not_overwritten() {
    let house = House::open(&policy("gen-1")).await;
    fs::write(&house.file, broken()).unwrap();
    let refused = house.change("PUT", "/config/router", policy("gen-2")).await;
    assert_eq!(refused.refused(), (409, "configuration_conflict".to_owned()));
    assert_eq!(fs::read_to_string(&house.file).unwrap(), broken());
}

#[tokio::test]
async fn what_is_built_in_can_be_shown_and_not_written() {
    let house = House::built_in(&policy("gen-1")).await;
    assert_eq!(house.get("/config/router").await.status, 200);
    assert_eq!(house.get("/config/router/versions").await.json()["versions"], json!([]));
    let refused = house.change("PUT", "/config/router", policy("gen-2")).await;
    assert_eq!(refused.refused(), (409, "configuration_not_writable".to_owned()));
}

#[tokio::test]
async fn recipes_and_knowledge_bases_are_shown_as_written() {
    let text = policy("gen-1")
        + "recipes:\n  - name: other\n    description: Another.\n    routing: { decisions: [{ name: all, priority: 1, modelRefs: [{ model: small }] }] }\nentrypoints: [{ model_names: [mine], recipe: other }]\n";
    let house = House::open(&text).await;
    let recipes = house.get("/config/router/recipes").await.json();
    assert_eq!(recipes["recipes"][0]["name"], "default");
    assert_eq!(recipes["recipes"][1]["model_names"], json!(["mine"]));
    let one = house.get("/config/router/recipes/other").await.json();
    assert_eq!(one["routing"]["decisions"][0]["name"], "all");
    let first = house.get("/config/router/recipes/default").await.json();
    assert_eq!(first["routing"]["decisions"][0]["name"], "greet");
    assert_eq!(house.get("/config/router/recipes/none").await.refused(), (404, "not_found".to_owned()));
    for base in house.get("/config/kbs").await.json()["kbs"].as_array().unwrap() {
        let name = base["name"].as_str().unwrap();
        assert_eq!(house.get(&format!("/config/kbs/{name}")).await.json(), *base);
    }
    assert_eq!(house.get("/config/kbs/none").await.refused(), (404, "not_found".to_owned()));
}

#[tokio::test]
async fn the_catalog_lists_what_answers() {
    let house = House::open(&policy("gen-1")).await;
    let endpoints = house.get("/api/v1").await.json()["endpoints"].as_array().unwrap().clone();
    assert!(endpoints.len() > 30, "{}", endpoints.len());
    for endpoint in &endpoints {
        let path = endpoint["path"].as_str().unwrap().replace("{name}", "default");
        let answer = house.send(house.ask(endpoint["method"].as_str().unwrap(), &path), "").await;
        // Pages and metrics are no JSON.
        if !answer.headers["content-type"].to_str().unwrap().starts_with("application/json") {
            assert_eq!(answer.status, 200, "{endpoint}");
            continue;
        }
        let code = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
        assert!(
            code != "method_not_allowed"
                && (code != "not_found" || path.contains("kbs") || path.contains('{')),
            "{endpoint}: {code}"
        );
    }
    let described = house.get("/openapi.json").await.json();
    assert_eq!(described["paths"]["/config/router"].as_object().unwrap().len(), 3);
    assert_eq!(described["paths"]["/config/router"]["put"]["parameters"][0]["name"], "If-Match");
}
