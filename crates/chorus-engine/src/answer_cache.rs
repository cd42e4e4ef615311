//! The process's cache of answers: one for all configurations, with a clock, an epoch, and a journal of what was taken out.
//!
//! It knows no route. **Invariant:** an answer that was stored under an earlier epoch is never found.

pub use chorus_cache::Filter as CacheFilter;

use chorus_cache::{Answers, Bounds, Filter, Found, Listed, Looked, NewAnswer, Question, Tally};
use chorus_spec::{CacheEviction, CacheStore, Digest};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Most bytes of all answers together (`cache_bytes`).
pub const CACHE_BYTES: usize = 256 << 20;

/// Most bytes of one answer (`cache_entry_bytes`); a longer one is not stored.
pub const CACHE_ENTRY_BYTES: usize = 1 << 20;

/// Latest rows of the journal that are kept (`cache_audit_rows`).
pub const CACHE_AUDIT_ROWS: usize = 1_000;

/// Most answers that one listing shows (`cache_list_rows`).
pub const CACHE_LIST_ROWS: usize = 1_000;

/// The answers of a process.
pub struct AnswerCache {
    answers: RwLock<Answers>,
    started: Instant,
    epoch: AtomicU64,
    counts: Counts,
    journal: Mutex<Journal>,
}

#[derive(Default)]
struct Counts {
    exact: AtomicU64,
    semantic: AtomicU64,
    misses: AtomicU64,
    refused: AtomicU64,
    skipped: AtomicU64,
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
    /// The epoch, from 1; each flush begins another.
    pub epoch: u64,
    /// Of the answers.
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

impl Default for AnswerCache {
    fn default() -> Self {
        Self {
            answers: RwLock::default(),
            started: Instant::now(),
            epoch: AtomicU64::new(1),
            counts: Counts::default(),
            journal: Mutex::default(),
        }
    }
}

impl AnswerCache {
    /// What is counted since the start.
    #[must_use]
    pub fn stats(&self) -> CacheStats {
        let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
        CacheStats {
            exact_hits: count(&self.counts.exact),
            semantic_hits: count(&self.counts.semantic),
            misses: count(&self.counts.misses),
            refused_neighbours: count(&self.counts.refused),
            skipped: count(&self.counts.skipped),
            epoch: self.epoch(),
            answers: self.read(Answers::tally),
        }
    }

    /// The answers that a filter names, newest first, at most [`CACHE_LIST_ROWS`].
    #[must_use]
    pub fn list(&self, filter: &Filter) -> Vec<Listed> {
        self.read(|answers| answers.list(filter, self.now(), CACHE_LIST_ROWS))
    }

    /// Takes out the answers that a filter names, and returns how many; a dry run only counts them.
    pub fn invalidate(&self, filter: &Filter, dry_run: bool) -> usize {
        let named = self.write(|answers| answers.invalidate(filter, self.now(), dry_run).len());
        if !dry_run {
            self.note("invalidate", named);
        }
        named
    }

    /// Begins another epoch: takes out everything, and what is being stored now will not be found. Returns how many
    /// answers there were.
    pub fn flush(&self) -> usize {
        self.epoch.fetch_add(1, Ordering::Relaxed);
        let removed = self.write(|answers| answers.invalidate(&Filter::default(), self.now(), false).len());
        self.note("flush", removed);
        removed
    }

    /// What was taken out by hand, latest last.
    #[must_use]
    pub fn journal(&self) -> Vec<CacheAct> {
        let journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        journal.rows.iter().cloned().collect()
    }

    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(crate) fn exact(&self, key: &str, max_age_ms: Option<u64>, eviction: CacheEviction) -> Option<Found> {
        let found = self.read(|answers| answers.exact(key, self.now(), max_age_ms))?;
        self.write(|answers| answers.used(&found.id, eviction));
        Some(found)
    }

    pub(crate) fn alike(&self, question: Question<'_>, eviction: CacheEviction) -> Looked {
        let looked = self.read(|answers| answers.alike(question, self.now()));
        self.counts.refused.fetch_add(looked.refused.len() as u64, Ordering::Relaxed);
        if let Some(found) = &looked.found {
            self.write(|answers| answers.used(&found.id, eviction));
        }
        looked
    }

    /// How many answers a lookup by meaning would compare with.
    pub(crate) fn neighbours(&self, partition: &str) -> usize {
        self.read(|answers| answers.neighbours(partition))
    }

    /// Whether the answer fits.
    pub(crate) fn put(&self, new: NewAnswer, store: &CacheStore) -> bool {
        let bounds = Bounds { entries: store.max_entries, bytes: CACHE_BYTES, eviction: store.eviction };
        new.body.len() <= CACHE_ENTRY_BYTES && self.write(|answers| answers.put(new, bounds, self.now()))
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

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn read<T>(&self, look: impl FnOnce(&Answers) -> T) -> T {
        look(&self.answers.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn write<T>(&self, change: impl FnOnce(&mut Answers) -> T) -> T {
        change(&mut self.answers.write().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f09_the_journal_is_a_chain() {
        let cache = AnswerCache::default();
        assert_eq!((cache.invalidate(&Filter::default(), true), cache.journal().len()), (0, 0));
        cache.invalidate(&Filter::default(), false);
        cache.flush();
        let [first, second] = cache.journal().try_into().unwrap();
        assert_eq!((first.act, second.act, cache.epoch()), ("invalidate", "flush", 2));
        let of = |row: &CacheAct, before: &str| {
            Digest::of(format!("{before} {} {} {} {}", row.number, row.at, row.act, row.removed).as_bytes())
                .to_string()
        };
        assert_eq!(first.digest, of(&first, ""));
        assert_eq!(second.digest, of(&second, &first.digest));
    }
}
