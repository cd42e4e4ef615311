//! Workflow runs that wait for the results of tools: kept for a while, taken once.
//!
//! It knows a state as a text, not what is in it. **Invariant:** a state is taken at most once, also when several
//! threads or processes ask at the same time, and never after its time to live.

mod redis;

use chorus_collab::WorkflowStates;
use chorus_collab::workflows::StateFault;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::time::Instant;

pub use self::redis::RedisStates;

/// How long a state waits where nobody says otherwise. Source: contract §2.6.
pub const DEFAULT_TTL: Duration = Duration::from_secs(1800);
/// Most states in memory; the one that has waited longest makes room.
pub const MOST_STATES: usize = 4096;
/// Longest id, in bytes.
const MAX_ID_BYTES: usize = 64;

/// States in this process: gone when it stops, and never more than [`MOST_STATES`].
#[derive(Debug)]
pub struct MemoryStates {
    ttl: Duration,
    kept: Mutex<BTreeMap<String, (Instant, String)>>,
}

impl MemoryStates {
    /// An empty store.
    #[must_use]
    pub fn new(ttl: Duration) -> Self {
        Self { ttl, kept: Mutex::new(BTreeMap::new()) }
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, (Instant, String)>) -> T) -> T {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        kept.retain(|_, (since, _)| now.duration_since(*since) < self.ttl);
        act(&mut kept)
    }
}

impl Default for MemoryStates {
    fn default() -> Self {
        Self::new(DEFAULT_TTL)
    }
}

impl WorkflowStates for MemoryStates {
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        self.with(|kept| {
            if kept.len() >= MOST_STATES {
                let oldest = kept.iter().min_by_key(|(_, (since, _))| *since).map(|(id, _)| id.clone());
                oldest.and_then(|id| kept.remove(&id));
            }
            kept.insert(id.to_owned(), (Instant::now(), state));
        });
        async { Ok(()) }.boxed()
    }

    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        let taken = self.with(|kept| kept.remove(id)).map(|(_, state)| state);
        async { Ok(taken) }.boxed()
    }
}

/// States as files of one directory, which processes of one machine may share.
///
/// A state is written aside and renamed into place, and taken by renaming it away: of several takers one succeeds. The
/// files hold conversations; only their owner may read them.
#[derive(Debug, Clone)]
pub struct FileStates {
    directory: PathBuf,
    ttl: Duration,
}

impl FileStates {
    /// The store in that directory, which is made if need be.
    ///
    /// # Errors
    /// When the directory cannot be made.
    pub fn open(directory: &Path, ttl: Duration) -> io::Result<Self> {
        std::fs::create_dir_all(directory)?;
        Ok(Self { directory: directory.to_owned(), ttl })
    }

    fn put_now(&self, id: &str, state: &str) -> io::Result<()> {
        self.forget_old()?;
        let place = self.place(id)?;
        let mut aside = private(&self.directory.join(format!("{id}.new")))?;
        aside.write_all(state.as_bytes())?;
        aside.sync_all()?;
        std::fs::rename(self.directory.join(format!("{id}.new")), place)
    }

    fn take_now(&self, id: &str) -> io::Result<Option<String>> {
        let (place, mine) =
            (self.place(id)?, self.directory.join(format!("{id}.{}.taken", uuid::Uuid::now_v7())));
        match std::fs::rename(&place, &mine) {
            Ok(()) => {}
            Err(fault) if fault.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(fault) => return Err(fault),
        }
        let state =
            self.is_fresh(&mine).and_then(|fresh| fresh.then(|| std::fs::read_to_string(&mine)).transpose());
        std::fs::remove_file(&mine)?;
        state
    }

    fn is_fresh(&self, file: &Path) -> io::Result<bool> {
        let written = std::fs::metadata(file)?.modified()?;
        // A clock that was set back makes nothing older.
        Ok(SystemTime::now().duration_since(written).unwrap_or_default() < self.ttl)
    }

    /// Removes what nobody came for.
    fn forget_old(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.directory)? {
            let file = entry?.path();
            let ours = file.extension().is_some_and(|end| end == "state" || end == "new" || end == "taken");
            // Another process may take it in between.
            if ours && self.is_fresh(&file).is_ok_and(|fresh| !fresh) {
                let _ = std::fs::remove_file(&file);
            }
        }
        Ok(())
    }

    /// An id comes from a client: it must not lead out of the directory.
    fn place(&self, id: &str) -> io::Result<PathBuf> {
        let plain =
            !id.is_empty() && id.len() <= MAX_ID_BYTES && id.bytes().all(|b| b.is_ascii_alphanumeric());
        if plain {
            return Ok(self.directory.join(format!("{id}.state")));
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "not an id of a state"))
    }

    async fn apart<T: Send + 'static>(
        &self,
        act: impl FnOnce(&Self) -> io::Result<T> + Send + 'static,
    ) -> Result<T, StateFault> {
        let store = self.clone();
        let done = tokio::task::spawn_blocking(move || act(&store)).await;
        match done {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(fault)) => {
                tracing::warn!(%fault, "the file store of workflow states failed");
                Err(StateFault(format!("the file store failed ({})", fault.kind())))
            }
            Err(_) => Err(StateFault("the file store stopped".to_owned())),
        }
    }
}

