//! Who asks: API keys, limits on callers, roles of the management plane, and what is counted of it all.

use crate::support::{HOUSE, Setup, ask};
use chorus_store::SqliteKeys;
use chorus_testkit::{ChatAnswer, Script};
use serde_json::json;

/// `ada` is served by `a`; everybody has a minute's limits.
const LIMITED: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, pricing: { prompt_per_1m: 1, completion_per_1m: 2 }, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: a, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: small }]
  signals:
    role_bindings:
      - { name: testers, role: tester, subjects: [{ kind: Group, name: qa }] }
  decisions:
    - name: for-testers
      rules: { type: authz, name: tester }
      modelRefs: [{ model: a }]
global:
  services:
    ratelimit:
      providers:
        - type: local-limiter
          rules:
            - { name: by-user, match: { user: "*" }, tokens_per_unit: 100, unit: minute }
            - { name: small-a-day, match: { model: small }, requests_per_unit: 3, unit: day }
    management_api:
      auth:
        mode: bearer
        tokens: [{ env: UP_KEY, role: viewer }]
        roles: { viewer: [metrics.read] }
"#;

fn keyed(file: &str, required: bool) -> (Setup, SqliteKeys) {
    let keys = SqliteKeys::in_memory().unwrap();
    let mut setup = Setup::of(file);
    setup.keys = Some((keys.clone(), required));
    (setup, keys)
}

#[tokio::test]
async fn where_keys_are_required_nothing_is_answered_without_one() {
    let (setup, keys) = keyed(HOUSE, true);
    let house = setup.open().await;
    let (key, whole) = keys.create("test", "ada", &[], 1).unwrap();
    let answer = house.chat(&ask("spare", "hi")).await;
    assert_eq!((answer.status, answer.error().0.as_str()), (401, "invalid_api_key"));
    assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
    assert_eq!(house.get("/v1/models").await.status, 401);
    assert_eq!(house.get("/health").await.status, 200);
    let bearer = format!("Bearer {}", whole.reveal());
    for header in [("authorization", bearer.as_str()), ("x-api-key", whole.reveal())] {
        assert_eq!(house.chat_with(header, &ask("spare", "hi")).await.whole().await.status, 200);
    }
    keys.revoke(&key.id, 2).unwrap();
    let after = house.chat_with(("authorization", &bearer), &ask("spare", "hi")).await.whole().await;
    assert_eq!(after.status, 401);
    assert!(
        house.up.requests().iter().all(|request| request.headers.iter().all(|(_, v)| !v.contains("ck_")))
    );
}

#[tokio::test]
async fn a_key_s_groups_are_roles_and_a_foreign_key_is_nobody_s() {
    let (setup, keys) = keyed(LIMITED, false);
    let house = setup.open().await;
    let (_, whole) = keys.create("test", "ada", &["qa".to_owned()], 1).unwrap();
    let bearer = format!("Bearer {}", whole.reveal());
    let by = |token: &str| ("authorization", token.to_owned());
    for (header, want) in [(by(&bearer), Some("for-testers")), (by("Bearer sk-any"), None)] {
        let answer = house.chat_with((header.0, &header.1), &ask("vllm-sr/auto", "hi")).await;
        assert_eq!(answer.headers.get("x-vsr-selected-decision").and_then(|v| v.to_str().ok()), want);
        answer.whole().await;
    }
}

#[tokio::test]
async fn c12_c13_the_third_request_beyond_the_tokens_is_refused_and_says_when() {
    let (setup, keys) = keyed(LIMITED, false);
    let house = setup.open().await;
    house.up.on("a", Script::chat(ChatAnswer::text("ok").usage(10, 50)));
    let (_, whole) = keys.create("test", "ada", &[], 1).unwrap();
    let bearer = format!("Bearer {}", whole.reveal());
    let chat = || async { house.chat_with(("authorization", &bearer), &ask("a", "hi")).await.whole().await };
    for _ in 0..2 {
        let answer = chat().await;
        assert_eq!(answer.status, 200);
        house.record(answer.header("x-vsr-replay-id")).await;
    }
    let answer = chat().await;
    let (code, message) = answer.error();
    assert_eq!((answer.status, code.as_str()), (429, "rate_limit_exceeded"));
    assert!(message.contains("`by-user`") && message.contains("tokens_per_unit"), "{message}");
    let wait: u64 = answer.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&wait), "{wait}");
    // Somebody else, and nobody, have counts of their own.
    assert_eq!(house.chat(&ask("a", "hi")).await.status, 200);
    assert_eq!(house.up.requests().len(), 3);
}

