//! Traces of runs for an OpenTelemetry collector: off the hot path, made of the run records that are written anyway.
//!
//! Whoever keeps records hands them on here ([`Traces::over`]); a task sends what has gathered every second. It knows no
//! engine and no request. **Invariant:** a collector that is slow, full or gone costs traces and never an answer or a
//! record; and a trace says no more than a record does, which has no text of a request or an answer unless the operator
//! asked for that, and then still none here.

mod context;
mod otlp;

use chorus_engine::trace_context::is_sampled;
use chorus_engine::{TraceParent, Tracing};
use chorus_spec::TraceExport;
use chorus_store::{Losses, Page, Receipt, RunFilter, RunId, RunRecord, RunStore, StoreFault};
use chorus_upstream::{ClientOptions, TlsFault, Upstream};
use context::Parents;
use futures_util::future::BoxFuture;
use http::HeaderMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;

/// Most runs that wait to be sent; further ones are dropped and counted.
const QUEUE: usize = 4096;
/// Most runs of one message to the collector.
const BATCH: usize = 256;
/// How long the first run of a message waits for others.
const GATHER: Duration = Duration::from_secs(1);
/// How long the collector may take.
const SEND_TIME: Duration = Duration::from_secs(10);

/// Sends runs to a collector. Cloning shares it.
#[derive(Clone)]
pub struct Traces {
    queue: mpsc::Sender<RunRecord>,
    parents: Arc<Parents>,
    dropped: Arc<AtomicU64>,
    rate: f64,
}

impl Traces {
    /// Sends to that collector, by a task of this runtime.
    ///
    /// # Errors
    /// [`TlsFault`].
    pub fn start(export: TraceExport) -> Result<Self, TlsFault> {
        Self::gathering(export, GATHER)
    }

    fn gathering(export: TraceExport, gather: Duration) -> Result<Self, TlsFault> {
        let client = Upstream::new(&ClientOptions::default())?;
        let (queue, runs) = mpsc::channel(QUEUE);
        let (parents, dropped) = (Arc::<Parents>::default(), Arc::<AtomicU64>::default());
        let rate = export.rate;
        let sender = Sender { client, export, parents: Arc::clone(&parents), dropped: Arc::clone(&dropped) };
        tokio::spawn(sender.send_all(runs, gather));
        Ok(Self { queue, parents, dropped, rate })
    }

    /// A store that hands what it keeps on to these traces.
    #[must_use]
    pub fn over(&self, records: Arc<dyn RunStore>) -> Arc<dyn RunStore> {
        Arc::new(TracedStore { records, traces: self.clone() })
    }

    /// How a request with these headers is traced.
    pub(crate) fn of(&self, headers: &HeaderMap) -> Tracing {
        Tracing { parent: parent(headers), rate: self.rate }
    }

    /// Says whose trace a run is a part of.
    pub(crate) fn join(&self, run: &str, parent: TraceParent) {
        self.parents.join(run, parent);
    }

    fn take(&self, record: &RunRecord) {
        if self.queue.try_send(record.clone()).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The span that a request comes from, where it says.
pub(crate) fn parent(headers: &HeaderMap) -> Option<TraceParent> {
    headers.get("traceparent").and_then(|value| TraceParent::read(value.to_str().ok()?))
}

/// The task.
struct Sender {
    client: Upstream,
    export: TraceExport,
    parents: Arc<Parents>,
    dropped: Arc<AtomicU64>,
}

impl Sender {
    /// Until nobody can hand on a run any more.
    async fn send_all(self, mut runs: mpsc::Receiver<RunRecord>, gather: Duration) {
        while let Some(first) = runs.recv().await {
            let mut batch = vec![first];
            let full = async {
                while batch.len() < BATCH
                    && let Some(next) = runs.recv().await
                {
                    batch.push(next);
                }
            };
            // Either the message is full, or its time is over.
            let _ = tokio::time::timeout(gather, full).await;
            self.send(&batch).await;
        }
    }

    async fn send(&self, batch: &[RunRecord]) {
        let sampled = batch.iter().filter_map(|run| {
            let parent = self.parents.take(run.id.as_str());
            is_sampled(run.id.as_str(), parent.as_ref(), self.export.rate).then_some((run, parent))
        });
        let spans: Vec<otlp::Span> =
            sampled.flat_map(|(run, parent)| otlp::spans(run, parent.as_ref())).collect();
        if spans.is_empty() {
            return;
        }
        let url = format!("{}/v1/traces", self.export.endpoint);
        let message = otlp::message(&self.export, &spans);
        let lost = self.dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            tracing::warn!(runs = lost, "traces were dropped: the collector is too slow");
        }
        if let Err(fault) = self.client.deliver(&url, message.into(), SEND_TIME).await {
            tracing::warn!(%fault, runs = batch.len(), "traces were not taken by the collector");
        }
    }
}

/// A store of records whose runs are traced.
struct TracedStore {
    records: Arc<dyn RunStore>,
    traces: Traces,
}

impl RunStore for TracedStore {
    fn submit(&self, record: RunRecord) -> BoxFuture<'_, Result<Receipt, StoreFault>> {
        self.traces.take(&record);
        self.records.submit(record)
    }

