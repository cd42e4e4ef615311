//! Answers in a Qdrant server.
//!
//! An answer is a point of one collection, found by its key; what a question of like meaning is compared with is a point of
//! another, found by its vector. It knows no address. There are no steps of several questions, no clock and no time to live on
//! that side. So ages are told by the clocks of replicas; what is over is taken out when something is stored; what was stored
//! and taken out is counted by each replica for itself; and a bound of entries may be passed by as many answers as are stored
//! at once.
//!
//! **Invariants:** as of the module above: the epoch is a point too, read together with the answer.

use super::{AnswersFault, KeyLook, KeyWish, Near, SharedAnswer, SharedAnswers, SharedPut, SharedRow};
use crate::qdrant::{self, Collection, Field, Point, QdrantFault, QdrantLink, all, below, has_id, is};
use crate::redis_line::ttl_ms;
use crate::rest::Rest;
use chorus_cache::{Bounds, Filter, Labels, Listed, NewAnswer, Tally, Worded};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

const ANSWERS: &[Field] = &[("kind", qdrant::keyword), ("queue", qdrant::integer), ("ends", qdrant::integer)];
const ROWS: &[Field] = &[("partition", qdrant::tenant), ("kind", qdrant::keyword), ("ends", qdrant::integer)];

/// Most answers that are looked through for a listing, for taking out, and for how large all are.
const READ_MOST: usize = 100_000;

/// Points that are deleted by one question.
const PAGE: usize = 256;

/// The vector of a point that is not looked for by one.
const NO_VECTOR: [f32; 1] = [1.0];

/// The answers. The collections are made when the first one is stored.
pub struct QdrantAnswers {
    answers: Collection,
    rows: Collection,
    rest: Rest,
    /// What this process stored and took out; entries and bytes are the server's.
    counted: Mutex<Tally>,
}

