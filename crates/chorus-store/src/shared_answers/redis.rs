//! Answers in a Redis or Valkey server.
//!
//! It knows no configuration: address and password come resolved. **Invariants:** as of the module above; and a server that
//! failed is left alone for a while, so that requests do not wait for it one after the other.

use super::scripts::Scripts;
use super::{AnswersFault, KeyLook, KeyWish, SharedAnswer, SharedAnswers, SharedPut, SharedRow, SharedRows};
use crate::redis_line::{RedisFault, RedisLine, RedisPlace, RedisPlaceFault, ttl_ms};
use crate::rest::Rest;
use chorus_cache::{Bounds, Filter, Listed, NewAnswer, Tally};
use chorus_vectors::{from_bytes, to_bytes};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::{FromRedisValue, RedisError, ScriptInvocation, Value};
use std::fmt;
use std::time::Duration;

/// Rows of a partition, or answers of a listing, in one step: a server does one step at a time.
const PAGE: usize = 256;

/// The answers. It connects when it is first used.
pub struct RedisAnswers {
    line: RedisLine,
    prefix: String,
    scripts: Scripts,
    rest: Rest,
}

impl fmt::Debug for RedisAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisAnswers").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl RedisAnswers {
    /// The answers at that place; nothing is sent yet. `timeout` is that of one question, its connection included.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, timeout: Duration) -> Result<Self, RedisPlaceFault> {
        Ok(Self {
            line: RedisLine::new(place, timeout, timeout)?,
            prefix: place.key_prefix.clone(),
            scripts: Scripts::new(),
            rest: Rest::default(),
        })
    }

    /// Has the server do that in one step, unless it rests.
    async fn ask<T: FromRedisValue>(&self, mut step: ScriptInvocation<'_>) -> Result<T, AnswersFault> {
        if self.rest.now().is_some() {
            return Err(AnswersFault("it failed a moment ago"));
        }
        step.key(self.prefix.as_str());
        let answered = self.line.answer(async |line| step.invoke_async(line).await).await;
        answered.map_err(|RedisFault(kind)| {
            self.rest.saw(Some(kind));
            tracing::warn!(kind, "the server of cached answers failed; requests are answered without it");
            AnswersFault(kind)
        })
    }

    async fn look(&self, key: &str, wish: KeyWish) -> Result<KeyLook, AnswersFault> {
        let mut step = self.scripts.look.prepare_invoke();
        let oldest = wish.max_age_ms.map(|it| it.to_string()).unwrap_or_default();
        step.arg(key).arg(oldest).arg(u8::from(wish.touch));
        let told: Vec<Value> = self.ask(step).await?;
        let answer = match told.as_slice() {
            [_, id, labels, age, body] => read_answer([id, labels, age, body])?,
            _ => None,
        };
        Ok(KeyLook { epoch: number(told.first())?, answer })
    }

    async fn read_rows(&self, partition: &str, after: u64) -> Result<SharedRows, AnswersFault> {
        let mut step = self.scripts.rows.prepare_invoke();
        step.arg(partition).arg(after).arg(PAGE);
        let told: Vec<Value> = self.ask(step).await?;
        let rows: Vec<(String, String, String, Vec<u8>)> = read(told.get(4))?;
        let row = |(exact, id, text, vector): (String, String, String, Vec<u8>)| SharedRow {
            exact,
            id,
            text,
            vector: from_bytes(&vector),
        };
        Ok(SharedRows {
            epoch: number(told.first())?,
            stored: count(told.get(1))?,
            after: number(told.get(2))?,
            more: number(told.get(3))? == 1,
            rows: rows.into_iter().map(row).collect(),
        })
    }

    async fn keep(&self, new: NewAnswer, epoch: u64, bounds: Bounds) -> Result<SharedPut, AnswersFault> {
        let labels = serde_json::to_string(&new.labels).unwrap_or_default();
        let (partition, text, vector) = match &new.worded {
            Some(it) => (it.partition.as_str(), it.text.as_str(), to_bytes(&it.vector)),
            None => ("", "", Vec::new()),
        };
        let mut step = self.scripts.put.prepare_invoke();
        step.arg(epoch).arg(&new.exact).arg(partition).arg(&new.id).arg(labels).arg(&*new.body).arg(text);
        step.arg(vector).arg(ttl_ms(Duration::from_millis(new.ttl_ms))).arg(new.bytes());
        step.arg(bounds.entries).arg(bounds.bytes);
        let told: String = self.ask(step).await?;
        Ok(match told.as_str() {
            "stored" => SharedPut::Stored,
            "epoch" => SharedPut::OfAnEarlierEpoch,
            _ => SharedPut::TooLarge,
        })
    }

    /// The answers that a filter names, latest first, at most so many, each with its name in the queue.
    async fn named(&self, filter: &Filter, most: usize) -> Result<Vec<(String, Listed)>, AnswersFault> {
        let (mut found, mut at) = (Vec::new(), 0);
        while found.len() < most {
            let mut step = self.scripts.page.prepare_invoke();
            step.arg(at).arg(PAGE);
            let (looked, rows): (usize, Vec<PageRow>) = self.ask(step).await?;
            let rows = rows.into_iter().filter_map(listed);
            found.extend(rows.filter(|(_, it)| filter.names(&it.id, &it.labels, it.age_seconds)));
            at += looked;
            if looked < PAGE {
                break;
            }
        }
        found.truncate(most);
        Ok(found)
    }

    async fn take_out(&self, filter: &Filter, dry_run: bool) -> Result<usize, AnswersFault> {
        let named = self.named(filter, usize::MAX).await?;
        if dry_run {
            return Ok(named.len());
        }
        let mut gone = 0;
        for names in named.chunks(PAGE) {
            let mut step = self.scripts.take_out.prepare_invoke();
            for (name, _) in names {
                step.arg(name);
            }
            gone += self.ask::<usize>(step).await?;
        }
        Ok(gone)
    }

    /// Another epoch first: from then on nothing earlier is found. Then room is made.
    async fn begin_again(&self) -> Result<usize, AnswersFault> {
        let (answers, turn): (usize, u64) = self.ask(self.scripts.flush.prepare_invoke()).await?;
        loop {
            let mut step = self.scripts.sweep.prepare_invoke();
            step.arg(turn).arg(PAGE);
            if self.ask::<usize>(step).await? < PAGE {
                return Ok(answers);
            }
        }
    }

    async fn counted(&self) -> Result<(u64, Tally), AnswersFault> {
        let told: Vec<Value> = self.ask(self.scripts.tally.prepare_invoke()).await?;
        let tally = Tally {
            entries: count(told.get(1))?,
            bytes: count(told.get(2))?,
            stored: number(told.get(3))?,
            evicted: number(told.get(4))?,
            expired: number(told.get(5))?,
            invalidated: number(told.get(6))?,
        };
        Ok((number(told.first())?, tally))
    }
}