#[tokio::test]
async fn i01_i03_what_is_refused_is_counted_and_junk_makes_no_series() {
    let (setup, _) = keyed(LIMITED, false);
    let house = setup.open().await;
    let token = Some(crate::support::KEY);
    for n in 0..50 {
        house.chat(&ask(&format!("x-{n}"), "hi")).await;
    }
    let before = house.managed("/metrics", token).await;
    assert_eq!(before.status, 200);
    let lines = |answer: &crate::support::Answer| String::from_utf8_lossy(&answer.body).lines().count();
    for n in 50..100 {
        house.chat(&ask(&"x".repeat(n * 10), "hi")).await;
    }
    assert_eq!(house.get("/nowhere/at/all").await.status, 404);
    assert_eq!(house.get("/v1/chat/completions").await.status, 405);
    assert_eq!(house.post("/v1/chat/completions", "{").await.status, 400);
    house.all_records(100).await;
    let after = house.managed("/metrics", token).await;
    let text = String::from_utf8(after.body.to_vec()).unwrap();
    assert!(lines(&after) <= lines(&before) + 4 && text.len() < 32 << 10, "{text}");
    for line in [
        "chorus_http_responses_total{plane=\"data\",route=\"/v1/chat/completions\",status=\"404\"} 100",
        "chorus_http_responses_total{plane=\"data\",route=\"/v1/chat/completions\",status=\"400\"} 1",
        "chorus_http_responses_total{plane=\"data\",route=\"other\",status=\"404\"} 1",
        "chorus_backend_breaker{model=\"a\",backend=\"main\"} 0",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    assert!(text.contains("code=\"model_not_found\"} 100"), "{text}");
    assert!(!text.contains("x-1"), "{text}");
}

#[tokio::test]
async fn a_role_opens_what_it_may_and_nothing_else() {
    let (setup, _) = keyed(LIMITED, false);
    let house = setup.open().await;
    assert_eq!(house.managed("/metrics", None).await.status, 401);
    assert_eq!(house.managed("/metrics", Some("guess")).await.status, 401);
    assert_eq!(house.managed("/metrics", Some(crate::support::KEY)).await.status, 200);
    let refused = house.managed("/config/router", Some(crate::support::KEY)).await;
    let (code, message) = refused.error();
    assert_eq!((refused.status, code.as_str()), (403, "permission_denied"));
    assert!(message.contains("`config.read`"), "{message}");
    assert_eq!(house.managed("/health", None).await.status, 200);
}

#[tokio::test]
async fn what_calls_take_is_counted() {
    let (setup, _) = keyed(LIMITED, false);
    let house = setup.open().await;
    house.up.on("small", Script::chat(ChatAnswer::text("ok").usage(10, 50)));
    let answer =
        house.chat(&json!({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "x"}]})).await;
    house.record(answer.header("x-vsr-replay-id")).await;
    let text = house.managed("/metrics", Some(crate::support::KEY)).await;
    let text = String::from_utf8(text.body.to_vec()).unwrap();
    for line in [
        "chorus_calls_total{model=\"small\",backend=\"main\",outcome=\"ok\",cause=\"first\"} 1",
        "chorus_tokens_total{model=\"small\",kind=\"completion\"} 50",
        "chorus_cost_micro_usd_total{name=\"small\"} 110",
        "chorus_signal_duration_seconds_count{name=\"authz\"} 1",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}
