//! Answers that replicas share: looked up in their server, compared with here.
//!
//! Vectors of a partition are read once and then followed, so that a lookup by meaning asks for what is new and compares in
//! this process. It knows no server by name. **Invariant:** what is given was in the server, under its key and in its epoch,
//! when it was taken: what is here only says which one to ask for.

use super::{CACHE_BYTES, MANY};
use chorus_cache::mirror::{Candidate, Row, held};
use chorus_cache::{CANDIDATES, Found, Least, Looked, Mirror, Question, Refused, Worded};
use chorus_signals::language_of;
use chorus_store::shared_answers::{KeyLook, KeyWish, SharedAnswer, SharedRow};
use chorus_store::{AnswersFault, SharedAnswers};
use std::sync::{Arc, Mutex, PoisonError};

/// Pages of a partition that one lookup reads at most; what is left is read by the next ones.
const PAGES: usize = 8;

/// The server, and what is known of its partitions.
pub(super) struct Shared {
    pub(super) store: Arc<dyn SharedAnswers>,
    mirror: Arc<Mutex<Mirror>>,
}

impl Shared {
    pub(super) fn over(store: Arc<dyn SharedAnswers>) -> Self {
        Self { store, mirror: Arc::default() }
    }

    /// The epoch, and the answer under that key.
    pub(super) async fn exact(&self, key: &str, wish: KeyWish) -> Result<(u64, Option<Found>), AnswersFault> {
        let KeyLook { epoch, answer } = self.store.exact(key, wish).await?;
        Ok((epoch, answer.map(|it| found(it, 1.0))))
    }

    /// The nearest answer that no guard refuses, and those that were refused.
    pub(super) async fn alike(&self, question: Question<'_>, touch: bool) -> Result<Looked, AnswersFault> {
        let Question { worded, least, max_age_ms } = question;
        let candidates = match self.store.near(worded, CANDIDATES).await? {
            Some(near) => {
                let near: Vec<(Row, f64)> = near.into_iter().map(|(it, how)| (row(it), how)).collect();
                held(worded, near.iter().map(|(row, how)| (row, *how)), least)
            }
            None => {
                self.follow(&worded.partition).await?;
                self.candidates(worded, least).await
            }
        };
        let mut looked = Looked::default();
        for it in candidates {
            let Candidate { exact, id, similarity, differs } = it;
            if let Some(differs) = differs {
                looked.refused.push(Refused { entry: id, similarity, differs });
                continue;
            }
            let KeyLook { answer, .. } = self.store.exact(&exact, KeyWish { max_age_ms, touch }).await?;
            // Another answer may have taken its place under that key; it is one to the very same request.
            if let Some(answer) = answer {
                looked.found = Some(found(answer, similarity));
                break;
            }
            if max_age_ms.is_none() {
                self.mirror(|mirror| mirror.forget(&worded.partition, &exact));
            }
        }
        Ok(looked)
    }

    /// Reads what is new in a partition, within bounds.
    async fn follow(&self, partition: &str) -> Result<(), AnswersFault> {
        for _ in 0..PAGES {
            let after = self.mirror(|mirror| mirror.after(partition));
            let new = self.store.rows(partition, after).await?;
            let rows = new.rows.into_iter().map(row).collect();
            self.mirror(|mirror| {
                mirror.take_in(partition, new.epoch, new.stored, rows, new.after, CACHE_BYTES);
            });
            if !new.more {
                break;
            }
        }
        Ok(())
    }

    async fn candidates(&self, worded: &Worded, least: Least) -> Vec<Candidate> {
        if self.mirror(|mirror| mirror.len(&worded.partition)) < MANY {
            return self.mirror(|mirror| mirror.alike(worded, least));
        }
        let (mirror, worded) = (Arc::clone(&self.mirror), worded.clone());
        let compare = move || mirror.lock().unwrap_or_else(PoisonError::into_inner).alike(&worded, least);
        tokio::task::spawn_blocking(compare).await.unwrap_or_default()
    }

