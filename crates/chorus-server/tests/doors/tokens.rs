//! Tokens of an issuer: whom they name, what is refused, and how its keys are fetched.

use crate::support::{House, Setup, ask};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chorus_store::SqliteKeys;
use chorus_testkit::{Received, Script, ScriptedUpstream};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

/// Testers, by a group of their token, are served by `a`; every user may ask twice a day.
const FILE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models:
    - { name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }
    - { name: a, backend_refs: [{ name: main, base_url: "${UP}" }] }
routing:
  modelCards: [{ name: small }]
  signals:
    role_bindings:
      - { name: testers, role: tester, subjects: [{ kind: Group, name: qa }] }
  decisions:
    - { name: for-testers, rules: { type: authz, name: tester }, modelRefs: [{ model: a }] }
global:
  services:
    authz:
      providers:
        - { type: jwt, issuer: "ISSUER", audiences: [chorus, gateway], groups_claim: realm_access.roles }
    ratelimit:
      providers: [{ type: local-limiter, rules: [{ name: twice, match: { user: "*" }, requests_per_unit: 2, unit: day }] }]
"#;

/// An issuer with keys, each of a name.
struct Issuer {
    server: ScriptedUpstream,
    url: String,
    keys: Arc<Mutex<Vec<(String, EcdsaKeyPair)>>>,
}

impl Issuer {
    async fn open() -> Self {
        let server = ScriptedUpstream::start().await.unwrap();
        let url = format!("http://{}", server.address());
        let keys: Arc<Mutex<Vec<(String, EcdsaKeyPair)>>> = Arc::default();
        let (shared, own) = (Arc::clone(&keys), url.clone());
        server.otherwise(move |request: &Received| match request.path.as_str() {
            "/.well-known/openid-configuration" => {
                Script::json(200, &json!({"issuer": own, "jwks_uri": format!("{own}/keys")}))
            }
            "/keys" => {
                let keys: Vec<Value> = shared.lock().unwrap().iter().map(|(id, key)| jwk(id, key)).collect();
                Script::json(200, &json!({ "keys": keys }))
            }
            _ => Script::error(404, "nothing here"),
        });
        let issuer = Self { server, url, keys };
        issuer.add("first");
        issuer
    }

    fn add(&self, id: &str) {
        self.keys.lock().unwrap().push((id.to_owned(), key()));
    }

    fn claims(&self, user: &str) -> Value {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
        json!({"iss": self.url, "aud": "chorus", "sub": user, "iat": now, "exp": now + 600})
    }

    /// A token that is signed with the key of that name.
    fn token(&self, id: &str, claims: &Value) -> String {
        let keys = self.keys.lock().unwrap();
        let (_, key) = keys.iter().find(|(own, _)| own == id).unwrap();
        signed(key, &json!({"alg": "ES256", "typ": "JWT", "kid": id}), claims)
    }

    fn fetches(&self) -> usize {
        self.server.requests().iter().filter(|request| request.path == "/keys").count()
    }

    async fn house(&self, required: bool) -> House {
        let mut setup = Setup::of(&FILE.replace("ISSUER", &self.url));
        setup.keys = Some((SqliteKeys::in_memory().unwrap(), required));
        setup.open().await
    }
}

fn key() -> EcdsaKeyPair {
    let random = SystemRandom::new();
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap()
}

fn jwk(id: &str, key: &EcdsaKeyPair) -> Value {
    let point = key.public_key().as_ref();
    let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
    json!({"kty": "EC", "crv": "P-256", "use": "sig", "alg": "ES256", "kid": id, "x": part(1..33), "y": part(33..65)})
}

fn signed(key: &EcdsaKeyPair, header: &Value, claims: &Value) -> String {
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(header), part(claims));
    let signature = key.sign(&SystemRandom::new(), message.as_bytes()).unwrap();
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
}

/// Status, error code (empty for an answer), and the decision that was reached.
async fn asked(house: &House, token: &str) -> (u16, String, Option<String>) {
    let bearer = format!("Bearer {token}");
    let answer = house.chat_with(("authorization", &bearer), &ask("vllm-sr/auto", "hi")).await.whole().await;
    let decision = answer.header("x-vsr-selected-decision").map(str::to_owned);
    let code = if answer.status == 200 { String::new() } else { answer.error().0 };
    (answer.status, code, decision)
}

