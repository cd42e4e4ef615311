//! Run records of several replicas in one database, written by one task of each.
//!
//! The task takes what waits in the queue and writes it in one statement. While the database is away, or does not do it,
//! records are kept in a file of this machine, the spool, and brought over once it does. So a record that was acknowledged is
//! safe in one of the two. What waits in the spool is read too, by the replica that wrote it.
//!
//! **Invariant:** nothing is acknowledged before the database or the spool has committed it; nothing leaves the spool before
//! the database has it; and a record that both have is one record.

use super::runs::PostgresRuns;
use super::{PostgresFault, PostgresPlace};
use crate::store::{Done, tell};
use crate::{Page, Receipt, RunFilter, RunId, RunRecord, RunStore, SqliteRunStore, StoreFault};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Interval, MissedTickBehavior, interval};

/// Most records that wait to be written; further ones wait at [`RunStore::submit`].
const QUEUE: usize = 1024;
/// Most records of one transaction.
const BATCH: usize = 256;
/// How long the first record of a transaction waits for others.
const LINGER: Duration = Duration::from_millis(5);
/// How often a database that was away is tried, and the spool brought over.
const RETRY: Duration = Duration::from_secs(5);
/// How often old runs are removed, where they are.
const FORGET: Duration = Duration::from_secs(600);

enum Job {
    Append(Box<RunRecord>, Done),
    Flush(oneshot::Sender<()>),
}

/// Run records in one database. Cloning shares the queue; the task ends with the last clone, once the queue is written.
#[derive(Clone)]
pub struct PostgresRunStore {
    jobs: mpsc::Sender<Job>,
    reader: Arc<PostgresRuns>,
    spool: SqliteRunStore,
}

impl PostgresRunStore {
    /// Records at that place, by a task of this runtime; `spool` keeps what the place does not take at present, and
    /// `keep_for` is how long runs are kept (without it, for good).
    ///
    /// # Errors
    /// [`PostgresFault::Tls`].
    pub fn new(
        place: &PostgresPlace,
        spool: SqliteRunStore,
        keep_for: Option<Duration>,
    ) -> Result<Self, PostgresFault> {
        let (jobs, queue) = mpsc::channel(QUEUE);
        let runs = PostgresRuns::new(place)?;
        // What an earlier process left in the spool is brought over first thing.
        let writer = Writer { runs, spool: spool.clone(), keep_for, is_away: false, has_spooled: true };
        tokio::spawn(writer.run(queue));
        Ok(Self { jobs, reader: Arc::new(PostgresRuns::new(place)?), spool })
    }

    /// Everything that was submitted before is in the database or the spool.
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

impl RunStore for PostgresRunStore {
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        Box::pin(async move {
            let (done, receipt) = oneshot::channel();
            let job = Job::Append(Box::new(record), done);
            self.jobs.send(job).await.map_err(|_| StoreFault::Closed)?;
            Ok(Receipt(receipt))
        })
    }

    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        let id = id.clone();
        Box::pin(async move {
            self.settled().await?;
            match self.spool.get(&id).await? {
                Some(waiting) => Ok(Some(waiting)),
                None => Ok(self.reader.get(&id).await?),
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
            Ok(self.reader.trim_content(&decision, keep, window).await?)
        })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(self.settled())
    }
}

/// The task.
struct Writer {
    runs: PostgresRuns,
    spool: SqliteRunStore,
    keep_for: Option<Duration>,
    /// The database did not take the last batch.
    is_away: bool,
    /// Something may wait in the spool.
    has_spooled: bool,
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
            match self.runs.insert(&mut records).await {
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
                    tracing::error!(%fault, "the database of run records is away: they wait on this machine");
                    self.is_away = true;
                }
            }
        }
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
            tell(done, kept);
        }
    }

    /// Brings a part of the spool to the database.
    async fn bring_over(&mut self) -> Brought {
        match self.brought().await {
            Ok(brought) => {
                if self.is_away {
                    tracing::warn!("the database of run records is back");
                }
                self.is_away = false;
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
            self.runs.reached().await?;
            return Ok(Brought::All);
        }
        self.runs.insert(&mut waiting).await?;
        self.spool.remove(waiting.into_iter().map(|record| record.id).collect()).await?;
        Ok(Brought::Part)
    }

    async fn forget(&self) {
        let Some(older) = self.keep_for.filter(|_| !self.is_away) else { return };
        if let Err(fault) = self.runs.forget(older).await {
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
    use crate::PostgresTls;

    /// A place where nobody listens.
    async fn nowhere() -> PostgresPlace {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        PostgresPlace {
            host: "127.0.0.1".to_owned(),
            port: listener.local_addr().unwrap().port(),
            database: "chorus".to_owned(),
            user: "router".to_owned(),
            password: Some("hunter2".to_owned()),
            tls: PostgresTls::Off,
        }
    }

    #[tokio::test]
    async fn while_the_database_is_away_records_are_safe_in_the_spool() {
        let spool = SqliteRunStore::in_memory().unwrap();
        let store = PostgresRunStore::new(&nowhere().await, spool.clone(), None).unwrap();
        let records: Vec<RunRecord> = (0..3).map(|_| RunRecord::default()).collect();
        for record in &records {
            store.append(record.clone()).await.unwrap();
        }
        assert_eq!(store.get(&records[1].id).await.unwrap(), Some(records[1].clone()));
        assert_eq!(spool.list(RunFilter::default(), Page::default()).await.unwrap().len(), 3);
        // A part of a list would be a wrong answer.
        let fault = store.list(RunFilter::default(), Page::default()).await.unwrap_err();
        assert!(matches!(&fault, StoreFault::Database(PostgresFault::Unreachable)), "{fault}");
        assert!(!fault.to_string().contains("127.0.0.1"), "{fault}");
        assert!(store.append(records[0].clone()).await.is_err(), "the same id twice");
    }
}
