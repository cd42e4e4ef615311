//! Records are written beside answers, never before them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use chorus_engine::{Engine, Env, Inbound, Options, Part};
use chorus_store::{Page, Receipt, RunFilter, RunId, RunRecord, RunStore, SqliteRunStore, StoreFault};
use chorus_testkit::{Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, Message, Role};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

const FILE: &str = r#"
version: v0.3
providers:
  defaults: { default_model: small }
  models: [{ name: small, backend_refs: [{ name: main, base_url: "${UP}" }] }]
"#;

/// A store whose disk stands still until it is let go.
struct Stuck {
    kept: SqliteRunStore,
    gate: Arc<Semaphore>,
}

impl RunStore for Stuck {
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        Box::pin(async move {
            let _open = self.gate.acquire().await.map_err(|_| StoreFault::Closed)?;
            self.kept.submit(record).await
        })
    }

    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        self.kept.get(id)
    }

    fn list(&self, filter: RunFilter, page: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>> {
        self.kept.list(filter, page)
    }

    fn trim_content(
        &self,
        decision: String,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        self.kept.trim_content(decision, keep, window)
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        self.kept.flush()
    }
}

/// A store that nothing fits into any more.
struct Full;

impl RunStore for Full {
    fn submit(&self, _: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        Box::pin(async { Err(StoreFault::Full(1 << 20)) })
    }

    fn get(&self, _: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        Box::pin(async { Ok(None) })
    }

    fn list(&self, _: RunFilter, _: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn trim_content(&self, _: String, _: u64, _: u64) -> BoxFuture<'_, Result<u64, StoreFault>> {
        Box::pin(async { Ok(0) })
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        Box::pin(async { Ok(()) })
    }
}

/// Of that backend, with that store.
fn engine(up: &ScriptedUpstream, records: Arc<dyn RunStore>) -> Engine {
    let options = Options { records: Some(records), ..Options::bare(Env::having(&[("UP", &up.base_url())])) };
    Engine::new(chorus_spec::read(FILE).spec.unwrap(), options).unwrap()
}

async fn answer(engine: &Engine) -> Option<String> {
    let request = ChatRequest::new("small", vec![Message::new(Role::User, "hello")]);
    let mut run = engine.run(Inbound::of(request));
    while let Some(part) = run.next().await {
        if let Part::Reply(_, reply) = part {
            return Some(reply.content.clone());
        }
    }
    None
}

#[tokio::test]
async fn a_record_that_does_not_fit_any_more_is_counted_and_costs_no_answer() {
    let up = ScriptedUpstream::start().await.unwrap();
    up.otherwise(|_| Script::reply("hi"));
    let engine = engine(&up, Arc::new(Full));
    for _ in 0..3 {
        assert_eq!(answer(&engine).await.as_deref(), Some("hi"));
    }
    assert!(engine.drain(Duration::from_secs(60)).await);
    let text = engine.serving().meters.text(&[]);
    assert!(text.contains("chorus_records_lost_total 3"), "{text}");
}

#[tokio::test]
async fn i09_a_store_that_stands_still_delays_no_answer_and_loses_no_record() {
    let up = ScriptedUpstream::start().await.unwrap();
    up.otherwise(|_| Script::reply("hi"));
    let (kept, gate) = (SqliteRunStore::in_memory().unwrap(), Arc::new(Semaphore::new(0)));
    let engine = engine(&up, Arc::new(Stuck { kept: kept.clone(), gate: Arc::clone(&gate) }));
    for number in 0..200 {
        assert_eq!(answer(&engine).await.as_deref(), Some("hi"), "request {number}");
    }
    let count = || kept.list(RunFilter::default(), Page { limit: 1000, before: None });
    assert_eq!(count().await.unwrap().len(), 0, "none is kept yet, and all were answered");
    gate.add_permits(1000);
    assert!(engine.drain(Duration::from_secs(60)).await);
    assert_eq!(count().await.unwrap().len(), 200);
}
