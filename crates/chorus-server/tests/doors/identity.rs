//! Who asks, and whom they asked for: a client's word for itself is nothing, its word for a model is obeyed.

use crate::support::{HOUSE, House, user};
use serde_json::json;

/// Admins go to `big`; everybody else has no role.
const ROLES: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: big, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: small }, { name: big }]
  signals:
    role_bindings:
      - { name: staff, role: admin, subjects: [{ kind: Group, name: admins }] }
  decisions:
    - { name: admins, priority: 10, rules: { type: authz, name: admin }, modelRefs: [{ model: big }] }
"#;

const TRUST: &str =
    "global: { services: { authz: { identity: { user_id_header: x-proxy-user, user_groups_header: x-proxy-groups } } } }";

/// Which model answered a caller with these headers.
async fn served(file: &str, headers: [(&str, &str); 2]) -> String {
    let house = House::open(file).await;
    let mut request = http::Request::post("/v1/chat/completions").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(name, value);
    }
    let body = json!({ "model": "vllm-sr/auto", "messages": [user("open the vault")] }).to_string();
    let answer = house.send(request.body(bytes::Bytes::from(body).into()).unwrap()).await.whole().await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.header("x-vsr-selected-model").unwrap().to_owned()
}

#[tokio::test]
async fn e07_only_a_trusted_proxy_says_who_asks() {
    let trusting = format!("{ROLES}{TRUST}\n");
    let proxy = [("x-proxy-user", "ada"), ("x-proxy-groups", "staff,admins")];
    let own = [("x-authz-user-id", "ada"), ("x-authz-user-groups", "admins")];
    assert_eq!(served(&trusting, proxy).await, "big");
    assert_eq!(served(&trusting, own).await, "small");
    assert_eq!(served(ROLES, own).await, "small");
    assert_eq!(served(ROLES, proxy).await, "small");
}

#[tokio::test]
async fn d16_a_named_model_is_obeyed_or_refused() {
    let house = House::open(HOUSE).await;
    // The policy would answer a greeting itself.
    let answer = house.chat(&json!({ "model": "b", "messages": [user("hello")] })).await;
    assert_eq!((answer.status, answer.header("x-vsr-selected-model")), (200, Some("b")));
    assert_eq!(answer.header("x-vsr-selected-decision"), None);
    let refused = house.chat(&json!({ "model": "b2", "messages": [user("hello")] })).await;
    assert_eq!(refused.status, 404);
    assert!(refused.error().1.contains("b2"), "{}", refused.text());
}