    fn mirror<T>(&self, act: impl FnOnce(&mut Mirror) -> T) -> T {
        act(&mut self.mirror.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn row(it: SharedRow) -> Row {
    let SharedRow { exact, id, text, vector } = it;
    Row { language: language_of(&text), exact, id, text, vector }
}

fn found(it: SharedAnswer, similarity: f64) -> Found {
    let SharedAnswer { id, labels, body, age_ms } = it;
    Found { id, body: body.into(), model: labels.model, age_ms, similarity }
}

#[cfg(test)]
mod tests {
    use super::super::{AnswerCache, Put};
    use super::*;
    use chorus_cache::{Answers, Bounds, Filter, Labels, Listed, NewAnswer, Tally};
    use chorus_spec::{CacheEviction, CacheStore};
    use chorus_store::shared_answers::{SharedPut, SharedRows};
    use futures_util::FutureExt as _;
    use futures_util::future::BoxFuture;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

    const FIFO: CacheEviction = CacheEviction::Fifo;
    const BOUNDS: Bounds = Bounds { entries: 9, bytes: 1 << 20, eviction: FIFO };

    /// A server in memory, which can be away; its rows stay when their answers are gone.
    #[derive(Default)]
    struct Server {
        answers: Mutex<Answers>,
        rows: Mutex<Vec<(String, SharedRow)>>,
        epoch: AtomicU64,
        told: AtomicU64,
        away: AtomicBool,
    }

    impl Server {
        fn say<T: Send + 'static>(&self, said: impl FnOnce() -> T) -> BoxFuture<'_, Result<T, AnswersFault>> {
            let away = self.away.load(Ordering::Relaxed);
            let said = if away { Err(AnswersFault("it could not be reached")) } else { Ok(said()) };
            std::future::ready(said).boxed()
        }

        fn lose(&self, id: &str) {
            let only = Filter { id: Some(id.to_owned()), ..Filter::default() };
            self.answers.lock().unwrap().invalidate(&only, 0, false);
        }
    }

    impl SharedAnswers for Server {
        fn epoch(&self) -> BoxFuture<'_, Result<u64, AnswersFault>> {
            self.say(|| self.epoch.load(Ordering::Relaxed))
        }

        fn exact<'a>(&'a self, key: &'a str, wish: KeyWish) -> BoxFuture<'a, Result<KeyLook, AnswersFault>> {
            self.say(|| {
                let found = self.answers.lock().unwrap().exact(key, 0, wish.max_age_ms);
                let labels = |model| Labels { model, ..Labels::default() };
                let answer = found.map(|it| SharedAnswer {
                    id: it.id,
                    labels: labels(it.model),
                    body: it.body.to_vec(),
                    age_ms: it.age_ms,
                });
                KeyLook { epoch: self.epoch.load(Ordering::Relaxed), answer }
            })
        }

        fn rows<'a>(
            &'a self,
            partition: &'a str,
            after: u64,
        ) -> BoxFuture<'a, Result<SharedRows, AnswersFault>> {
            self.say(|| {
                let all = self.rows.lock().unwrap();
                let mine = all.iter().enumerate().filter(|(_, (of, _))| of == partition);
                let stored = mine.clone().count();
                let new = mine.filter(|(at, _)| *at as u64 >= after).map(|(_, (_, row))| row.clone());
                let rows: Vec<SharedRow> = new.collect();
                self.told.fetch_add(rows.len() as u64, Ordering::Relaxed);
                let (epoch, after) = (self.epoch.load(Ordering::Relaxed), all.len() as u64);
                SharedRows { epoch, stored, rows, after, more: false }
            })
        }

        fn put(&self, new: NewAnswer, _: u64, _: Bounds) -> BoxFuture<'_, Result<SharedPut, AnswersFault>> {
            self.say(|| {
                if let Some(Worded { partition, text, vector, .. }) = new.worded.clone() {
                    let row = SharedRow { exact: new.exact.clone(), id: new.id.clone(), text, vector };
                    self.rows.lock().unwrap().push((partition, row));
                }
                self.answers.lock().unwrap().put(new, BOUNDS, 0);
                SharedPut::Stored
            })
        }