    fn hand_over(&self, record: Box<RunRecord>, losses: Arc<dyn Losses>) -> BoxFuture<'_, ()> {
        self.traces.take(&record);
        self.records.hand_over(record, losses)
    }

    fn get(&self, id: &RunId) -> BoxFuture<'_, Result<Option<RunRecord>, StoreFault>> {
        self.records.get(id)
    }

    fn list(&self, filter: RunFilter, page: Page) -> BoxFuture<'_, Result<Vec<RunRecord>, StoreFault>> {
        self.records.list(filter, page)
    }

    fn trim_content(
        &self,
        decision: String,
        keep: u64,
        window: u64,
    ) -> BoxFuture<'_, Result<u64, StoreFault>> {
        self.records.trim_content(decision, keep, window)
    }

    fn flush(&self) -> BoxFuture<'_, Result<(), StoreFault>> {
        self.records.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_store::{CallRecord, CallStatus, SqliteRunStore};
    use chorus_testkit::{Script, ScriptedUpstream};
    use serde_json::{Value, json};

    fn export(endpoint: String) -> TraceExport {
        TraceExport {
            endpoint,
            rate: 1.0,
            service_name: "chorus".to_owned(),
            service_version: None,
            environment: Some("test".to_owned()),
        }
    }

    fn run() -> RunRecord {
        let call = CallRecord {
            model: "small".into(),
            role: "direct".into(),
            began_ms: 3,
            latency_ms: 20,
            first_token_ms: Some(9),
            status: CallStatus::Failed,
            error: Some("timeout".into()),
            ..CallRecord::default()
        };
        RunRecord {
            started_at_ms: 1_000,
            duration_ms: 25,
            requested_model: "vllm-sr/auto".into(),
            decision: Some("rest".into()),
            signals_us: [("keyword".into(), 40), ("language".into(), 60)].into(),
            calls: vec![call],
            ..RunRecord::default()
        }
    }

    fn find<'a>(spans: &'a [Value], name: &str) -> &'a Value {
        spans.iter().find(|span| span["name"] == name).unwrap_or_else(|| panic!("no {name} in {spans:?}"))
    }

    #[tokio::test]
    async fn a_collector_gets_a_run_its_signals_its_decision_and_its_calls() {
        let collector = ScriptedUpstream::start().await.unwrap();
        collector.otherwise(|_| Script::json(200, &json!({})));
        let endpoint = format!("http://{}", collector.address());
        let traces = Traces::gathering(export(endpoint), Duration::from_millis(5)).unwrap();
        let records = traces.over(Arc::new(SqliteRunStore::in_memory().unwrap()));
        let run = run();
        let parent = TraceParent::read("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").unwrap();
        traces.join(run.id.as_str(), parent);
        records.append(run.clone()).await.unwrap();
        assert!(records.get(&run.id).await.unwrap().is_some(), "the record is kept as ever");
        assert!(collector.wait(|it| !it.requests().is_empty()).await);
        let request = collector.requests().remove(0);
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/traces"));
        let body = request.json();
        let resource = &body["resourceSpans"][0];
        assert_eq!(resource["resource"]["attributes"][0]["value"]["stringValue"], "chorus");
        let spans = resource["scopeSpans"][0]["spans"].as_array().unwrap();
        let root = find(spans, "chat vllm-sr/auto");
        assert_eq!(root["traceId"], "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((&root["parentSpanId"], &root["kind"]), (&json!("b7ad6b7169203331"), &json!(2)));
        assert_eq!(root["startTimeUnixNano"], "1000000000");
        assert_eq!(root["endTimeUnixNano"], "1025000000");
        let decision = find(spans, "decide");
        assert_eq!(decision["parentSpanId"], root["spanId"]);
        let language = find(spans, "signal language");
        assert_eq!(language["parentSpanId"], decision["spanId"]);
        assert_eq!(language["endTimeUnixNano"], "1000100000", "after the other one");
        let call = find(spans, "chat small");
        assert_eq!((&call["kind"], &call["status"]["code"]), (&json!(3), &json!(2)));
        assert_eq!(call["startTimeUnixNano"], "1003000000");
        let attributes = call["attributes"].as_array().unwrap();
        let error = attributes.iter().find(|it| it["key"] == "error.type").unwrap();
        assert_eq!(error["value"]["stringValue"], "timeout");
    }

    #[tokio::test]
    async fn i09_traces_beyond_the_queue_are_dropped_and_counted() {
        let closed = ScriptedUpstream::start().await.unwrap().address();
        let traces = Traces::gathering(export(format!("http://{closed}")), Duration::from_secs(60)).unwrap();
        // Nothing of this runtime runs between these: the queue alone takes what it can.
        (0..QUEUE + 10).for_each(|_| traces.take(&run()));
        assert_eq!(traces.dropped.load(Ordering::Relaxed), 10);
    }

    #[tokio::test]
    async fn without_a_collector_records_are_kept_and_nobody_waits() {
        let closed = ScriptedUpstream::start().await.unwrap().address();
        let traces = Traces::gathering(export(format!("http://{closed}")), Duration::ZERO).unwrap();
        let records = traces.over(Arc::new(SqliteRunStore::in_memory().unwrap()));
        for _ in 0..20 {
            records.append(run()).await.unwrap();
        }
        assert_eq!(records.list(RunFilter::default(), Page::default()).await.unwrap().len(), 20);
    }
}