impl WorkflowStates for FileStates {
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        let id = id.to_owned();
        self.apart(move |store| store.put_now(&id, &state)).boxed()
    }

    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        let id = id.to_owned();
        self.apart(move |store| store.take_now(&id)).boxed()
    }
}

/// A new file for its owner alone.
fn private(path: &Path) -> io::Result<std::fs::File> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    const ID: &str = "00112233445566778899aabb";

    async fn is_a_store(states: &dyn WorkflowStates) {
        assert_eq!(states.take(ID).await.unwrap(), None);
        states.put(ID, "{\"é\":1}".to_owned()).await.unwrap();
        assert_eq!(states.take(ID).await.unwrap().as_deref(), Some("{\"é\":1}"));
        assert_eq!(states.take(ID).await.unwrap(), None, "taken once");
        states.put(ID, "again".to_owned()).await.unwrap();
        assert_eq!(states.take(ID).await.unwrap().as_deref(), Some("again"), "put back");
    }

    #[tokio::test]
    async fn both_keep_and_give_once() {
        let directory = tempfile::tempdir().unwrap();
        is_a_store(&MemoryStates::new(DEFAULT_TTL)).await;
        is_a_store(&FileStates::open(directory.path(), DEFAULT_TTL).unwrap()).await;
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[tokio::test(start_paused = true)]
    async fn memory_forgets_after_the_time_to_live() {
        let states = MemoryStates::new(Duration::from_secs(10));
        states.put(ID, "x".to_owned()).await.unwrap();
        tokio::time::advance(Duration::from_secs(9)).await;
        assert_eq!(states.take(ID).await.unwrap().as_deref(), Some("x"));
        states.put(ID, "x".to_owned()).await.unwrap();
        tokio::time::advance(Duration::from_secs(10)).await;
        assert_eq!(states.take(ID).await.unwrap(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn the_one_that_has_waited_longest_makes_room() {
        let states = MemoryStates::new(DEFAULT_TTL);
        for at in 0..=MOST_STATES {
            states.put(&at.to_string(), String::new()).await.unwrap();
            tokio::time::advance(Duration::from_millis(1)).await;
        }
        assert_eq!(states.take("0").await.unwrap(), None);
        assert!(states.take("1").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn files_forget_after_the_time_to_live() {
        let directory = tempfile::tempdir().unwrap();
        let states = FileStates::open(directory.path(), Duration::from_secs(10)).unwrap();
        let age = |id: &str| {
            let file =
                std::fs::File::options().write(true).open(directory.path().join(format!("{id}.state")));
            file.unwrap().set_modified(SystemTime::now() - Duration::from_secs(11)).unwrap();
        };
        states.put(ID, "x".to_owned()).await.unwrap();
        age(ID);
        assert_eq!(states.take(ID).await.unwrap(), None);
        states.put("old", "x".to_owned()).await.unwrap();
        age("old");
        states.put(ID, "x".to_owned()).await.unwrap();
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "the old one is swept");
    }

    #[tokio::test]
    async fn of_many_takers_one_gets_it() {
        let directory = tempfile::tempdir().unwrap();
        let states = Arc::new(FileStates::open(directory.path(), DEFAULT_TTL).unwrap());
        states.put(ID, "x".to_owned()).await.unwrap();
        let takers = (0..8).map(|_| {
            let states = Arc::clone(&states);
            tokio::spawn(async move { states.take(ID).await.unwrap().is_some() })
        });
        let mut taken = 0;
        for taker in takers.collect::<Vec<_>>() {
            taken += usize::from(taker.await.unwrap());
        }
        assert_eq!(taken, 1);
    }

    #[tokio::test]
    async fn an_id_does_not_lead_out_of_the_directory() {
        let directory = tempfile::tempdir().unwrap();
        let states = FileStates::open(directory.path(), DEFAULT_TTL).unwrap();
        for id in ["../x", "", "a/b", "a.b", &"a".repeat(65)] {
            assert!(states.put(id, "x".to_owned()).await.is_err(), "{id}");
            assert!(states.take(id).await.is_err(), "{id}");
        }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn a_state_is_its_owner_s() {
        use std::os::unix::fs::PermissionsExt as _;
        let directory = tempfile::tempdir().unwrap();
        let states = FileStates::open(directory.path(), DEFAULT_TTL).unwrap();
        states.put(ID, "x".to_owned()).await.unwrap();
        let file = directory.path().join(format!("{ID}.state"));
        assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
