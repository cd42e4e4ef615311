//! Records are written beside answers, never before them.

use chorus_engine::{Engine, Env, Inbound, Limits, Options, Part};
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

#[tokio::test]
async fn i09_a_store_that_stands_still_delays_no_answer_and_loses_no_record() {
    let up = ScriptedUpstream::start().await.unwrap();
    up.otherwise(|_| Script::reply("hi"));
    let base_url = up.base_url();
    let (kept, gate) = (SqliteRunStore::in_memory().unwrap(), Arc::new(Semaphore::new(0)));
    let options = Options {
        env: Env::of(move |name| (name == "UP").then(|| base_url.clone())),
        encoder: None,
        local: None,
        records: Some(Arc::new(Stuck { kept: kept.clone(), gate: Arc::clone(&gate) })),
        limits: Limits::default(),
        recall: None,
        folders: chorus_engine::Folders::default(),
    };
    let engine = Engine::new(chorus_spec::read(FILE).spec.unwrap(), options).unwrap();
    for number in 0..200 {
        let request = ChatRequest::new("small", vec![Message::new(Role::User, "hello")]);
        let mut run = engine.run(Inbound::of(request));
        let mut answer = None;
        while answer.is_none() {
            match run.next().await {
                Some(Part::Reply(_, reply)) => answer = Some(reply.content.clone()),
                Some(_) => {}
                None => break,
            }
        }
        assert_eq!(answer.as_deref(), Some("hi"), "request {number}");
    }
    let count = || kept.list(RunFilter::default(), Page { limit: 1000, before: None });
    assert_eq!(count().await.unwrap().len(), 0, "none is kept yet, and all were answered");
    gate.add_permits(1000);
    assert!(engine.drain(Duration::from_secs(60)).await);
    assert_eq!(count().await.unwrap().len(), 200);
}
