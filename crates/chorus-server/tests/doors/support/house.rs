//! The house itself: engine, doors, records, backend.

use super::client::{Answer, Http, Incoming};
use super::files::ask;
use bytes::Bytes;
use chorus_engine::{Artifact, Engine, Env, Limits, Options};
use chorus_infer::TextEncoder;
use chorus_server::{Bound, Door, DoorLimits, Planes};
use chorus_store::{Page, RunFilter, RunId, RunRecord, RunStore, SqliteKeys, SqliteOutcomes, SqliteRunStore};
use chorus_testkit::ScriptedUpstream;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The backend's key: nowhere but in its requests.
pub(crate) const KEY: &str = "sk-house-0123456789";

/// Threads of its data plane, as the binary has one for each core.
const THREADS: usize = 2;

/// How a house is built.
pub(crate) struct Setup {
    pub(crate) file: String,
    pub(crate) limits: Limits,
    pub(crate) door: DoorLimits,
    pub(crate) encoder: Option<Arc<dyn TextEncoder>>,
    /// What is served, and the contracts of its operating points.
    pub(crate) artifact: Artifact,
    /// API keys, and whether every request needs one.
    pub(crate) keys: Option<(SqliteKeys, bool)>,
    /// How long running requests may take after a stop.
    pub(crate) grace: Duration,
}

impl Setup {
    pub(crate) fn of(file: &str) -> Self {
        Self {
            file: file.to_owned(),
            limits: Limits::default(),
            door: DoorLimits::default(),
            encoder: None,
            artifact: Artifact::default(),
            keys: None,
            grace: Duration::from_secs(5),
        }
    }

    pub(crate) async fn open(self) -> House {
        let up = ScriptedUpstream::start().await.unwrap();
        let records = SqliteRunStore::in_memory().unwrap();
        let checked = chorus_spec::read(&self.file);
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let base_url = up.base_url();
        let env = Env::of(move |name| match name {
            "UP" => Some(base_url.clone()),
            "UP_KEY" => Some(KEY.to_owned()),
            "BOOM" => panic!("this variable must not be looked at"),
            _ => None,
        });
        let options = Options {
            encoder: self.encoder,
            records: Some(Arc::new(records.clone())),
            limits: self.limits,
            ..Options::bare(env)
        };
        let outcomes = Arc::new(SqliteOutcomes::in_memory().unwrap());
        let engine = Engine::of(spec, options, self.artifact).unwrap().taking(outcomes).await;
        let door = Door::new(engine, self.door);
        let door = match self.keys {
            Some((keys, required)) => door.keyed(Arc::new(keys), required),
            None => door,
        };
        door.set_ready(true);
        let free = ([127, 0, 0, 1], 0).into();
        let planes = Planes::bind(free, free).await.unwrap().with_envoy(free).await.unwrap();
        let (bound, planes) = (planes.bound().unwrap(), planes.on_threads(THREADS));
        let stop = CancellationToken::new();
        let serving = tokio::spawn(chorus_server::serve(planes, door, stop.clone(), self.grace));
        House { up, bound, records, stop, serving, http: Client::builder(TokioExecutor::new()).build_http() }
    }
}

/// A served Chorus, its backend, and a client.
pub(crate) struct House {
    pub(crate) up: ScriptedUpstream,
    pub(crate) bound: Bound,
    pub(crate) records: SqliteRunStore,
    pub(crate) stop: CancellationToken,
    pub(crate) serving: JoinHandle<std::io::Result<()>>,
    http: Http,
}

impl House {
    pub(crate) async fn open(file: &str) -> Self {
        Setup::of(file).open().await
    }

    fn url(&self, path: &str) -> String {
        let plane = if path.starts_with("/api") { self.bound.management } else { self.bound.data };
        format!("http://{plane}{path}")
    }

    /// Sends a request; its body is not read yet.
    pub(crate) async fn send(&self, request: Request<Full<Bytes>>) -> Incoming {
        Incoming::new(self.http.request(request).await.unwrap())
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        let request = Request::get(self.url(path)).body(Full::default()).unwrap();
        self.send(request).await.whole().await
    }

    pub(crate) async fn post(&self, path: &str, body: impl Into<Bytes>) -> Answer {
        let request = Request::post(self.url(path)).body(Full::new(body.into())).unwrap();
        self.send(request).await.whole().await
    }

    pub(crate) async fn delete(&self, path: &str) -> Answer {
        let request = Request::delete(self.url(path)).body(Full::default()).unwrap();
        self.send(request).await.whole().await
    }

    /// A `GET` at the management plane.
    pub(crate) async fn managed(&self, path: &str, token: Option<&str>) -> Answer {
        let mut request = Request::get(format!("http://{}{path}", self.bound.management));
        if let Some(token) = token {
            request = request.header("authorization", format!("Bearer {token}"));
        }
        self.send(request.body(Full::default()).unwrap()).await.whole().await
    }

    /// A chat completion, whole.
    pub(crate) async fn chat(&self, body: &Value) -> Answer {
        self.post("/v1/chat/completions", body.to_string()).await
    }

    /// A chat completion with that header.
    pub(crate) async fn chat_with(&self, header: (&str, &str), body: &Value) -> Incoming {
        let request = Request::post(self.url("/v1/chat/completions")).header(header.0, header.1);
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    /// A chat completion with `stream: true`, as it comes.
    pub(crate) async fn stream(&self, body: &Value) -> Incoming {
        let mut body = body.clone();
        body["stream"] = true.into();
        let request = Request::post(self.url("/v1/chat/completions"));
        self.send(request.body(Full::new(body.to_string().into())).unwrap()).await
    }

    /// The record of an answer's run; fails when it does not come.
    pub(crate) async fn record(&self, run_id: Option<&str>) -> RunRecord {
        let id = RunId::parse(run_id.expect("the answer names its run")).unwrap();
        for _ in 0..1000 {
            if let Some(record) = self.records.get(&id).await.unwrap() {
                return record;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("the run {id} left no record");
    }

    /// All records, latest first, once there are `count`.
    pub(crate) async fn all_records(&self, count: usize) -> Vec<RunRecord> {
        let page = || Page { limit: 1000, before: None };
        for _ in 0..1000 {
            let records = self.records.list(RunFilter::default(), page()).await.unwrap();
            if records.len() >= count {
                assert_eq!(records.len(), count);
                return records;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("fewer than {count} records came");
    }

    /// Fails unless an ordinary request is still answered.
    pub(crate) async fn still_serves(&self) {
        let answer = self.chat(&ask("spare", "are you there?")).await;
        assert_eq!((answer.status, answer.text().as_str()), (200, "are you there?"));
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
