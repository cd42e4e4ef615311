//! Run records in one SQLite file, written by one thread.
//!
//! A record becomes JSON where it is handed over: the thread gets few pieces of memory. It takes what waits in the queue,
//! writes it in one transaction, and acknowledges it after the commit. A record waits a moment for others, and longer where
//! many come, so that a busy server pays for few transactions and never for one a request. Reads pass through the same queue, so that a reader sees everything submitted before it asked. Other processes may read
//! the file at the same time (write-ahead log).
//!
//! **Invariant:** nothing is acknowledged before `COMMIT` returned, with `synchronous = FULL`: a kill of the process
//! loses nothing acknowledged, and neither does a power cut on a disk that honours flushes.

use crate::kinds::Kinds;
use crate::migrate::migrate;
use crate::rows::{self, Insertion, Row, fault};
use crate::store::{Done, submit, tell};
use crate::{Losses, Page, Receipt, RunFilter, RunId, RunRecord, RunStore, StoreFault};
use futures_util::future::BoxFuture;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use std::future::ready;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::{SendError, TrySendError};
use tokio::sync::{mpsc, oneshot};

/// Most records that wait to be written; further ones wait at [`RunStore::submit`].
pub const QUEUE: usize = 4096;

/// Most records of one transaction.
const BATCH: usize = 1024;

/// How long the first record of a transaction waits for others.
const LINGER: Duration = Duration::from_millis(10);

/// How many times it waits so long, as long as many come and the transaction is not full: a transaction takes about as long
/// as a hundred records.
const LINGERS: usize = 10;

/// Records that are many for one moment.
const MANY: usize = 16;

/// Bytes of a page of a new file. Each page is two writes to the log, and a usual record has 2 KB: larger pages are fewer
/// writes, but an index is written by the page, however little of it changed. One of 1,000 takes
/// 7.3 µs of the thread with pages of 8 KiB, 5.9 with 16 (`benches/run_records.rs`); one record alone writes four pages.
const PAGE_BYTES: u32 = 16_384;

/// Pages of the write-ahead log after which they are moved into the file (16 MiB): pages of the indexes that every record
/// changes are moved once for thousands of records.
const LOG_PAGES: u32 = 1024;

/// How long another process may hold the file.
const BUSY: Duration = Duration::from_secs(5);

enum Job {
    Append(Row, Done),
    Ask(Box<dyn FnOnce(&Connection) + Send>),
}

/// Run records in one SQLite file. Cloning shares the file; it is closed when the last clone is gone and the queue is
/// written.
#[derive(Clone)]
pub struct SqliteRunStore {
    jobs: mpsc::Sender<Job>,
}

impl SqliteRunStore {
    /// Opens the file, creates it (and its folder) when it is not there, and brings an older one to the present
    /// schema. A new file can be read by its owner only.
    ///
    /// # Errors
    /// [`StoreFault::NotAStore`], [`StoreFault::TooNew`], [`StoreFault::Damaged`], [`StoreFault::Io`].
    pub fn open(path: &Path) -> Result<Self, StoreFault> {
        Self::open_bounded(path, None)
    }

    /// The same, of a file whose records may take so many bytes; further ones are refused until some are removed.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_within(path: &Path, most_bytes: u64) -> Result<Self, StoreFault> {
        Self::open_bounded(path, Some(most_bytes))
    }

    fn open_bounded(path: &Path, most_bytes: Option<u64>) -> Result<Self, StoreFault> {
        create(path).map_err(|e| StoreFault::Io(format!("{}: {e}", path.display())))?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)
            .map_err(|e| StoreFault::Io(format!("{}: {e}", path.display())))?;
        Self::over(connection, path, most_bytes)
    }

    /// A store that is gone with its last clone.
    ///
    /// # Errors
    /// [`StoreFault::Io`].
    pub fn in_memory() -> Result<Self, StoreFault> {
        let connection = Connection::open_in_memory().map_err(|e| fault(&e))?;
        Self::over(connection, Path::new(":memory:"), None)
    }

    fn over(mut connection: Connection, path: &Path, most_bytes: Option<u64>) -> Result<Self, StoreFault> {
        connection.busy_timeout(BUSY).map_err(|e| fault(&e))?;
        connection.pragma_update(None, "page_size", PAGE_BYTES).map_err(|e| fault(&e))?;
        migrate(&mut connection, path)?;
        connection.pragma_update(None, "journal_mode", "WAL").map_err(|e| fault(&e))?;
        connection.pragma_update(None, "synchronous", "FULL").map_err(|e| fault(&e))?;
        connection.pragma_update(None, "wal_autocheckpoint", LOG_PAGES).map_err(|e| fault(&e))?;
        let (jobs, queue) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("run-records".to_owned())
            .spawn(move || write_all(&connection, queue, most_bytes))
            .map_err(|e| StoreFault::Io(e.to_string()))?;
        Ok(Self { jobs })
    }

    /// Removes records; those that are not there are no error.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) async fn remove(&self, ids: Vec<RunId>) -> Result<(), StoreFault> {
        self.ask(move |connection| rows::remove(connection, &ids)).await
    }

    async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, StoreFault> + Send + 'static,
    ) -> Result<T, StoreFault> {
        let (reply, answer) = oneshot::channel();
        let job = Job::Ask(Box::new(move |connection| {
            // Nobody waits for the answer any more: nothing to do.
            let _ = reply.send(question(connection));
        }));
        self.jobs.send(job).await.map_err(|_| StoreFault::Closed)?;
        answer.await.unwrap_or(Err(StoreFault::Closed))
    }
}