        fn list<'a>(
            &'a self,
            filter: &'a Filter,
            most: usize,
        ) -> BoxFuture<'a, Result<Vec<Listed>, AnswersFault>> {
            self.say(|| self.answers.lock().unwrap().list(filter, 0, most))
        }

        fn invalidate<'a>(
            &'a self,
            filter: &'a Filter,
            dry_run: bool,
        ) -> BoxFuture<'a, Result<usize, AnswersFault>> {
            self.say(|| self.answers.lock().unwrap().invalidate(filter, 0, dry_run).len())
        }

        fn flush(&self) -> BoxFuture<'_, Result<usize, AnswersFault>> {
            self.say(|| {
                self.epoch.fetch_add(1, Ordering::Relaxed);
                self.answers.lock().unwrap().invalidate(&Filter::default(), 0, false).len()
            })
        }

        fn tally(&self) -> BoxFuture<'_, Result<(u64, Tally), AnswersFault>> {
            self.say(|| (self.epoch.load(Ordering::Relaxed), self.answers.lock().unwrap().tally()))
        }
    }

    fn worded(partition: &str, text: &str, vector: [f32; 2]) -> Worded {
        let (partition, text) = (partition.to_owned(), text.to_owned());
        Worded { partition, text, language: Some("en"), vector: vector.to_vec() }
    }

    fn answer(id: &str, worded: Worded) -> NewAnswer {
        NewAnswer {
            id: id.to_owned(),
            exact: format!("key of {id}"),
            worded: Some(worded),
            labels: Labels { model: "m".to_owned(), ..Labels::default() },
            body: Arc::from(id.as_bytes()),
            ttl_ms: 1000,
        }
    }

    async fn alike(cache: &AnswerCache, partition: &str) -> (Option<String>, usize) {
        let asked = worded(partition, "How do I enable guest access?", [1.0, 0.0]);
        let question = Question { worded: &asked, least: Least::of(0.8, |it| it), max_age_ms: None };
        let looked = cache.alike(question, FIFO).await;
        (looked.found.map(|it| it.id), looked.refused.len())
    }

    #[tokio::test]
    async fn f01_a_replica_finds_by_meaning_what_another_stored_in_its_own_partition_alone() {
        let server = Arc::new(Server::default());
        let [one, other] = [0, 1].map(|_| AnswerCache::shared(Arc::clone(&server) as Arc<dyn SharedAnswers>));
        let store = CacheStore::default();
        let epoch = one.epoch().await.unwrap();
        let opposite = worded("t1", "How do I disable guest access?", [1.0, 0.0]);
        let same = worded("t1", "How can I enable guest access?", [0.96, 0.28]);
        for new in [answer("opposite", opposite), answer("same", same)] {
            assert_eq!(one.put(new, epoch, &store).await, Put::Stored);
        }
        assert_eq!(alike(&other, "t1").await, (Some("same".to_owned()), 1));
        assert_eq!(alike(&other, "t2").await, (None, 0), "another tenant's partition");
        assert_eq!(alike(&other, "t1").await.1, 1);
        assert_eq!(server.told.load(Ordering::Relaxed), 2, "rows are read once");
        assert_eq!(other.stats().await.unwrap().refused_neighbours, 2);
    }

    #[tokio::test]
    async fn a_row_whose_answer_is_gone_is_passed_over_and_forgotten() {
        let server = Arc::new(Server::default());
        let cache = AnswerCache::shared(Arc::clone(&server) as Arc<dyn SharedAnswers>);
        for (id, vector) in [("near", [1.0, 0.0]), ("next", [0.96, 0.28])] {
            let new = answer(id, worded("p", "How can I enable guest access?", vector));
            cache.put(new, 0, &CacheStore::default()).await;
        }
        assert_eq!(alike(&cache, "p").await.0.as_deref(), Some("near"));
        server.lose("near");
        assert_eq!(alike(&cache, "p").await.0.as_deref(), Some("next"));
        server.lose("next");
        assert_eq!(alike(&cache, "p").await.0, None);
    }

    #[tokio::test]
    async fn a_server_that_is_away_is_a_miss_that_is_counted_and_stores_nothing() {
        let server = Arc::new(Server::default());
        let cache = AnswerCache::shared(Arc::clone(&server) as Arc<dyn SharedAnswers>);
        let new = || answer("a", worded("p", "How can I enable guest access?", [1.0, 0.0]));
        cache.put(new(), 0, &CacheStore::default()).await;
        server.away.store(true, Ordering::Relaxed);
        let exact = cache.exact("key of a", None, FIFO).await;
        assert!(exact.epoch.is_none() && exact.found.is_none());
        assert_eq!(alike(&cache, "p").await, (None, 0), "though its row is known here");
        assert_eq!(cache.put(new(), 0, &CacheStore::default()).await, Put::Unanswered);
        assert!(cache.stats().await.is_err() && cache.flush().await.is_err());
        assert_eq!(cache.journal().len(), 0, "nothing was taken out");
        server.away.store(false, Ordering::Relaxed);
        assert_eq!(cache.stats().await.unwrap().unanswered, 3);
        assert!(cache.exact("key of a", None, FIFO).await.found.is_some());
    }
}