impl fmt::Debug for QdrantAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QdrantAnswers").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl QdrantAnswers {
    /// In that collection, and in one beside it whose name ends in `_answers`; nothing is sent yet.
    #[must_use]
    pub fn new(link: Arc<dyn QdrantLink>, collection: &str) -> Self {
        Self {
            answers: Collection::of(Arc::clone(&link), format!("{collection}_answers"), ANSWERS),
            rows: Collection::of(link, collection.to_owned(), ROWS),
            rest: Rest::default(),
            counted: Mutex::default(),
        }
    }

    /// Has the server do that, unless it rests.
    async fn ask<T>(&self, asked: impl Future<Output = Result<T, QdrantFault>>) -> Result<T, AnswersFault> {
        if self.rest.now().is_some() {
            return Err(AnswersFault("it failed a moment ago"));
        }
        asked.await.map_err(|fault| {
            self.rest.saw(Some(FAILED));
            tracing::warn!(%fault, "the server of cached answers failed; requests are answered without it");
            AnswersFault(FAILED)
        })
    }

    async fn epoch_now(&self) -> Result<u64, AnswersFault> {
        let found = self.ask(self.answers.scroll(by_id(&[epoch_id()]), 1, false)).await?;
        self.epoch_of(&found).await
    }

    /// The epoch among these points; where there is none, one begins.
    async fn epoch_of(&self, found: &[Point]) -> Result<u64, AnswersFault> {
        let epoch_id = epoch_id();
        match found.iter().find(|it| it.id == epoch_id).and_then(|it| it.number("epoch")) {
            Some(epoch) => Ok(epoch),
            None => self.begin(now_ms()).await,
        }
    }

    async fn begin(&self, epoch: u64) -> Result<u64, AnswersFault> {
        let payload = json!({"kind": "epoch", "epoch": epoch});
        let point = json!({"id": epoch_id(), "vector": NO_VECTOR, "payload": payload});
        self.ask(self.answers.upsert(vec![point], NO_VECTOR.len())).await?;
        Ok(epoch)
    }

    async fn look(&self, key: &str, wish: KeyWish) -> Result<KeyLook, AnswersFault> {
        let id = point_id(key);
        let found = self.ask(self.answers.scroll(by_id(&[epoch_id(), id.clone()]), 2, false)).await?;
        let (epoch, now) = (self.epoch_of(&found).await?, now_ms());
        let is_good = |it: &&Point| {
            let is_young = wish.max_age_ms.is_none_or(|most| age_ms(it, now) <= most);
            it.id == id
                && it.text("exact") == Some(key)
                && it.number("epoch") == Some(epoch)
                && it.number("ends").is_some_and(|ends| now < ends)
                && is_young
        };
        let Some(point) = found.iter().find(is_good) else { return Ok(KeyLook { epoch, answer: None }) };
        let answer = answer(point, now);
        if answer.is_some() {
            let hits = point.number("hits").unwrap_or_default() + 1;
            let told = if wish.touch { json!({"hits": hits, "queue": now}) } else { json!({"hits": hits}) };
            self.ask(self.answers.change(vec![(id, told)])).await?;
        }
        Ok(KeyLook { epoch, answer })
    }

    async fn keep(&self, new: NewAnswer, epoch: u64, bounds: Bounds) -> Result<SharedPut, AnswersFault> {
        if bounds.entries == 0 || new.bytes() > bounds.bytes {
            return Ok(SharedPut::TooLarge);
        }
        if self.epoch_now().await? != epoch {
            return Ok(SharedPut::OfAnEarlierEpoch);
        }
        let (now, id) = (now_ms(), point_id(&new.exact));
        let ends = now + ttl_ms(Duration::from_millis(new.ttl_ms));
        let payload = json!({
            "kind": "answer", "epoch": epoch, "exact": new.exact, "id": new.id, "labels": new.labels,
            "body": String::from_utf8_lossy(&new.body), "stored_at": now, "queue": now, "ends": ends, "hits": 0,
            "bytes": new.bytes(), "semantic": new.worded.is_some(),
        });
        let point = json!({"id": id, "vector": NO_VECTOR, "payload": payload});
        self.ask(self.answers.upsert(vec![point], NO_VECTOR.len())).await?;
        if let Some(it) = &new.worded {
            let payload = json!({
                "kind": "row", "partition": it.partition, "exact": new.exact, "id": new.id, "text": it.text, "ends": ends,
            });
            let row = json!({"id": id, "vector": it.vector, "payload": payload});
            self.ask(self.rows.upsert(vec![row], it.vector.len())).await?;
        }
        self.count(|it| it.stored += 1);
        self.make_room(bounds.entries, now).await?;
        Ok(SharedPut::Stored)
    }

    /// Takes out what is over, and who makes room first for what was stored.
    async fn make_room(&self, entries: usize, now: u64) -> Result<(), AnswersFault> {
        let over = || all(vec![below("ends", now)]);
        let expired = self.ask(self.answers.count(over())).await?;
        if expired > 0 {
            self.ask(self.answers.delete(over())).await?;
            self.ask(self.rows.delete(over())).await?;
        }
        let first = self.ask(self.answers.too_much(&answers(), "queue", entries, PAGE)).await?;
        let evicted = self.delete(first).await?;
        self.count(|it| {
            it.expired += expired as u64;
            it.evicted += evicted as u64;
        });
        Ok(())
    }

    async fn delete(&self, ids: Vec<String>) -> Result<usize, AnswersFault> {
        for ids in ids.chunks(PAGE) {
            self.ask(self.answers.delete(by_id(ids))).await?;
            self.ask(self.rows.delete(by_id(ids))).await?;
        }
        Ok(ids.len())
    }

    async fn nearest(&self, asked: &Worded, most: usize) -> Result<Near, AnswersFault> {
        let mine = all(vec![is("partition", asked.partition.as_str())]);
        let found = self.ask(self.rows.nearest(&asked.vector, mine, most, false)).await?;
        let now = now_ms();
        let row = |it: &Point| {
            let is_mine = it.text("partition") == Some(&asked.partition) && it.number("ends")? > now;
            let row = SharedRow {
                exact: it.text("exact")?.to_owned(),
                id: it.text("id")?.to_owned(),
                text: it.text("text")?.to_owned(),
                vector: Vec::new(),
            };
            is_mine.then_some((row, it.cosine))
        };
        Ok(found.iter().filter_map(row).collect())
    }

    /// The answers that a filter names, latest first, each with the id of its point.
    async fn named(&self, filter: &Filter) -> Result<Vec<(String, Listed)>, AnswersFault> {
        let mut found = self.ask(self.answers.without("body", answers(), READ_MOST)).await?;
        found.sort_by_key(|it| std::cmp::Reverse(it.number("stored_at")));
        let now = now_ms();
        let named = |it: Point| {
            let listed = listed(&it, now)?;
            filter.names(&listed.id, &listed.labels, listed.age_seconds).then_some((it.id, listed))
        };
        Ok(found.into_iter().filter_map(named).collect())
    }

    async fn take_out(&self, filter: &Filter, dry_run: bool) -> Result<usize, AnswersFault> {
        let named = self.named(filter).await?;
        if !dry_run {
            let gone = self.delete(named.iter().map(|(id, _)| id.clone()).collect()).await?;
            self.count(|it| it.invalidated += gone as u64);
        }
        Ok(named.len())
    }

    /// Another epoch first: from then on nothing earlier is found. Then room is made.
    async fn begin_again(&self) -> Result<usize, AnswersFault> {
        let epoch = self.epoch_now().await?;
        let there = self.ask(self.answers.count(answers())).await?;
        self.begin(now_ms().max(epoch + 1)).await?;
        self.ask(self.answers.delete(answers())).await?;
        self.ask(self.rows.delete(all(vec![is("kind", "row")]))).await?;
        Ok(there)
    }

    async fn tally_now(&self) -> Result<(u64, Tally), AnswersFault> {
        let epoch = self.epoch_now().await?;
        let found = self.ask(self.answers.without("body", answers(), READ_MOST)).await?;
        let bytes = found.iter().filter_map(|it| it.number("bytes")).sum::<u64>();
        let counted = *self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok((epoch, Tally { entries: found.len(), bytes, ..counted }))
    }

    fn count(&self, act: impl FnOnce(&mut Tally)) {
        act(&mut self.counted.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl SharedAnswers for QdrantAnswers {
    fn epoch(&self) -> BoxFuture<'_, Result<u64, AnswersFault>> {
        self.epoch_now().boxed()
    }

    fn exact<'a>(&'a self, key: &'a str, wish: KeyWish) -> BoxFuture<'a, Result<KeyLook, AnswersFault>> {
        self.look(key, wish).boxed()
    }

    fn near<'a>(
        &'a self,
        asked: &'a Worded,
        most: usize,
    ) -> BoxFuture<'a, Result<Option<Near>, AnswersFault>> {
        async move { self.nearest(asked, most).await.map(Some) }.boxed()
    }

    fn put(
        &self,
        new: NewAnswer,
        epoch: u64,
        bounds: Bounds,
    ) -> BoxFuture<'_, Result<SharedPut, AnswersFault>> {
        self.keep(new, epoch, bounds).boxed()
    }

    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Listed>, AnswersFault>> {
        async move { Ok(self.named(filter).await?.into_iter().take(most).map(|(_, it)| it).collect()) }
            .boxed()
    }

    fn invalidate<'a>(
        &'a self,
        filter: &'a Filter,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<usize, AnswersFault>> {
        self.take_out(filter, dry_run).boxed()
    }

    fn flush(&self) -> BoxFuture<'_, Result<usize, AnswersFault>> {
        self.begin_again().boxed()
    }

    fn tally(&self) -> BoxFuture<'_, Result<(u64, Tally), AnswersFault>> {
        self.tally_now().boxed()
    }
}