impl RunStore for SqliteRunStore {
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        let row = Row::of(Box::new(record));
        Box::pin(async move {
            let row = row?;
            submit(&self.jobs, |done| Job::Append(row, done)).await
        })
    }

    fn hand_over(&self, record: Box<RunRecord>, losses: Arc<dyn Losses>) -> BoxFuture<'_, ()> {
        let job = match Row::of(record) {
            Ok(row) => Job::Append(row, Done::Losses(losses)),
            Err(fault) => {
                losses.lost(&fault);
                return Box::pin(ready(()));
            }
        };
        match self.jobs.try_send(job) {
            Ok(()) => Box::pin(ready(())),
            Err(TrySendError::Full(job)) => Box::pin(async move {
                if let Err(SendError(job)) = self.jobs.send(job).await {
                    closed(job);
                }
            }),
            Err(TrySendError::Closed(job)) => {
                closed(job);
                Box::pin(ready(()))
            }
        }
    }

    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        let id = id.clone();
        Box::pin(self.ask(move |connection| rows::get(connection, &id)))
    }

    fn list(&self, filter: RunFilter, page: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>> {
        Box::pin(self.ask(move |connection| rows::list(connection, &filter, &page)))
    }

    fn trim_content(
        &self,
        decision: String,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(self.ask(move |connection| rows::trim_content(connection, &decision, keep, window)))
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        // The queue keeps its order: an answer means that everything before was committed or reported.
        Box::pin(self.ask(|_| Ok(())))
    }
}

/// The thread is gone.
fn closed(job: Job) {
    if let Job::Append(_, done) = job {
        tell(done, Err(StoreFault::Closed));
    }
}

/// The thread: until every sender is gone and the queue is empty.
fn write_all(connection: &Connection, mut queue: mpsc::Receiver<Job>, most_bytes: Option<u64>) {
    let (mut batch, mut kinds) = (Vec::new(), Kinds::default());
    while let Some(job) = queue.blocking_recv() {
        if matches!(job, Job::Append(..)) {
            linger(&queue);
        }
        let mut next = Some(job);
        while let Some(job) = next.take() {
            match job {
                Job::Append(row, done) => batch.push((row, done)),
                Job::Ask(question) => {
                    commit(connection, &mut batch, &mut kinds, most_bytes);
                    question(connection);
                }
            }
            if batch.len() < BATCH {
                next = queue.try_recv().ok();
            }
        }
        commit(connection, &mut batch, &mut kinds, most_bytes);
    }
}

/// Waits for others: a moment, and further ones while many come.
fn linger(queue: &mpsc::Receiver<Job>) {
    for moments in 1..=LINGERS {
        if queue.len() >= BATCH {
            return;
        }
        std::thread::sleep(LINGER);
        if queue.len() < MANY * moments {
            return;
        }
    }
}

/// Writes the batch in one transaction; each record hears about itself.
fn commit(connection: &Connection, batch: &mut Vec<(Row, Done)>, kinds: &mut Kinds, most_bytes: Option<u64>) {
    if batch.is_empty() {
        return;
    }
    // Immediate: it reads before it writes, and another process may write in between.
    let begun = Transaction::new_unchecked(connection, TransactionBehavior::Immediate);
    let written = begun.and_then(|transaction| {
        let mut insertion = Insertion::begin(&transaction, kinds, most_bytes)?;
        // A record that cannot be written (a duplicate) fails alone: SQLite undoes its statement only.
        let each: Vec<_> = batch.iter().map(|(row, _)| insertion.write(row)).collect();
        drop(insertion);
        transaction.commit().map(|()| each)
    });
    match written {
        Ok(each) => {
            for ((_, done), outcome) in batch.drain(..).zip(each) {
                tell(done, outcome);
            }
        }
        Err(error) => {
            kinds.forget();
            tracing::error!(%error, records = batch.len(), "run records could not be written");
            for (_, done) in batch.drain(..) {
                tell(done, Err(fault(&error)));
            }
        }
    }
}

/// Creates an empty file that only its owner can read. SQLite gives its side files the same permissions.
pub(crate) fn create(path: &Path) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.read(true).append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}
