//! A cache of answers, kept here or in a server that replicas share; with an epoch, and a journal of what was taken out.
//!
//! It knows no route. **Invariants:** an answer that was stored under an earlier epoch is never found; and a server that cannot
//! be asked is a miss, counted, and no fault of a request.

mod caches;
mod here;
mod shared;

pub use caches::CachePlaceFault;
pub(crate) use caches::Caches;
pub use chorus_cache::Filter as CacheFilter;

use chorus_cache::{Bounds, Filter, Found, Listed, Looked, NewAnswer, Question, Tally};
use chorus_spec::{CacheEviction, CacheStore, Digest};
use chorus_store::shared_answers::{KeyWish, SharedPut};
use chorus_store::{AnswersFault, SharedAnswers};
use here::Here;
use shared::Shared;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// Most bytes of all answers together (`cache_bytes`).
pub const CACHE_BYTES: usize = 256 << 20;

/// Most bytes of one answer (`cache_entry_bytes`); a longer one is not stored.
pub const CACHE_ENTRY_BYTES: usize = 1 << 20;

/// Latest rows of the journal that are kept (`cache_audit_rows`).
pub const CACHE_AUDIT_ROWS: usize = 1_000;

/// Most answers that one listing shows (`cache_list_rows`).
pub const CACHE_LIST_ROWS: usize = 1_000;

/// From so many neighbours on, they are compared off the runtime's own threads.
const MANY: usize = 5_000;

/// The answers of a process, or those that it shares with its replicas.
#[derive(Default)]
pub struct AnswerCache {
    kept: Kept,
    counts: Counts,
    journal: Mutex<Journal>,
}

/// Where the answers are.
enum Kept {
    Here(Box<Here>),
    Shared(Shared),
}

impl Default for Kept {
    fn default() -> Self {
        Self::Here(Box::default())
    }
}

#[derive(Default)]
struct Counts {
    exact: AtomicU64,
    semantic: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    skipped: AtomicU64,
    unanswered: AtomicU64,
}

/// What became of requests, and of answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
pub struct CacheStats {
    /// Requests that were given the answer to the very same one.
    pub exact_hits: u64,
    /// Requests that were given the answer to one of the same meaning.
    pub semantic_hits: u64,
    /// Requests for which there was no answer.
    pub misses: u64,
    /// Near answers that a guard refused.
    pub refused_neighbours: u64,
    /// Requests that were not looked up.
    pub skipped: u64,
    /// Questions of requests that the server which keeps the answers did not answer.
    pub unanswered: u64,
    /// The epoch; each flush begins another. From 1 in a process, of the server's clock in a server.
    pub epoch: u64,
    /// Of the answers, those of all replicas.
    #[serde(flatten)]
    pub answers: Tally,
}

/// What a lookup came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Exact,
    Semantic,
    Miss,
    Skipped,
}

/// A row of the journal. Each has the digest of the one before it in its own, so that none can be taken out unseen.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct CacheAct {
    /// From 1.
    pub number: u64,
    /// Seconds since 1970.
    pub at: u64,
    /// `invalidate` or `flush`.
    pub act: &'static str,
    /// Answers that were taken out.
    pub removed: usize,
    /// Over the row before it, and this one.
    pub digest: String,
}

#[derive(Default)]
struct Journal {
    rows: VecDeque<CacheAct>,
    numbers: u64,
    last: String,
}

/// What looking for the very same request came to.
#[derive(Debug, Default)]
pub(crate) struct Exact {
    /// The epoch in which its answer would be stored; `None` where it cannot be stored.
    pub(crate) epoch: Option<u64>,
    pub(crate) found: Option<Found>,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Put {
    Stored,
    OfAnEarlierEpoch,
    TooLarge,
    Unanswered,
}

impl AnswerCache {
    /// One whose answers a server keeps.
    pub(crate) fn shared(store: Arc<dyn SharedAnswers>) -> Self {
        Self { kept: Kept::Shared(Shared::over(store)), ..Self::default() }
    }

    /// What is counted: requests since the start, answers of all replicas.
    ///
    /// # Errors
    /// [`AnswersFault`].
    pub async fn stats(&self) -> Result<CacheStats, AnswersFault> {
        let (epoch, answers) = match &self.kept {
            Kept::Here(here) => (here.epoch(), here.tally()),
            Kept::Shared(shared) => shared.store.tally().await?,
        };
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        Ok(CacheStats {
            exact_hits: count(&self.counts.exact),
            semantic_hits: count(&self.counts.semantic),
            misses: count(&self.counts.misses),
            refused_neighbours: count(&self.counts.refused),
            skipped: count(&self.counts.skipped),
            unanswered: count(&self.counts.unanswered),
            epoch,
            answers,
        })
    }

    /// The answers that a filter names, newest first, at most [`CACHE_LIST_ROWS`].
    ///
    /// # Errors
    /// [`AnswersFault`].
    pub async fn list(&self, filter: &Filter) -> Result<Vec<Listed>, AnswersFault> {
        match &self.kept {
            Kept::Here(here) => Ok(here.list(filter, CACHE_LIST_ROWS)),
            Kept::Shared(shared) => shared.store.list(filter, CACHE_LIST_ROWS).await,
        }
    }

