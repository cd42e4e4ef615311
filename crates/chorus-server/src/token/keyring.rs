//! The keys of one issuer: fetched when they are needed, kept, and fetched again when they are old or one is missing.
//!
//! It knows no token. **Invariant:** however many tokens of whatever names come, the issuer is asked at most
//! [`ALLOWANCE`] times in a row and then once in [`REFILL`]; and a key is used for [`MOST_AGE`] at most without having been
//! seen again.

use super::ring_keys;
use chorus_spec::{TokenAlgorithm, TokenIssuer};
use chorus_upstream::Upstream;
use jsonwebtoken::DecodingKey;
use jsonwebtoken::jwk::{Jwk, PublicKeyUse};
use serde::Deserialize;
use serde_json::Value;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How old keys are when they are fetched again.
const REFRESH: Duration = Duration::from_secs(600);
/// How old keys may become while the issuer cannot be reached.
const MOST_AGE: Duration = Duration::from_secs(3600);
/// Most fetches in a row.
const ALLOWANCE: u32 = 4;
/// One more fetch comes with this time.
const REFILL: Duration = Duration::from_secs(15);
/// How long a fetch may take.
const FETCH_TIME: Duration = Duration::from_secs(5);
/// Most bytes of a document of an issuer.
const MAX_DOCUMENT_BYTES: usize = 256 << 10;

/// Why there is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeyringFault {
    /// The issuer has none of that name for that algorithm.
    Unknown,
    /// The issuer's keys cannot be had, or are too old.
    Unavailable,
}

/// The keys of one issuer.
pub(super) struct Keyring {
    issuer: String,
    jwks_url: Option<String>,
    keys: RwLock<Option<Arc<Keys>>>,
    /// Held by whoever fetches: one at a time.
    allowance: tokio::sync::Mutex<Allowance>,
}

struct Keys {
    since: Instant,
    keys: Vec<Key>,
}

struct Key {
    id: Option<String>,
    /// What it is for, where it says so.
    algorithm: Option<String>,
    key: DecodingKey,
}

/// Fetches that may still be made.
struct Allowance {
    left: u32,
    refilled: Instant,
}

impl Allowance {
    fn take(&mut self, now: Instant) -> bool {
        let more = now.saturating_duration_since(self.refilled).as_secs() / REFILL.as_secs();
        if more > 0 {
            self.left = self.left.saturating_add(u32::try_from(more).unwrap_or(ALLOWANCE)).min(ALLOWANCE);
            self.refilled = now;
        }
        let may = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may
    }
}

impl Keyring {
    /// Of that issuer; nothing is fetched yet.
    pub(super) fn of(issuer: &TokenIssuer) -> Self {
        Self {
            issuer: issuer.issuer.clone(),
            jwks_url: issuer.jwks_url.clone(),
            keys: RwLock::new(None),
            allowance: tokio::sync::Mutex::new(Allowance { left: ALLOWANCE, refilled: Instant::now() }),
        }
    }

    /// The key of that name for that algorithm; a token that names none gets the only key that fits.
    ///
    /// # Errors
    /// [`KeyringFault`].
    pub(super) async fn key(
        &self,
        client: &Upstream,
        id: Option<&str>,
        algorithm: TokenAlgorithm,
    ) -> Result<DecodingKey, KeyringFault> {
        let settled = |now: Instant| {
            let keys = self.known().filter(|keys| now.saturating_duration_since(keys.since) < REFRESH)?;
            keys.find(id, algorithm)
        };
        if let Some(key) = settled(Instant::now()) {
            return Ok(key);
        }
        let mut allowance = self.allowance.lock().await;
        // Whoever fetched meanwhile may have found it.
        if let Some(key) = settled(Instant::now()) {
            return Ok(key);
        }
        if allowance.take(Instant::now()) {
            match self.fetch(client).await {
                Some(keys) => {
                    let fetched = Arc::new(Keys { since: Instant::now(), keys });
                    *self.keys.write().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
                }
                None => {
                    tracing::warn!(issuer = self.issuer, "the keys of an issuer of tokens cannot be fetched");
                }
            }
        }
        drop(allowance);
        let keys = self.known().filter(|keys| keys.since.elapsed() < MOST_AGE);
        keys.ok_or(KeyringFault::Unavailable)?.find(id, algorithm).ok_or(KeyringFault::Unknown)
    }

    fn known(&self) -> Option<Arc<Keys>> {
        self.keys.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn fetch(&self, client: &Upstream) -> Option<Vec<Key>> {
        #[derive(Deserialize)]
        struct Set {
            keys: Vec<Value>,
        }
        let url = match &self.jwks_url {
            Some(url) => url.clone(),
            None => self.discover(client).await?,
        };
        let document = client.fetch(&url, FETCH_TIME, MAX_DOCUMENT_BYTES).await.ok()?;
        let set: Set = serde_json::from_slice(&document).ok()?;
        Some(set.keys.into_iter().filter_map(Key::read).collect())
    }

    /// Where the issuer says that its keys are. Source: OpenID Connect Discovery 1.0, sections 4.1 to 4.3.
    async fn discover(&self, client: &Upstream) -> Option<String> {
        #[derive(Deserialize)]
        struct Discovery {
            issuer: String,
            jwks_uri: String,
        }
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let document = client.fetch(&url, FETCH_TIME, MAX_DOCUMENT_BYTES).await.ok()?;
        let found: Discovery = serde_json::from_slice(&document).ok()?;
        // An issuer that was reached by TLS does not send us elsewhere without it.
        let is_safe = found.jwks_uri.starts_with("https://") || self.issuer.starts_with("http://");
        (found.issuer == self.issuer && is_safe).then_some(found.jwks_uri)
    }
}

impl Keys {
    fn find(&self, id: Option<&str>, algorithm: TokenAlgorithm) -> Option<DecodingKey> {
        let mut fitting =
            self.keys.iter().filter(|key| key.fits(algorithm) && (id.is_none() || key.id.as_deref() == id));
        match (fitting.next(), fitting.next()) {
            (Some(key), None) => Some(key.key.clone()),
            // Two keys of one name, or none named: which one is meant cannot be told.
            _ => None,
        }
    }
}

impl Key {
    /// A key that signs, of a kind that we know.
    fn read(written: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(written).ok()?;
        if jwk.common.public_key_use.as_ref().is_some_and(|it| *it != PublicKeyUse::Signature) {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        let algorithm = jwk.common.key_algorithm.map(|it| it.to_string());
        Some(Self { id: jwk.common.key_id, algorithm, key })
    }

    fn fits(&self, algorithm: TokenAlgorithm) -> bool {
        let wanted = ring_keys::ours(algorithm);
        let is_for_it = self.algorithm.as_ref().is_none_or(|own| own.parse() == Ok(wanted));
        is_for_it && self.key.family() == wanted.family()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fetches_are_allowed_in_a_row_and_then_one_by_one() {
        let now = Instant::now();
        let mut allowance = Allowance { left: ALLOWANCE, refilled: now };
        let taken = (0..10).filter(|_| allowance.take(now)).count();
        assert_eq!(taken, 4);
        assert!(!allowance.take(now + REFILL / 2));
        assert!(allowance.take(now + REFILL) && !allowance.take(now + REFILL));
        let later = now + REFILL * 100;
        assert_eq!((0..10).filter(|_| allowance.take(later)).count(), 4);
    }
}