impl SharedAnswers for RedisAnswers {
    fn epoch(&self) -> BoxFuture<'_, Result<u64, AnswersFault>> {
        async move { self.ask(self.scripts.epoch.prepare_invoke()).await }.boxed()
    }

    fn exact<'a>(&'a self, key: &'a str, wish: KeyWish) -> BoxFuture<'a, Result<KeyLook, AnswersFault>> {
        self.look(key, wish).boxed()
    }

    fn rows<'a>(&'a self, partition: &'a str, after: u64) -> BoxFuture<'a, Result<SharedRows, AnswersFault>> {
        self.read_rows(partition, after).boxed()
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
        let named = self.named(filter, most);
        async move { Ok(named.await?.into_iter().map(|(_, it)| it).collect()) }.boxed()
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
        self.counted().boxed()
    }
}

/// Name in the queue, own name, labels, age, what is left of its time, and how often it was given again.
type PageRow = (String, String, String, u64, u64, u64);

/// `None` where it cannot be read, as something that another program wrote there.
fn listed((name, id, labels, age_ms, left_ms, hits): PageRow) -> Option<(String, Listed)> {
    let (rest, bytes) = name.rsplit_once(':')?;
    let (_, partition) = rest.split_once(':')?;
    let listed = Listed {
        id,
        labels: serde_json::from_str(&labels).ok()?,
        age_seconds: age_ms / 1000,
        good_for_seconds: left_ms / 1000,
        hits,
        bytes: bytes.parse().ok()?,
        semantic: !partition.is_empty(),
    };
    Some((name, listed))
}

/// `None` as of [`listed`].
fn read_answer([id, labels, age, body]: [&Value; 4]) -> Result<Option<SharedAnswer>, AnswersFault> {
    let labels: String = read(Some(labels))?;
    let Ok(labels) = serde_json::from_str(&labels) else { return Ok(None) };
    Ok(Some(SharedAnswer {
        id: read(Some(id))?,
        labels,
        body: read(Some(body))?,
        age_ms: number(Some(age))?,
    }))
}

fn number(value: Option<&Value>) -> Result<u64, AnswersFault> {
    read(value)
}

/// A count that can have gone wrong where the server forgot one half of it.
fn count(value: Option<&Value>) -> Result<usize, AnswersFault> {
    let count: i64 = read(value)?;
    Ok(usize::try_from(count).unwrap_or(0))
}

fn read<T: FromRedisValue>(value: Option<&Value>) -> Result<T, AnswersFault> {
    let value = value.cloned().unwrap_or(Value::Nil);
    let read = redis::from_redis_value(value).map_err(RedisError::from);
    read.map_err(|_| AnswersFault("its answer cannot be read"))
}
