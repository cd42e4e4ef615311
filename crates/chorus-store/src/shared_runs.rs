//! Run records of several replicas in one place, written by one task of each.
//!
//! The task takes what waits in the queue and hands it over in one step. While the place is away, or does not do it,
//! records are kept in a file of this machine, the spool, and brought over once it does. So a record that was acknowledged is
//! safe in one of the two. What waits in the spool is read too, by the replica that wrote it. It does not know what the place
//! is: a database of PostgreSQL, a Redis or a Qdrant server.
//!
//! What waits has a bound, [`MAX_SPOOL_BYTES`]: a record that finds it reached is refused.
//!
//! **Invariant:** nothing is acknowledged before the place or the spool has taken it; nothing leaves the spool before
//! the place has it; and a record that both have is one record.

mod content;
mod qdrant;
mod redis;
mod scripts;

pub use self::qdrant::QdrantRuns;
pub use self::redis::RedisRuns;

use crate::store::{Done, submit, tell};
use crate::{Losses, Page, Receipt, RunFilter, RunId, RunRecord, RunStore, SqliteRunStore, StoreFault};
use futures_util::future::BoxFuture;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::error::SendError;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Most records that wait to be written; further ones wait at [`RunStore::submit`].
const QUEUE: usize = 1024;
/// Most records of one step.
const BATCH: usize = 256;
/// How long the first record of a step waits for others.
const LINGER: Duration = Duration::from_millis(5);
/// How often a place that was away is tried, and the spool brought over.
const RETRY: Duration = Duration::from_secs(5);
/// Most bytes of records that wait on this machine while the place is away (`max_spool_bytes`, default 1 GiB); further ones
/// are lost, and counted: what was acknowledged does not make room for what is new.
pub const MAX_SPOOL_BYTES: u64 = 1 << 30;
/// How often old runs are removed, where they are.
const FORGET: Duration = Duration::from_secs(600);

/// Where replicas keep their run records.
pub trait RunsPlace: Send + Sync {
    /// What logs call it, such as `the database of run records`.
    fn name(&self) -> &'static str;

    /// Whether it answers.
    ///
    /// # Errors
    /// [`StoreFault`].
    fn reached(&self) -> BoxFuture<'_, Result<(), StoreFault>>;

    /// Takes records, and gives the ids of those that were not there before; who is there already is left as it is.
    ///
    /// # Errors
    /// [`StoreFault`]: then some of them may be there.
    fn insert<'a>(
        &'a self,
        records: &'a mut [RunRecord],
    ) -> BoxFuture<'a, Result<BTreeSet<String>, StoreFault>>;

    /// One record.
    ///
    /// # Errors
    /// [`StoreFault`].
    fn get<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreFault>>;

    /// Records, latest first.
    ///
    /// # Errors
    /// [`StoreFault`].
    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreFault>>;

    /// Takes prompts and answers out of a decision's records, as [`RunStore::trim_content`] does.
    ///
    /// # Errors
    /// [`StoreFault`].
    fn trim_content<'a>(
        &'a self,
        decision: &'a str,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'a, Result<u64, StoreFault>>;

    /// Removes runs that are older than that; not all at once. Nothing to do where the place does so by itself.
    ///
    /// # Errors
    /// [`StoreFault`].
    fn forget(&self, _older: Duration) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(std::future::ready(Ok(())))
    }
}

enum Job {
    Append(Box<RunRecord>, Done),
    Flush(oneshot::Sender<()>),
}

/// Run records in one place. Cloning shares the queue; the task ends with the last clone, once the queue is written.
#[derive(Clone)]
pub struct SharedRunStore {
    jobs: mpsc::Sender<Job>,
    reader: Arc<dyn RunsPlace>,
    spool: SqliteRunStore,
}

impl SharedRunStore {
    /// Records at that place, by a task of this runtime; `spool` keeps what the place does not take at present, and
    /// `keep_for` is how long runs are kept (without it, for as long as the place keeps them). The task writes by one
    /// connection, and questions are asked by another.
    #[must_use]
    pub fn new(
        writer: Arc<dyn RunsPlace>,
        reader: Arc<dyn RunsPlace>,
        spool: SqliteRunStore,
        keep_for: Option<Duration>,
    ) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        // What an earlier process left in the spool is brought over first thing.
        let task = Writer {
            place: writer,
            spool: spool.clone(),
            keep_for,
            is_away: false,
            has_spooled: true,
            is_full: false,
        };
        tokio::spawn(task.run(queue));
        Self { jobs, reader, spool }
    }

    /// Everything that was submitted before is at the place or in the spool.
    async fn settled(&self) -> Result<(), StoreFault> {
        let (done, settled) = oneshot::channel();
        self.jobs.send(Job::Flush(done)).await.map_err(|_| StoreFault::Closed)?;
        settled.await.map_err(|_| StoreFault::Closed)
    }

    async fn listed(&self, filter: RunFilter, page: Page) -> Result<Vec<RunRecord>, StoreFault> {
        self.settled().await?;
        // The spool first: what is brought over meanwhile is in both answers, not in neither.
        let waiting = self.spool.list(filter.clone(), page.clone()).await?;
        let mut runs = self.reader.list(&filter, &page).await?;
        if !waiting.is_empty() {
            runs.extend(waiting);
            runs.sort_by(|one, other| other.id.cmp(&one.id));
            runs.dedup_by(|one, other| one.id == other.id);
            runs.truncate(page.limit.clamp(1, 1000));
        }
        Ok(runs)
    }
}

