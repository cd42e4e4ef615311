//! Services around the data plane: who issues tokens, where limits are counted, where traces go.

use crate::RedisServer;
use std::time::Duration;

/// An issuer whose tokens (JWT) say who a caller is: a provider `jwt` of `services.authz`. It is ours.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenIssuer {
    /// What `iss` must be.
    pub issuer: String,
    /// Where its keys are; `None` asks `ISSUER/.well-known/openid-configuration`.
    pub jwks_url: Option<String>,
    /// What `aud` must name at least one of.
    pub audiences: Vec<String>,
    /// What a token may be signed with.
    pub algorithms: Vec<TokenAlgorithm>,
    /// The claim that is the user's id; default `sub`.
    pub user_claim: String,
    /// The claim that lists the user's groups; default `groups`.
    pub groups_claim: String,
    /// How far clocks may be apart; default 60 s.
    pub leeway: Duration,
}

/// How a token is signed. Shared secrets (`HS256` and its kind) and `none` are not among them: whoever can check such a
/// token can make one. Source: RFC 7518, section 3.1; RFC 8037.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TokenAlgorithm {
    /// RSA, PKCS #1 v1.5, SHA-256.
    Rs256,
    /// RSA, PKCS #1 v1.5, SHA-384.
    Rs384,
    /// RSA, PKCS #1 v1.5, SHA-512.
    Rs512,
    /// RSA, PSS, SHA-256.
    Ps256,
    /// RSA, PSS, SHA-384.
    Ps384,
    /// RSA, PSS, SHA-512.
    Ps512,
    /// ECDSA over P-256, SHA-256.
    Es256,
    /// ECDSA over P-384, SHA-384.
    Es384,
    /// Ed25519.
    EdDsa,
}

impl TokenAlgorithm {
    /// Each with its word.
    pub const WORDS: [(&'static str, Self); 9] = [
        ("RS256", Self::Rs256),
        ("RS384", Self::Rs384),
        ("RS512", Self::Rs512),
        ("PS256", Self::Ps256),
        ("PS384", Self::Ps384),
        ("PS512", Self::Ps512),
        ("ES256", Self::Es256),
        ("ES384", Self::Es384),
        ("EdDSA", Self::EdDsa),
    ];
}

/// Where limits on callers are counted (`services.ratelimit`).
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum LimitStore {
    /// In this process.
    #[default]
    Process,
    /// In a Redis server, which replicas share: a provider `redis-limiter`, which is ours.
    Redis {
        /// The server.
        server: Box<RedisServer>,
        /// Whether a request goes on where it cannot be asked (`fail_open`); else it is refused.
        fail_open: bool,
    },
}

/// Where traces go (`services.observability.tracing`). Source: contract §1.9.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceExport {
    /// Base URL of a collector that takes OTLP over HTTP, such as `http://127.0.0.1:4318`.
    pub endpoint: String,
    /// Share of requests that are traced, 0 to 1.
    pub rate: f64,
    /// `service.name`; default `chorus`.
    pub service_name: String,
    /// `service.version`; default this program's.
    pub service_version: Option<String>,
    /// `deployment.environment.name`.
    pub environment: Option<String>,
}
