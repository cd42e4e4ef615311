//! API keys in one SQLite file.

use super::{ApiKey, KeyFault, KeyStore, Minted, NewKey, Presented};
use crate::database::{count, integer};
use futures_util::future::{BoxFuture, ready};
use rusqlite::{Connection, OptionalExtension, Row, params};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// The keys of one file. Cloning shares them. Each question is one look at a small file that is in memory.
#[derive(Clone)]
pub struct SqliteKeys(Arc<Mutex<Connection>>);

impl SqliteKeys {
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
        let Minted { key, whole, hash } = Minted::new(name, user, groups, now_ms)?;
        self.lock().execute(
            "INSERT INTO api_keys (id, hash, name, user, groups, created_at_ms) VALUES (?, ?, ?, ?, ?, ?)",
            params![key.id, hash, key.name, key.user, groups.join("\n"), integer(now_ms)],
        )?;
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
            params![integer(now_ms), id],
        )?;
        Ok(changed == 1)
    }

    /// The key that is presented, where it is one of these and not revoked.
    ///
    /// # Errors
    /// [`KeyFault`].
    pub fn find(&self, presented: &str) -> Result<Option<ApiKey>, KeyFault> {
        let Some(presented) = Presented::read(presented) else { return Ok(None) };
        let connection = self.lock();
        let mut statement =
            connection.prepare_cached("SELECT * FROM api_keys WHERE id = ? AND revoked_at_ms IS NULL")?;
        let row = |row: &Row<'_>| Ok((read(row)?, row.get::<_, String>("hash")?));
        let found = statement.query_row([presented.id], row).optional()?;
        Ok(found.filter(|(_, kept)| presented.has_hash(kept)).map(|(key, _)| key))
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyStore for SqliteKeys {
    fn create<'a>(
        &'a self,
        name: &'a str,
        user: &'a str,
        groups: &'a [String],
        now_ms: u64,
    ) -> BoxFuture<'a, Result<(ApiKey, NewKey), KeyFault>> {
        Box::pin(ready(self.create(name, user, groups, now_ms)))
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<ApiKey>, KeyFault>> {
        Box::pin(ready(self.list()))
    }

    fn revoke<'a>(&'a self, id: &'a str, now_ms: u64) -> BoxFuture<'a, Result<bool, KeyFault>> {
        Box::pin(ready(self.revoke(id, now_ms)))
    }

    fn find<'a>(&'a self, presented: &'a str) -> BoxFuture<'a, Result<Option<ApiKey>, KeyFault>> {
        Box::pin(ready(self.find(presented)))
    }
}

impl std::fmt::Debug for SqliteKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteKeys")
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let groups: String = row.get("groups")?;
    Ok(ApiKey {
        id: row.get("id")?,
        name: row.get("name")?,
        user: row.get("user")?,
        groups: groups.lines().map(str::to_owned).collect(),
        created_at_ms: count(row.get("created_at_ms")?),
        revoked_at_ms: row.get::<_, Option<i64>>("revoked_at_ms")?.map(count),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_opens_until_it_is_revoked() {
        let keys = SqliteKeys::in_memory().unwrap();
        let (key, whole) = keys.create("laptop", "ada", &["staff".to_owned(), "ml".to_owned()], 7).unwrap();
        assert_eq!(keys.find(whole.reveal()).unwrap(), Some(key.clone()));
        assert!(keys.revoke(&key.id, 9).unwrap());
        assert_eq!(keys.find(whole.reveal()).unwrap(), None);
        assert!(!keys.revoke(&key.id, 10).unwrap(), "once");
        assert_eq!(keys.list().unwrap()[0].revoked_at_ms, Some(9));
    }

    #[test]
    fn nothing_else_opens() {
        let keys = SqliteKeys::in_memory().unwrap();
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
            let keys = SqliteKeys::open(&path).unwrap();
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
        assert!(SqliteKeys::open(&path).unwrap().find(whole.reveal()).unwrap().is_some());
    }

    #[test]
    fn another_program_s_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other.sqlite");
        Connection::open(&path).unwrap().execute_batch("CREATE TABLE x (y)").unwrap();
        assert!(matches!(SqliteKeys::open(&path), Err(KeyFault::NotKeys(_))));
    }
}