    /// Takes out the answers that a filter names, and returns how many; a dry run only counts them.
    ///
    /// # Errors
    /// [`AnswersFault`]; some of them may be gone then.
    pub async fn invalidate(&self, filter: &Filter, dry_run: bool) -> Result<usize, AnswersFault> {
        let named = match &self.kept {
            Kept::Here(here) => here.invalidate(filter, dry_run),
            Kept::Shared(shared) => shared.store.invalidate(filter, dry_run).await?,
        };
        if !dry_run {
            self.note("invalidate", named);
        }
        Ok(named)
    }

    /// Begins another epoch: takes out everything, and what is being stored now will not be found. Returns how many
    /// answers there were.
    ///
    /// # Errors
    /// [`AnswersFault`].
    pub async fn flush(&self) -> Result<usize, AnswersFault> {
        let removed = match &self.kept {
            Kept::Here(here) => here.flush(),
            Kept::Shared(shared) => shared.store.flush().await?,
        };
        self.note("flush", removed);
        Ok(removed)
    }

    /// What was taken out by hand, latest last.
    #[must_use]
    pub fn journal(&self) -> Vec<CacheAct> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.rows.iter().cloned().collect()
    }

    /// The epoch in which an answer would be stored now; `None` where it cannot be stored.
    pub(crate) async fn epoch(&self) -> Option<u64> {
        match &self.kept {
            Kept::Here(here) => Some(here.epoch()),
            Kept::Shared(shared) => self.answered(shared.store.epoch().await),
        }
    }

    /// The answer to the very same request.
    pub(crate) async fn exact(&self, key: &str, max_age_ms: Option<u64>, eviction: CacheEviction) -> Exact {
        match &self.kept {
            Kept::Here(here) => {
                Exact { epoch: Some(here.epoch()), found: here.exact(key, max_age_ms, eviction) }
            }
            Kept::Shared(shared) => {
                let wish = KeyWish { max_age_ms, touch: eviction == CacheEviction::Lru };
                let looked = self.answered(shared.exact(key, wish).await);
                looked.map(|(epoch, found)| Exact { epoch: Some(epoch), found }).unwrap_or_default()
            }
        }
    }

    /// The nearest answer to a request of the same meaning that no guard refuses.
    pub(crate) async fn alike(&self, question: Question<'_>, eviction: CacheEviction) -> Looked {
        let looked = match &self.kept {
            Kept::Here(here) => here.alike(question, eviction).await,
            Kept::Shared(shared) => {
                let touch = eviction == CacheEviction::Lru;
                self.answered(shared.alike(question, touch).await).unwrap_or_default()
            }
        };
        self.counts.refused.fetch_add(looked.refused.len() as u64, Ordering::Relaxed);
        looked
    }

    /// Keeps an answer whose request was looked up in that epoch.
    pub(crate) async fn put(&self, new: NewAnswer, epoch: u64, store: &CacheStore) -> Put {
        let bounds = Bounds { entries: store.max_entries, bytes: CACHE_BYTES, eviction: store.eviction };
        if new.body.len() > CACHE_ENTRY_BYTES {
            return Put::TooLarge;
        }
        match &self.kept {
            Kept::Here(here) => here.put(new, epoch, bounds),
            Kept::Shared(shared) => match self.answered(shared.store.put(new, epoch, bounds).await) {
                Some(SharedPut::Stored) => Put::Stored,
                Some(SharedPut::OfAnEarlierEpoch) => Put::OfAnEarlierEpoch,
                Some(SharedPut::TooLarge) => Put::TooLarge,
                None => Put::Unanswered,
            },
        }
    }

    /// What the server said; where it said nothing, that is counted, and its log line stands already.
    fn answered<T>(&self, said: Result<T, AnswersFault>) -> Option<T> {
        if said.is_err() {
            self.counts.unanswered.fetch_add(1, Ordering::Relaxed);
        }
        said.ok()
    }

    pub(crate) fn count(&self, outcome: Outcome) {
        let count = match outcome {
            Outcome::Exact => &self.counts.exact,
            Outcome::Semantic => &self.counts.semantic,
            Outcome::Miss => &self.counts.misses,
            Outcome::Skipped => &self.counts.skipped,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }

    fn note(&self, act: &'static str, removed: usize) {
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.numbers += 1;
        let number = journal.numbers;
        let digest =
            Digest::of(format!("{} {number} {at} {act} {removed}", journal.last).as_bytes()).to_string();
        journal.last.clone_from(&digest);
        journal.rows.push_back(CacheAct { number, at, act, removed, digest });
        if journal.rows.len() > CACHE_AUDIT_ROWS {
            journal.rows.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn f09_the_journal_is_a_chain() {
        let cache = AnswerCache::default();
        assert_eq!(cache.invalidate(&Filter::default(), true).await, Ok(0));
        assert_eq!(cache.journal().len(), 0, "a dry run is none");
        cache.invalidate(&Filter::default(), false).await.unwrap();
        cache.flush().await.unwrap();
        let [first, second] = cache.journal().try_into().unwrap();
        assert_eq!((first.act, second.act, cache.epoch().await), ("invalidate", "flush", Some(2)));
        let of = |row: &CacheAct, before: &str| {
            Digest::of(format!("{before} {} {} {} {}", row.number, row.at, row.act, row.removed).as_bytes())
                .to_string()
        };
        assert_eq!(first.digest, of(&first, ""));
        assert_eq!(second.digest, of(&second, &first.digest));
    }
}