impl RunStore for SharedRunStore {
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        Box::pin(submit(&self.jobs, move |done| Job::Append(Box::new(record), done)))
    }

    fn hand_over(&self, record: Box<RunRecord>, losses: Arc<dyn Losses>) -> BoxFuture<'_, ()> {
        let job = Job::Append(record, Done::Losses(losses));
        Box::pin(async move {
            if let Err(SendError(Job::Append(_, done))) = self.jobs.send(job).await {
                tell(done, Err(StoreFault::Closed));
            }
        })
    }

    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        let id = id.clone();
        Box::pin(async move {
            self.settled().await?;
            match self.spool.get(&id).await? {
                Some(waiting) => Ok(Some(waiting)),
                None => self.reader.get(&id).await,
            }
        })
    }

    fn list(&self, filter: RunFilter, page: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>> {
        Box::pin(self.listed(filter, page))
    }

    fn trim_content(
        &self,
        decision: String,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(async move {
            self.settled().await?;
            self.reader.trim_content(&decision, keep, window).await
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.settled())
    }
}

/// The task.
struct Writer {
    place: Arc<dyn RunsPlace>,
    spool: SqliteRunStore,
    keep_for: Option<Duration>,
    /// The place did not take the last batch.
    is_away: bool,
    /// Something may wait in the spool.
    has_spooled: bool,
    /// The spool refused a record: it has reached its bound.
    is_full: bool,
}

/// What came of bringing a part of the spool over.
#[derive(PartialEq)]
enum Brought {
    Part,
    All,
    Nothing,
}

impl Writer {
    /// Until every sender is gone and the queue is empty.
    async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let (mut retry, mut forget) = (every(RETRY), every(FORGET));
        loop {
            tokio::select! {
                job = queue.recv() => match job {
                    Some(job) => self.take(job, &mut queue).await,
                    None => return,
                },
                _ = retry.tick(), if self.is_away || self.has_spooled => {
                    if self.bring_over().await == Brought::Part {
                        retry.reset_immediately();
                    }
                }
                _ = forget.tick(), if self.keep_for.is_some() => self.forget().await,
            }
        }
    }

    /// One batch: this and what waits behind it.
    async fn take(&mut self, first: Job, queue: &mut mpsc::Receiver<Job>) {
        if matches!(first, Job::Append(..)) {
            tokio::time::sleep(LINGER).await;
        }
        let (mut records, mut acknowledge, mut flushed) = (Vec::new(), Vec::new(), Vec::new());
        let mut next = Some(first);
        while let Some(job) = next.take() {
            match job {
                Job::Append(record, done) => {
                    records.push(*record);
                    acknowledge.push(done);
                }
                Job::Flush(done) => flushed.push(done),
            }
            if records.len() < BATCH {
                next = queue.try_recv().ok();
            }
        }
        if !records.is_empty() {
            self.commit(records, acknowledge).await;
        }
        for done in flushed {
            // Nobody waits any more: nothing to say.
            let _ = done.send(());
        }
    }

    async fn commit(&mut self, mut records: Vec<RunRecord>, acknowledge: Vec<Done>) {
        if !self.is_away {
            match self.place.insert(&mut records).await {
                Ok(mut written) => {
                    for (record, done) in records.iter().zip(acknowledge) {
                        let is_new = written.remove(record.id.as_str());
                        tell(
                            done,
                            is_new.then_some(()).ok_or_else(|| StoreFault::Duplicate(record.id.clone())),
                        );
                    }
                    return;
                }
                Err(fault) => {
                    let place = self.place.name();
                    tracing::error!(%fault, place, "run records wait on this machine: where they are kept is away");
                    self.is_away = true;
                }
            }
        }
        self.spool(records, acknowledge).await;
    }

    async fn spool(&mut self, records: Vec<RunRecord>, acknowledge: Vec<Done>) {
        self.has_spooled = true;
        let mut receipts = Vec::with_capacity(records.len());
        for record in records {
            receipts.push(self.spool.submit(record).await);
        }
        for (receipt, done) in receipts.into_iter().zip(acknowledge) {
            let kept = match receipt {
                Ok(receipt) => receipt.safe().await,
                Err(fault) => Err(fault),
            };
            if let Err(fault @ StoreFault::Full(_)) = &kept
                && !std::mem::replace(&mut self.is_full, true)
            {
                tracing::error!(%fault, "run records are lost from here on");
            }
            tell(done, kept);
        }
    }

    /// Brings a part of the spool to the place.
    async fn bring_over(&mut self) -> Brought {
        match self.brought().await {
            Ok(brought) => {
                if self.is_away {
                    tracing::warn!(place = self.place.name(), "where run records are kept is back");
                }
                if self.is_full {
                    tracing::warn!("run records are kept again");
                }
                self.is_away = false;
                self.is_full = false;
                self.has_spooled = brought == Brought::Part;
                brought
            }
            Err(fault) => {
                tracing::warn!(%fault, "run records still wait on this machine");
                Brought::Nothing
            }
        }
    }

    async fn brought(&self) -> Result<Brought, StoreFault> {
        let mut waiting = self.spool.list(RunFilter::default(), Page { limit: BATCH, before: None }).await?;
        if waiting.is_empty() {
            self.place.reached().await?;
            return Ok(Brought::All);
        }
        self.place.insert(&mut waiting).await?;
        self.spool.remove(waiting.into_iter().map(|record| record.id).collect()).await?;
        Ok(Brought::Part)
    }

    async fn forget(&self) {
        let Some(older) = self.keep_for.filter(|_| !self.is_away) else { return };
        if let Err(fault) = self.place.forget(older).await {
            tracing::warn!(%fault, "old runs were not removed");
        }
    }
}

