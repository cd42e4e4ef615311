//! Run records in a Redis or Valkey server.
//!
//! It knows no configuration: address and password come resolved. **Invariants:** there are never more runs than it was told,
//! and none is older than its time to live: the oldest make room; and no fault repeats an address or a password.

use super::RunsPlace;
use super::content::{apart, whole};
use super::scripts::Scripts;
use crate::redis_line::{
    CONNECT_TIME, RedisFault, RedisLine, RedisPlace, RedisPlaceFault, STEP_TIME, ttl_ms,
};
use crate::{Page, RunFilter, RunId, RunRecord, RunStatus, StoreFault};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use redis::{FromRedisValue, ScriptInvocation};
use std::collections::BTreeSet;
use std::time::Duration;

/// Most records of one step: a server does one step at a time.
const PUT_MOST: usize = 32;
/// Most runs that are looked at in one step.
const PAGE_MOST: u64 = 128;
/// Most runs whose content goes in one step.
const TRIM_MOST: u64 = 1000;
/// A script's numbers are exact up to here.
const EXACT: u64 = 1 << 53;

/// The runs of one server. It connects when it is first asked.
pub struct RedisRuns {
    line: RedisLine,
    prefix: String,
    ttl_ms: u64,
    most: usize,
    scripts: Scripts,
}

impl std::fmt::Debug for RedisRuns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisRuns")
            .field("ttl_ms", &self.ttl_ms)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl RedisRuns {
    /// Those at that place, each kept for `keep_for`, and no more than `most` of them. Nothing is sent yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, keep_for: Duration, most: usize) -> Result<Self, RedisPlaceFault> {
        Ok(Self {
            line: RedisLine::new(place, CONNECT_TIME, STEP_TIME)?,
            prefix: place.key_prefix.clone(),
            ttl_ms: ttl_ms(keep_for),
            most,
            scripts: Scripts::new(),
        })
    }

    /// Whether it answers, and lets us in.
    ///
    /// # Errors
    /// [`RedisFault`].
    pub async fn reached(&self) -> Result<(), RedisFault> {
        self.line.answer(async |line| redis::cmd("PING").query_async(line).await).await
    }

    async fn step<T: FromRedisValue>(&self, mut step: ScriptInvocation<'_>) -> Result<T, RedisFault> {
        step.key(self.prefix.as_str());
        self.line.answer(async |line| step.invoke_async(line).await).await
    }

    async fn put(&self, records: &mut [RunRecord]) -> Result<BTreeSet<String>, StoreFault> {
        let mut new = BTreeSet::new();
        for part in records.chunks_mut(PUT_MOST) {
            let mut step = self.scripts.put.prepare_invoke();
            step.arg(self.ttl_ms).arg(self.most);
            for record in part {
                let (bare, content) = apart(record)?;
                step.arg(record.id.as_str()).arg(record.started_at_ms).arg(record.requested_model.as_str());
                step.arg(record.decision.as_deref().unwrap_or_default()).arg(record.status.as_str());
                step.arg(record.spec_digest.as_str()).arg(bare).arg(content);
            }
            new.extend(self.step::<Vec<String>>(step).await?);
        }
        Ok(new)
    }

    async fn one(&self, id: &RunId) -> Result<Option<RunRecord>, StoreFault> {
        let mut get = redis::cmd("HMGET");
        get.arg(format!("{}run:{id}", self.prefix)).arg("record").arg("content");
        let (record, content): (Option<String>, Option<String>) =
            self.line.answer(async |line| get.query_async(line).await).await?;
        record.map(|record| whole(&record, &content.unwrap_or_default())).transpose()
    }

    async fn listed(&self, filter: &RunFilter, page: &Page) -> Result<Vec<RunRecord>, StoreFault> {
        let wanted = page.limit.clamp(1, 1000);
        let mut before = page.before.as_ref().map(|id| id.as_str().to_owned()).unwrap_or_default();
        let word = |word: Option<&str>| word.map(|word| format!("={word}")).unwrap_or_default();
        let mut found = Vec::new();
        loop {
            let mut step = self.scripts.page.prepare_invoke();
            step.arg(&before).arg(PAGE_MOST).arg(wanted - found.len());
            step.arg(word(filter.decision.as_deref())).arg(word(filter.requested_model.as_deref()));
            step.arg(word(filter.spec_digest.as_deref())).arg(word(filter.status.map(RunStatus::as_str)));
            step.arg(filter.since_ms.unwrap_or(0));
            let (last, more, rows): (String, u8, Vec<(String, String)>) = self.step(step).await?;
            for (record, content) in rows {
                found.push(whole(&record, &content)?);
            }
            if more == 0 || found.len() >= wanted {
                return Ok(found);
            }
            before = last;
        }
    }

    async fn trimmed(&self, decision: &str, keep: u64, window: u64) -> Result<u64, StoreFault> {
        let (mut before, mut skip, mut left, mut gone) = (String::new(), keep.min(EXACT), window, 0);
        while left > 0 {
            let most = left.min(TRIM_MOST);
            let mut step = self.scripts.trim.prepare_invoke();
            step.arg(decision).arg(&before).arg(skip).arg(most);
            let (last, looked_at, lost): (String, u64, u64) = self.step(step).await?;
            gone += lost;
            if looked_at < most {
                break;
            }
            (before, skip, left) = (last, 0, left - looked_at);
        }
        Ok(gone)
    }
}

impl RunsPlace for RedisRuns {
    fn name(&self) -> &'static str {
        "the Redis server of run records"
    }

    fn reached(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        async { Ok(self.reached().await?) }.boxed()
    }

    fn insert<'a>(
        &'a self,
        records: &'a mut [RunRecord],
    ) -> BoxFuture<'a, Result<BTreeSet<String>, StoreFault>> {
        self.put(records).boxed()
    }

    fn get<'a>(&'a self, id: &'a RunId) -> BoxFuture<'a, Result<Option<RunRecord>, StoreFault>> {
        self.one(id).boxed()
    }

    fn list<'a>(
        &'a self,
        filter: &'a RunFilter,
        page: &'a Page,
    ) -> BoxFuture<'a, Result<Vec<RunRecord>, StoreFault>> {
        self.listed(filter, page).boxed()
    }

    fn trim_content<'a>(
        &'a self,
        decision: &'a str,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'a, Result<u64, StoreFault>> {
        self.trimmed(decision, keep, window).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{RunStore as _, SharedRunStore, SqliteRunStore};
    use std::sync::Arc;

    #[tokio::test]
    async fn while_the_server_is_away_records_are_safe_in_the_spool() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = RedisPlace {
            address: listener.local_addr().unwrap().to_string(),
            database: 0,
            password: Some("hunter2".to_owned()),
            tls: false,
            tls_any_certificate: false,
            retries: 0,
            key_prefix: "p:".to_owned(),
        };
        drop(listener);
        let spool = SqliteRunStore::in_memory().unwrap();
        let runs: Arc<dyn RunsPlace> = Arc::new(RedisRuns::new(&place, Duration::from_secs(60), 10).unwrap());
        let store = SharedRunStore::new(Arc::clone(&runs), runs, spool.clone(), None);
        let record = RunRecord::default();
        store.append(record.clone()).await.unwrap();
        assert_eq!(store.get(&record.id).await.unwrap(), Some(record));
        let fault = store.list(RunFilter::default(), Page::default()).await.unwrap_err();
        assert!(fault.is_of_a_shared_place(), "{fault}");
        assert_eq!(fault.to_string(), "the Redis server of run records: it could not be reached");
    }
}
