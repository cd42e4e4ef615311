//! API keys: created once, shown once, kept as a hash, revoked for good.
//!
//! It does not know what a key opens. **Invariant:** no key can be read back from the file: it holds the SHA-256 of 256
//! random bits, for which a slow hash would add nothing. A revoked key opens nothing from the next look-up on.

use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What every key begins with, so that scanners of leaked secrets can find it.
const PREFIX: &str = "ck_";
/// Hex digits of an id.
const ID_DIGITS: usize = 16;
/// Hex digits of the secret part.
const SECRET_DIGITS: usize = 64;
/// "CHKY": tells our files from other SQLite files.
const APPLICATION_ID: i64 = 0x4348_4b59;

const SCHEMA: &str = "CREATE TABLE IF NOT EXISTS api_keys (
    id TEXT NOT NULL PRIMARY KEY,
    hash TEXT NOT NULL,
    name TEXT NOT NULL,
    user TEXT NOT NULL,
    groups TEXT NOT NULL,
    created_at_ms INTEGER NOT NULL,
    revoked_at_ms INTEGER
) STRICT;";

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

/// The keys of one file. Cloning shares them.
#[derive(Clone)]
pub struct KeyStore(Arc<Mutex<Connection>>);

impl KeyStore {
    /// Opens the file, or makes it.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn open(path: &Path) -> Result<Self, KeyFault> {
        Self::of(Connection::open(path)?, &path.display().to_string())
    }

    /// Keys that end with the process.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn in_memory() -> Result<Self, KeyFault> {
        Self::of(Connection::open_in_memory()?, "memory")
    }

    fn of(connection: Connection, path: &str) -> Result<Self, KeyFault> {
        let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        let (application, tables) =
            (number("PRAGMA application_id")?, number("SELECT count(*) FROM sqlite_master")?);
        if application != APPLICATION_ID && (application != 0 || tables != 0) {
            return Err(KeyFault::NotKeys(path.to_owned()));
        }
        // The answer is the mode that was set; a file in memory has its own.
        connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()))?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.busy_timeout(std::time::Duration::from_secs(5))?;
        connection.pragma_update(None, "application_id", APPLICATION_ID)?;
        connection.execute_batch(SCHEMA)?;
        Ok(Self(Arc::new(Mutex::new(connection))))
    }

    /// Makes a key for a user; this is the only time that it can be seen.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn create(
        &self,
        name: &str,
        user: &str,
        groups: &[String],
        now_ms: u64,
    ) -> Result<(ApiKey, NewKey), KeyFault> {
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
        self.lock().execute(
            "INSERT INTO api_keys (id, hash, name, user, groups, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
            params![key.id, hash(secret), key.name, key.user, groups.join("\n"), stored(now_ms)],
        )?;
        let whole = NewKey(format!("{PREFIX}{id}_{secret}"));
        Ok((key, whole))
    }

    /// All keys, oldest first.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn list(&self) -> Result<Vec<ApiKey>, KeyFault> {
        let connection = self.lock();
        let mut statement = connection.prepare("SELECT * FROM api_keys ORDER BY created_at_ms, id")?;
        let rows = statement.query_map([], read)?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// Revokes a key; false where there is none of that id that opens anything.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn revoke(&self, id: &str, now_ms: u64) -> Result<bool, KeyFault> {
        let changed = self.lock().execute(
            "UPDATE api_keys SET revoked_at_ms = ? WHERE id = ? AND revoked_at_ms IS NULL",
            params![stored(now_ms), id],
        )?;
        Ok(changed == 1)
    }

    /// The key that is presented, where it is one of these and not revoked.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn find(&self, presented: &str) -> Result<Option<ApiKey>, KeyFault> {
        let Some((id, secret)) = parts(presented) else { return Ok(None) };
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT * FROM api_keys WHERE id = ? AND revoked_at_ms IS NULL")?;
        let row = |row: &Row<'_>| Ok((read(row)?, row.get::<_, String>("hash")?));
        let found = statement.query_row([id], row).optional()?;
        // Hashes of random secrets are compared: how long that takes tells nothing of use.
        Ok(found.filter(|(_, kept)| *kept == hash(secret)).map(|(key, _)| key))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for KeyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyStore")
    }
}

/// Id and secret of a text that has the shape of a key.
fn parts(presented: &str) -> Option<(&str, &str)> {
    let (id, secret) = presented.trim().strip_prefix(PREFIX)?.split_once('_')?;
    (id.len() == ID_DIGITS && secret.len() == SECRET_DIGITS).then_some((id, secret))
}

fn hash(secret: &str) -> String {
    hex(digest(&SHA256, secret.as_bytes()).as_ref())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// SQLite has signed integers; a time before the year 292,278,994 fits.
fn stored(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let time = |ms: i64| u64::try_from(ms).unwrap_or(0);
    let groups: String = row.get("groups")?;
    Ok(ApiKey {
        id: row.get("id")?,
        name: row.get("name")?,
        user: row.get("user")?,
        groups: groups.lines().map(str::to_owned).collect(),
        created_at_ms: time(row.get("created_at_ms")?),
        revoked_at_ms: row.get::<_, Option<i64>>("revoked_at_ms")?.map(time),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_until_it_is_revoked() {
        let keys = KeyStore::in_memory().unwrap();
        let (key, whole) = keys.create("laptop", "ada", &["staff".to_owned(), "ml".to_owned()], 7).unwrap();
        assert_eq!(keys.find(whole.reveal()).unwrap(), Some(key.clone()));
        assert!(keys.revoke(&key.id, 9).unwrap());
        assert_eq!(keys.find(whole.reveal()).unwrap(), None);
        assert!(!keys.revoke(&key.id, 10).unwrap(), "once");
        assert_eq!(keys.list().unwrap()[0].revoked_at_ms, Some(9));
    }

    #[test]
    fn nothing_else_opens() {
        let keys = KeyStore::in_memory().unwrap();
        let (key, whole) = keys.create("laptop", "ada", &[], 7).unwrap();
        let (_, other) = keys.create("phone", "bob", &[], 8).unwrap();
        let swapped = format!("ck_{}_{}", key.id, other.reveal().rsplit_once('_').unwrap().1);
        let shorter = &whole.reveal()[..whole.reveal().len() - 1];
        for wrong in ["", "sk-1", "ck_", "ck_x_y", &swapped, shorter, &key.id] {
            assert_eq!(keys.find(wrong).unwrap(), None, "{wrong}");
        }
        assert!(matches!(keys.create("x", " ", &[], 0), Err(KeyFault::NoUser)));
    }

    #[test]
    fn the_file_and_what_is_printed_hold_no_key() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys.sqlite");
        let whole = {
            let keys = KeyStore::open(&path).unwrap();
            let (key, whole) = keys.create("laptop", "ada", &[], 7).unwrap();
            let secret = whole.reveal().rsplit_once('_').unwrap().1.to_owned();
            assert!(!format!("{whole:?} {key:?}").contains(&secret));
            whole
        };
        let secret = whole.reveal().rsplit_once('_').unwrap().1.as_bytes();
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap();
            assert!(!bytes.windows(secret.len()).any(|window| window == secret));
        }
        assert!(KeyStore::open(&path).unwrap().find(whole.reveal()).unwrap().is_some());
    }

    #[test]
    fn another_program_s_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.sqlite");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        assert!(matches!(KeyStore::open(&path), Err(KeyFault::NotKeys(_))));
    }
}
