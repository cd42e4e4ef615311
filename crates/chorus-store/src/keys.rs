//! API keys: created once, shown once, kept as a hash, revoked for good.
//!
//! It does not know what a key opens. **Invariant:** no key can be read back from where keys are kept: that holds the SHA-256
//! of 256 random bits, for which a slow hash would add nothing. A revoked key opens nothing from the next look-up on.

mod sqlite;

pub use sqlite::SqliteKeys;

use crate::postgres_line::PostgresFault;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};

/// What every key begins with, so that scanners of leaked secrets can find it.
const PREFIX: &str = "ck_";
/// Hex digits of an id.
const ID_DIGITS: usize = 16;
/// Hex digits of the secret part.
const SECRET_DIGITS: usize = 64;

/// What is known of a key; nothing that opens anything.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct ApiKey {
    /// Its id, the part of the key that is no secret.
    pub id: String,
    /// What it is for, for people.
    pub name: String,
    /// Whose requests it marks.
    pub user: String,
    /// The groups that they are in.
    pub groups: Vec<String>,
    /// Milliseconds since 1970.
    pub created_at_ms: u64,
    /// When it was revoked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revoked_at_ms: Option<u64>,
}

/// The whole key. It can be seen once, by [`reveal`](Self::reveal).
pub struct NewKey(String);

impl NewKey {
    /// The key, for whoever will use it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for NewKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Why keys cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum KeyFault {
    /// What SQLite says.
    #[error("the file of API keys: {0}")]
    Store(#[from] rusqlite::Error),
    /// What the database says that replicas share.
    #[error("the database of API keys: {0}")]
    Database(#[from] PostgresFault),
    /// The file belongs to something else.
    #[error("{0} holds something else than API keys")]
    NotKeys(String),
    /// A key names nobody.
    #[error("a key needs a user")]
    NoUser,
    /// The system gives no random bytes.
    #[error("the system gives no random numbers")]
    Random,
}

/// Keeps API keys.
pub trait KeyStore: Send + Sync {
    /// Makes a key for a user; this is the only time that it can be seen.
    fn create<'a>(
        &'a self,
        name: &'a str,
        user: &'a str,
        groups: &'a [String],
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(ApiKey, NewKey), KeyFault>>;

    /// All keys, oldest first.
    fn list(&self) -> BoxFuture<'_, Result<Vec<ApiKey>, KeyFault>>;

    /// Revokes a key; false where there is none of that id that opens anything.
    fn revoke<'a>(&'a self, id: &'a str, now_ms: u64) -> BoxFuture<'a, Result<bool, KeyFault>>;

    /// The key that is presented, where it is one of these and not revoked.
    fn find<'a>(&'a self, presented: &'a str) -> BoxFuture<'a, Result<Option<ApiKey>, KeyFault>>;
}

/// A key that was just made, before it is kept.
pub(crate) struct Minted {
    pub(crate) key: ApiKey,
    pub(crate) whole: NewKey,
    /// What is kept of the secret.
    pub(crate) hash: String,
}

impl Minted {
    /// # Errors
    /// [`KeyFault::NoUser`], [`KeyFault::Random`].
    pub(crate) fn new(name: &str, user: &str, groups: &[String], now_ms: u64) -> Result<Self, KeyFault> {
        let user = user.trim();
        if user.is_empty() {
            return Err(KeyFault::NoUser);
        }
        let mut random = [0; (ID_DIGITS + SECRET_DIGITS) / 2];
        SystemRandom::new().fill(&mut random).map_err(|_| KeyFault::Random)?;
        let text = hex(&random);
        let (id, secret) = text.split_at(ID_DIGITS);
        let key = ApiKey {
            id: id.to_owned(),
            name: name.to_owned(),
            user: user.to_owned(),
            groups: groups.to_vec(),
            created_at_ms: now_ms,
            revoked_at_ms: None,
        };
        let whole = NewKey(format!("{PREFIX}{id}_{secret}"));
        Ok(Self { key, whole, hash: hash(secret) })
    }
}

/// A text that has the shape of a key.
pub(crate) struct Presented<'a> {
    pub(crate) id: &'a str,
    secret: &'a str,
}

impl<'a> Presented<'a> {
    pub(crate) fn read(text: &'a str) -> Option<Self> {
        let (id, secret) = text.trim().strip_prefix(PREFIX)?.split_once('_')?;
        let fits = id.len() == ID_DIGITS && secret.len() == SECRET_DIGITS;
        (fits && !text.contains('\0')).then_some(Self { id, secret })
    }

    /// Whether that was kept of its secret. Hashes of random secrets are compared: how long that takes tells nothing of use.
    pub(crate) fn has_hash(&self, kept: &str) -> bool {
        kept == hash(self.secret)
    }
}

fn hash(secret: &str) -> String {
    hex(digest(&SHA256, secret.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
