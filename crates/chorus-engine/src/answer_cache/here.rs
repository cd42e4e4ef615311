//! Answers in this process: gone when it stops.
//!
//! It knows no server. **Invariant:** an answer whose request was looked up in an earlier epoch is not kept, whatever runs at
//! the same time.

use super::{MANY, Put};
use chorus_cache::{Answers, Bounds, Filter, Found, Listed, Looked, NewAnswer, Question, Tally};
use chorus_spec::CacheEviction;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Instant;

/// The answers, their clock and their epoch.
pub(super) struct Here {
    answers: Arc<RwLock<Answers>>,
    started: Instant,
    /// Changes only while the answers are locked.
    epoch: AtomicU64,
}

impl Default for Here {
    fn default() -> Self {
        Self { answers: Arc::default(), started: Instant::now(), epoch: AtomicU64::new(1) }
    }
}

impl Here {
    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Relaxed)
    }

    pub(super) fn tally(&self) -> Tally {
        self.read(Answers::tally)
    }

    pub(super) fn list(&self, filter: &Filter, most: usize) -> Vec<Listed> {
        self.read(|answers| answers.list(filter, self.now(), most))
    }

    pub(super) fn invalidate(&self, filter: &Filter, dry_run: bool) -> usize {
        self.write(|answers| answers.invalidate(filter, self.now(), dry_run).len())
    }

    pub(super) fn flush(&self) -> usize {
        self.write(|answers| {
            self.epoch.fetch_add(1, Ordering::Relaxed);
            answers.invalidate(&Filter::default(), self.now(), false).len()
        })
    }

    pub(super) fn exact(&self, key: &str, max_age_ms: Option<u64>, eviction: CacheEviction) -> Option<Found> {
        let found = self.read(|answers| answers.exact(key, self.now(), max_age_ms))?;
        self.write(|answers| answers.used(&found.id, eviction));
        Some(found)
    }

    pub(super) async fn alike(&self, question: Question<'_>, eviction: CacheEviction) -> Looked {
        let now = self.now();
        let looked = if self.read(|answers| answers.neighbours(&question.worded.partition)) < MANY {
            self.read(|answers| answers.alike(question, now))
        } else {
            let (answers, worded) = (Arc::clone(&self.answers), question.worded.clone());
            let Question { least, max_age_ms, .. } = question;
            let compare = move || {
                let question = Question { worded: &worded, least, max_age_ms };
                answers.read().unwrap_or_else(PoisonError::into_inner).alike(question, now)
            };
            tokio::task::spawn_blocking(compare).await.unwrap_or_default()
        };
        if let Some(found) = &looked.found {
            self.write(|answers| answers.used(&found.id, eviction));
        }
        looked
    }

    pub(super) fn put(&self, new: NewAnswer, epoch: u64, bounds: Bounds) -> Put {
        self.write(|answers| {
            if epoch != self.epoch() {
                return Put::OfAnEarlierEpoch;
            }
            if answers.put(new, bounds, self.now()) { Put::Stored } else { Put::TooLarge }
        })
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
    use chorus_cache::Labels;

    #[test]
    fn an_answer_of_an_earlier_epoch_is_not_kept() {
        let here = Here::default();
        let bounds = Bounds { entries: 9, bytes: 1 << 20, eviction: CacheEviction::Fifo };
        let new = || NewAnswer {
            id: "a".to_owned(),
            exact: "k".to_owned(),
            worded: None,
            labels: Labels::default(),
            body: Arc::from(&b"{}"[..]),
            ttl_ms: 60_000,
        };
        let looked_up_in = here.epoch();
        assert_eq!(here.put(new(), looked_up_in, bounds), Put::Stored);
        assert_eq!(here.flush(), 1);
        assert_eq!(here.put(new(), looked_up_in, bounds), Put::OfAnEarlierEpoch);
        assert!(here.exact("k", None, CacheEviction::Fifo).is_none());
    }
}