const FAILED: &str = "it did not do what it was asked";

/// All answers.
fn answers() -> Value {
    all(vec![is("kind", "answer")])
}

fn by_id(ids: &[String]) -> Value {
    all(vec![has_id(ids)])
}

/// Where the answer to a key is: the first half of the key's digest.
fn point_id(key: &str) -> String {
    let mut half = [0; 16];
    half.iter_mut().zip(digest(&SHA256, key.as_bytes()).as_ref()).for_each(|(to, from)| *to = *from);
    Uuid::from_bytes(half).to_string()
}

/// Where the epoch is.
fn epoch_id() -> String {
    Uuid::nil().to_string()
}

fn age_ms(it: &Point, now: u64) -> u64 {
    now.saturating_sub(it.number("stored_at").unwrap_or_default())
}

/// `None` where it cannot be read, as something that another program wrote there.
fn answer(it: &Point, now: u64) -> Option<SharedAnswer> {
    Some(SharedAnswer {
        id: it.text("id")?.to_owned(),
        labels: labels(it)?,
        body: it.text("body")?.as_bytes().to_vec(),
        age_ms: age_ms(it, now),
    })
}

/// `None` as of [`answer`], and where its time is over.
fn listed(it: &Point, now: u64) -> Option<Listed> {
    let left_ms = it.number("ends")?.checked_sub(now).filter(|left| *left > 0)?;
    Some(Listed {
        id: it.text("id")?.to_owned(),
        labels: labels(it)?,
        age_seconds: age_ms(it, now) / 1000,
        good_for_seconds: left_ms / 1000,
        hits: it.number("hits")?,
        bytes: usize::try_from(it.number("bytes")?).ok()?,
        semantic: it.payload.get("semantic")?.as_bool()?,
    })
}

