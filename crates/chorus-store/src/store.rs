//! The trait behind which run records are kept, and the words of its questions.
//!
//! **Invariant:** `append` returns only when the record survives a stop of the process; a slow disk slows the caller
//! down ([`RunStore::submit`] waits for room) and never drops a record silently.

use crate::{RunId, RunRecord, RunStatus};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Why a store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreFault {
    /// The file is not a store of run records.
    #[error("{path} is not a file of run records: {detail}")]
    NotAStore {
        /// Which file.
        path: String,
        /// What was found.
        detail: String,
    },
    /// The file was written by a later program.
    #[error("{path} has schema version {found}; this program knows versions up to {known}")]
    TooNew {
        /// Which file.
        path: String,
        /// Its version.
        found: u32,
        /// The latest known one.
        known: u32,
    },
    /// The file is damaged.
    #[error("the file of run records is damaged: {0}")]
    Damaged(String),
    /// The same id twice.
    #[error("a run with the id {0} is already kept")]
    Duplicate(RunId),
    /// A record that cannot be written as JSON, or a kept one that cannot be read.
    #[error("the run record is not readable JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// Disk full, no permission, locked for too long.
    #[error("the file of run records cannot be used: {0}")]
    Io(String),
    /// Where replicas keep their records is away, and what waits on this machine has reached its bound.
    #[error("no further run record waits on this machine: {0} bytes are the most (max_spool_bytes)")]
    Full(u64),
    /// The database that replicas share cannot be used.
    #[error("the database of run records: {0}")]
    Database(#[from] crate::postgres_line::PostgresFault),
    /// The server that replicas share cannot be used.
    #[error("the Redis server of run records: {0}")]
    Server(#[from] crate::redis_line::RedisFault),
    /// The Qdrant server that replicas share cannot be used.
    #[error("the Qdrant server of run records: {0}")]
    Points(#[from] crate::qdrant::QdrantFault),
    /// The store was closed.
    #[error("the store of run records is closed")]
    Closed,
}

impl StoreFault {
    /// Whether it is the place that replicas share which cannot be used: another try may help.
    #[must_use]
    pub fn is_of_a_shared_place(&self) -> bool {
        matches!(self, Self::Database(_) | Self::Server(_) | Self::Points(_))
    }
}

/// Which runs to list; an absent field matches all.
#[derive(Debug, Default, Clone)]
pub struct RunFilter {
    /// The decision that won.
    pub decision: Option<String>,
    /// The model name that the client sent.
    pub requested_model: Option<String>,
    /// How it ended.
    pub status: Option<RunStatus>,
    /// Digest of the configuration.
    pub spec_digest: Option<String>,
    /// Started at this time or later, in milliseconds since 1970.
    pub since_ms: Option<u64>,
}

/// Which part of a list.
#[derive(Debug, Clone)]
pub struct Page {
    /// Most records (1..=1000, clamped; default 50).
    pub limit: usize,
    /// Only runs older than this one: the last id of the page before.
    pub before: Option<RunId>,
}

impl Default for Page {
    fn default() -> Self {
        Self { limit: 50, before: None }
    }
}

/// Waits until a submitted record is safe.
#[must_use = "a record is safe only when its receipt says so"]
pub struct Receipt(pub(crate) oneshot::Receiver<Result<(), StoreFault>>);

/// Hears of records that could not be kept, where nobody waits for each of them.
pub trait Losses: Send + Sync {
    /// One is lost.
    fn lost(&self, fault: &StoreFault);
}

/// Who is told what became of a record.
pub(crate) enum Done {
    /// Who waits at the other end of a [`Receipt`].
    Receipt(oneshot::Sender<Result<(), StoreFault>>),
    /// Who hears of losses only.
    Losses(Arc<dyn Losses>),
}

/// Puts a record into the queue of whoever writes it.
pub(crate) async fn submit<J>(
    jobs: &mpsc::Sender<J>,
    append: impl FnOnce(Done) -> J,
) -> Result<Receipt, StoreFault> {
    let (done, receipt) = oneshot::channel();
    jobs.send(append(Done::Receipt(done))).await.map_err(|_| StoreFault::Closed)?;
    Ok(Receipt(receipt))
}

/// Says what became of a record. A caller that submitted and left still gets its failure into the log; that nothing more
/// fits is told there once, not for each record.
pub(crate) fn tell(done: Done, outcome: Result<(), StoreFault>) {
    match done {
        Done::Receipt(receipt) => {
            if let Err(Err(error)) = receipt.send(outcome)
                && !matches!(error, StoreFault::Full(_))
            {
                tracing::error!(%error, "a run record was not kept");
            }
        }
        Done::Losses(losses) => {
            if let Err(fault) = outcome {
                losses.lost(&fault);
            }
        }
    }
}

impl Receipt {
    /// Returns when the record is safe.
    ///
    /// # Errors
    /// [`StoreFault`] when it could not be kept.
    pub async fn safe(self) -> Result<(), StoreFault> {
        self.0.await.unwrap_or(Err(StoreFault::Closed))
    }
}

/// Keeps run records.
pub trait RunStore: Send + Sync {
    /// Hands a record over; returns as soon as there is room for it, before it is safe.
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>>;

    /// Keeps a record; returns when it is safe.
    fn append(&self, record: RunRecord) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async move { self.submit(record).await?.safe().await })
    }

    /// Hands a record over without waiting until it is safe; returns as soon as there is room for it. `losses` hears of it
    /// where it is not kept. [`flush`](Self::flush) waits for it as for any other.
    fn hand_over(&self, record: Box<RunRecord>, losses: Arc<dyn Losses>) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if let Err(fault) = self.append(*record).await {
                losses.lost(&fault);
            }
        })
    }

    /// One record.
    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>>;

    /// Records, latest first.
    fn list(&self, filter: RunFilter, page: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>>;

    /// Takes prompts and answers out of a decision's records, except the latest `keep`; looks at no more than `window`
    /// records before those. Returns how many lost theirs.
    fn trim_content(
        &self,
        decision: String,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'_, Result<u64, StoreFault>>;

    /// Returns when everything submitted before is safe or reported as failed.
    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>>;
}