#[tokio::test]
async fn a_token_s_groups_are_roles_and_its_user_has_limits() {
    let issuer = Issuer::open().await;
    let house = issuer.house(true).await;
    let mut claims = issuer.claims("ada");
    claims["realm_access"] = json!({"roles": ["staff", "qa"]});
    claims["aud"] = json!(["other", "gateway"]);
    let token = issuer.token("first", &claims);
    for _ in 0..2 {
        assert_eq!(asked(&house, &token).await, (200, String::new(), Some("for-testers".to_owned())));
    }
    let (status, code, _) = asked(&house, &token).await;
    assert_eq!((status, code.as_str()), (429, "rate_limit_exceeded"));
    let other = issuer.token("first", &issuer.claims("bob"));
    assert_eq!(asked(&house, &other).await, (200, String::new(), None));
    assert_eq!(issuer.fetches(), 1, "keys are kept");
    assert_eq!(house.chat(&ask("small", "hi")).await.status, 401, "nobody without a token");
    let forwarded = house.up.requests();
    assert!(forwarded.iter().all(|request| request.headers.iter().all(|(_, value)| !value.contains("eyJ"))));
}

#[tokio::test]
async fn a_token_that_is_wrong_in_any_way_is_refused_though_none_is_required() {
    let issuer = Issuer::open().await;
    let house = issuer.house(false).await;
    let right = issuer.claims("ada");
    let with = |name: &str, value: Value| {
        let mut claims = right.clone();
        claims[name] = value;
        issuer.token("first", &claims)
    };
    let now = right["iat"].as_u64().unwrap();
    let without = |name: &str| {
        let mut claims = right.clone();
        claims.as_object_mut().unwrap().remove(name);
        issuer.token("first", &claims)
    };
    let valid = issuer.token("first", &right);
    let (message, signature) = valid.rsplit_once('.').unwrap();
    let (header, _) = message.split_once('.').unwrap();
    let promoted = URL_SAFE_NO_PAD.encode(issuer.claims("root").to_string());
    let unsigned = URL_SAFE_NO_PAD.encode(json!({"alg": "none"}).to_string());
    let secret = URL_SAFE_NO_PAD.encode(json!({"alg": "HS256", "kid": "first"}).to_string());
    let wrong = [
        ("expired", with("exp", json!(now - 120))),
        ("of the future", with("nbf", json!(now + 600))),
        ("a time that is no number", with("exp", json!("never"))),
        ("for somebody else", with("aud", json!(["other"]))),
        ("of another issuer", with("iss", json!("https://evil.example"))),
        ("no audience", without("aud")),
        ("no end", without("exp")),
        ("no user", without("sub")),
        ("an empty user", with("sub", json!("  "))),
        ("other claims", format!("{header}.{promoted}.{signature}")),
        ("no signature", format!("{message}.")),
        ("`none`", format!("{unsigned}.{promoted}.")),
        ("a public key as a secret", format!("{secret}.{promoted}.{signature}")),
        ("somebody else's key", signed(&key(), &json!({"alg": "ES256", "kid": "first"}), &right)),
        ("an unknown key", signed(&key(), &json!({"alg": "ES256", "kid": "second"}), &right)),
    ];
    for (what, token) in wrong {
        let (status, code, _) = asked(&house, &token).await;
        assert_eq!((status, code.as_str()), (401, "invalid_token"), "{what}");
    }
    assert!(house.up.requests().is_empty());
    assert_eq!(asked(&house, &valid).await.0, 200);
    assert_eq!(asked(&house, "sk-any").await.0, 200, "what is no token is nobody's key, as ever");
}

#[tokio::test]
async fn a_new_key_is_fetched_and_a_flood_of_unknown_ones_is_not() {
    let issuer = Issuer::open().await;
    let house = issuer.house(false).await;
    let claims = issuer.claims("ada");
    assert_eq!(asked(&house, &issuer.token("first", &claims)).await.0, 200);
    issuer.keys.lock().unwrap().clear();
    issuer.add("second");
    let rotated = issuer.token("second", &issuer.claims("bob"));
    assert_eq!(asked(&house, &rotated).await.0, 200);
    assert_eq!(issuer.fetches(), 2);
    for n in 0..20 {
        let unknown = signed(&key(), &json!({"alg": "ES256", "kid": format!("guess-{n}")}), &claims);
        assert_eq!(asked(&house, &unknown).await.1, "invalid_token");
    }
    assert_eq!(issuer.fetches(), 4, "as many as are allowed in a row");
    assert_eq!(asked(&house, &rotated).await.0, 200);
}

#[tokio::test]
async fn an_issuer_that_cannot_be_reached_opens_nothing() {
    let issuer = Issuer::open().await;
    let house = issuer.house(false).await;
    issuer.server.otherwise(|_| Script::error(500, "not now"));
    let token = issuer.token("first", &issuer.claims("ada"));
    let (status, code, _) = asked(&house, &token).await;
    assert_eq!((status, code.as_str()), (503, "identity_unavailable"));
    assert!(house.up.requests().is_empty());
    assert_eq!(house.chat(&ask("small", "hi")).await.status, 200, "who brings no token is not its concern");
}