fn labels(it: &Point) -> Option<Labels> {
    serde_json::from_value(it.payload.get("labels")?.clone()).ok()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::qdrant::fake::FakeQdrant;

    const BOUNDS: Bounds = Bounds { entries: 2, bytes: 1 << 20, eviction: chorus_spec::CacheEviction::Fifo };

    fn new(key: &str, partition: &str, vector: [f32; 2]) -> NewAnswer {
        let worded = Worded {
            partition: partition.to_owned(),
            text: format!("question of {key}"),
            language: None,
            vector: vector.to_vec(),
        };
        NewAnswer {
            id: format!("id of {key}"),
            exact: key.to_owned(),
            worded: Some(worded),
            labels: Labels { model: "m".to_owned(), ..Labels::default() },
            body: Arc::from(format!("answer to {key}").as_bytes()),
            ttl_ms: 60_000,
        }
    }

    fn pair() -> [QdrantAnswers; 2] {
        let server = Arc::new(FakeQdrant::default());
        [0, 1].map(|_| QdrantAnswers::new(Arc::clone(&server) as Arc<dyn QdrantLink>, "cache"))
    }

    async fn body(answers: &QdrantAnswers, key: &str) -> Option<String> {
        let looked = answers.exact(key, KeyWish::default()).await.unwrap();
        looked.answer.map(|it| String::from_utf8(it.body).unwrap())
    }

    #[tokio::test]
    async fn f01_what_one_replica_stored_another_finds_by_key_and_in_its_partition_by_vector() {
        let [one, other] = pair();
        let epoch = one.epoch().await.unwrap();
        assert_eq!(other.epoch().await.unwrap(), epoch);
        one.put(new("a", "t1", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
        one.put(new("b", "t2", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
        assert_eq!(body(&other, "a").await.as_deref(), Some("answer to a"));
        assert_eq!(body(&other, "c").await, None);
        let Some(asked) = new("x", "t1", [0.6, 0.8]).worded else { panic!() };
        let near = other.near(&asked, 8).await.unwrap().unwrap();
        let told: Vec<(&str, &str)> =
            near.iter().map(|(it, _)| (it.exact.as_str(), it.text.as_str())).collect();
        assert_eq!(told, [("a", "question of a")]);
        assert!((near[0].1 - 0.6).abs() < 1e-6);
        let listed = other.list(&Filter::default(), 9).await.unwrap();
        assert_eq!(listed.iter().find(|it| it.id == "id of a").unwrap().hits, 1);
        let (_, tally) = other.tally().await.unwrap();
        assert_eq!((tally.entries, tally.stored), (2, 0), "each counts what it stored");
    }

    #[tokio::test]
    async fn a_new_epoch_hides_what_was_stored_before_and_refuses_what_was_looked_up_before() {
        let [one, other] = pair();
        let epoch = one.epoch().await.unwrap();
        one.put(new("a", "t1", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
        assert_eq!(other.flush().await.unwrap(), 1);
        assert!(one.epoch().await.unwrap() > epoch);
        assert_eq!(body(&one, "a").await, None);
        let late = one.put(new("b", "t1", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
        assert_eq!(late, SharedPut::OfAnEarlierEpoch);
        let Some(asked) = new("x", "t1", [1.0, 0.0]).worded else { panic!() };
        assert_eq!(one.near(&asked, 8).await.unwrap(), Some(Vec::new()));
    }

    #[tokio::test]
    async fn the_earliest_makes_room_what_is_over_goes_and_a_filter_takes_out() {
        let [one, _] = pair();
        let epoch = one.epoch().await.unwrap();
        let mut brief = new("brief", "t1", [1.0, 0.0]);
        brief.ttl_ms = 1;
        one.put(brief, epoch, BOUNDS).await.unwrap();
        while now_ms() <= one.answers.latest(answers(), "ends", 1).await.unwrap()[0].number("ends").unwrap() {
            tokio::task::yield_now().await;
        }
        assert_eq!(body(&one, "brief").await, None);
        for key in ["a", "b", "c"] {
            one.put(new(key, "t1", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
            let stored = now_ms();
            while now_ms() == stored {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!([body(&one, "a").await.is_some(), body(&one, "b").await.is_some()], [false, true]);
        let (_, tally) = one.tally().await.unwrap();
        assert_eq!((tally.entries, tally.expired, tally.evicted), (2, 1, 1));
        let large = Bounds { bytes: 1, ..BOUNDS };
        assert_eq!(one.put(new("d", "t1", [1.0, 0.0]), epoch, large).await.unwrap(), SharedPut::TooLarge);
        let named = Filter { id: Some("id of c".to_owned()), ..Filter::default() };
        assert_eq!((one.invalidate(&named, true).await, one.invalidate(&named, false).await), (Ok(1), Ok(1)));
        assert_eq!((body(&one, "c").await, one.invalidate(&named, true).await), (None, Ok(0)));
    }

    #[tokio::test]
    async fn f01_what_a_broken_server_gives_of_another_partition_is_dropped() {
        let broken = QdrantAnswers::new(Arc::new(FakeQdrant::without_conditions()), "cache");
        let epoch = broken.epoch().await.unwrap();
        broken.put(new("a", "t1", [1.0, 0.0]), epoch, BOUNDS).await.unwrap();
        let Some(asked) = new("x", "t2", [1.0, 0.0]).worded else { panic!() };
        assert_eq!(broken.near(&asked, 8).await.unwrap(), Some(Vec::new()));
        assert_eq!(body(&broken, "of nobody").await, None);
    }
}