fn every(period: Duration) -> Interval {
    let mut ticks = interval(period);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use tempfile::TempDir;

    /// A place that is away until it is told otherwise.
    struct Place {
        kept: SqliteRunStore,
        is_away: AtomicBool,
    }

    impl Place {
        fn away() -> Arc<Self> {
            let kept = SqliteRunStore::in_memory().unwrap();
            Arc::new(Self { kept, is_away: AtomicBool::new(true) })
        }

        fn there(&self) -> Result<(), StoreFault> {
            let away = self.is_away.load(Ordering::Relaxed);
            if away { Err(StoreFault::Closed) } else { Ok(()) }
        }
    }

    impl RunsPlace for Place {
        fn name(&self) -> &'static str {
            "a place of this test"
        }

        fn reached(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
            Box::pin(async { self.there() })
        }

        fn insert<'a>(
            &'a self,
            records: &'a mut [RunRecord],
        ) -> BoxFuture<'a, Result<BTreeSet<String>, StoreFault>> {
            Box::pin(async {
                self.there()?;
                for record in records.iter() {
                    self.kept.append(record.clone()).await?;
                }
                Ok(records.iter().map(|record| record.id.to_string()).collect())
            })
        }

        fn get<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreFault>> {
            self.kept.get(id)
        }

        fn list<'a>(
            &'a self,
            filter: &'a RunFilter,
            page: &'a Page,
        ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreFault>> {
            self.kept.list(filter.clone(), page.clone())
        }

        fn trim_content<'a>(
            &'a self,
            decision: &'a str,
            keep: u64,
            window: u64,
        ) -> BoxFuture<'a, Result<u64, StoreFault>> {
            self.kept.trim_content(decision.to_owned(), keep, window)
        }
    }

    fn record(number: usize) -> RunRecord {
        RunRecord { requested_model: format!("{number:01000}").into(), ..RunRecord::default() }
    }

    #[tokio::test(start_paused = true)]
    async fn what_waits_has_a_bound_and_the_newest_are_refused() {
        const MOST: u64 = 256 << 10;
        let folder = TempDir::new().unwrap();
        let spool = SqliteRunStore::open_within(&folder.path().join("waiting.sqlite"), MOST).unwrap();
        let place = Place::away();
        let (writer, reader): (Arc<dyn RunsPlace>, Arc<dyn RunsPlace>) = (place.clone(), place.clone());
        let store = SharedRunStore::new(writer, reader, spool.clone(), None);
        let mut acknowledged = Vec::new();
        let mut refused = 0;
        for number in 0..200 {
            let record = record(number);
            match store.append(record.clone()).await {
                Ok(()) => acknowledged.push(record),
                Err(StoreFault::Full(most)) => refused += usize::from(most == MOST),
                Err(other) => panic!("{other}"),
            }
            assert_eq!(acknowledged.len() + refused, number + 1);
        }
        assert!(acknowledged.len() > 10 && refused > 100, "{} of them wait", acknowledged.len());
        // What came first waits, in order and whole; once it is brought over there is room again.
        place.is_away.store(false, Ordering::Relaxed);
        let all = Page { limit: 1000, before: None };
        while !spool.list(RunFilter::default(), all.clone()).await.unwrap().is_empty() {
            tokio::time::sleep(RETRY).await;
        }
        let late = record(200);
        store.append(late.clone()).await.unwrap();
        acknowledged.push(late);
        acknowledged.reverse();
        assert_eq!(place.kept.list(RunFilter::default(), all).await.unwrap(), acknowledged);
    }
}
