//! A served Chorus whose configuration is a file in a folder of its own, and a client of both planes.

use bytes::Bytes;
use chorus_engine::reload::{Candidates, Cause, Offer, Origin, Refusal, Source, State, Versions};
use chorus_engine::{Configuration, Engine, Env, Options, Supply};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_server::{Bound, Door, DoorLimits, Planes};
use chorus_spec::Spec;
use chorus_store::{Page, RunFilter, RunRecord, RunStore, SqliteRunStore};
use chorus_testkit::ScriptedUpstream;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use http::request::Builder;
use http::{HeaderMap, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A file whose one model is called `provider` by its backend.
pub(crate) fn policy(provider: &str) -> String {
    format!(
        "# who answers
version: v0.3
listeners: [{{ name: http, address: 127.0.0.1, port: 8899 }}]
providers:
  defaults: {{ default_model: small }}
  models:
    - name: small
      provider_model_id: {provider}
      backend_refs: [{{ name: main, base_url: \"${{UP}}\", api_key: \"${{UP_KEY}}\" }}]
routing:
  signals:
    keywords:
      - {{ name: greeting, keywords: [hello, no, 1e3] }}
  decisions:
    - name: greet
      priority: 50
      rules: {{ type: keyword, name: greeting }}
      modelRefs: [{{ model: small }}]
"
    )
}

/// A file that does not load.
pub(crate) fn broken() -> String {
    policy("x").replace("rules: { type: keyword, name: greeting }", "rules: { type: keyword, name: nowhere }")
}

/// What the tests' configurations need.
struct Stock {
    base_url: String,
    encoder: Option<Arc<dyn TextEncoder>>,
}

impl Stock {
    fn options(&self) -> Options {
        let env = Env::having(&[("UP", &self.base_url), ("UP_KEY", "sk-manage-0123456789")]);
        Options { encoder: self.encoder.clone(), ..Options::bare(env) }
    }
}

impl Supply for Stock {
    fn supply<'a>(&'a self, spec: &'a Spec) -> BoxFuture<'a, Result<Options, String>> {
        let missing = spec.default_model.is_none().then(|| "these tests have a default model".to_owned());
        async move { missing.map_or_else(|| Ok(self.options()), Err) }.boxed()
    }
}

/// Opens candidates that are files.
struct Files;

impl Candidates for Files {
    fn open(&self, source: &Source) -> Result<Offer, Refusal> {
        Ok(Offer::of(std::fs::read_to_string(&source.path)?))
    }
}

/// A served Chorus.
pub(crate) struct House {
    pub(crate) up: ScriptedUpstream,
    pub(crate) configuration: Arc<Configuration>,
    pub(crate) file: PathBuf,
    pub(crate) folder: TempDir,
    records: SqliteRunStore,
    bound: Bound,
    serving: JoinHandle<std::io::Result<()>>,
    http: Client<HttpConnector, Full<Bytes>>,
}

/// A whole answer.
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e}: {:?}", self.body))
    }

    pub(crate) fn etag(&self) -> String {
        self.headers["etag"].to_str().unwrap().to_owned()
    }

    /// The status, and the error's code.
    pub(crate) fn refused(&self) -> (u16, String) {
        let body = self.json();
        (self.status, body["error"]["code"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned())
    }

    /// Content of the first choice.
    pub(crate) fn text(&self) -> String {
        let body = self.json();
        body["choices"][0]["message"]["content"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned()
    }
}

impl House {
    /// Serves that text from a file.
    pub(crate) async fn open(text: &str) -> Self {
        Self::with_encoder(text, None).await
    }

    pub(crate) async fn with_encoder(text: &str, encoder: Option<Arc<dyn TextEncoder>>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        std::fs::write(&file, text).unwrap();
        let versions = Versions::open(&folder.path().join("state"), &file).unwrap();
        Self::serve(text, encoder, folder, Origin::File(file), Some(versions)).await
    }

    /// Serves that text from nowhere.
    pub(crate) async fn built_in(text: &str) -> Self {
        Self::serve(text, None, tempfile::tempdir().unwrap(), Origin::BuiltIn, None).await
    }

    async fn serve(
        text: &str,
        encoder: Option<Arc<dyn TextEncoder>>,
        folder: TempDir,
        origin: Origin,
        versions: Option<Versions>,
    ) -> Self {
        let up = ScriptedUpstream::start().await.unwrap();
        let stock = Arc::new(Stock { base_url: up.base_url(), encoder });
        let records = SqliteRunStore::in_memory().unwrap();
        let checked = chorus_spec::read(text);
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let options = Options { records: Some(Arc::new(records.clone())), ..stock.options() };
        let engine = Engine::new(spec, options).unwrap();
        let file = origin.path().map(PathBuf::from).unwrap_or_default();
        let configuration = Configuration::new(engine.clone(), text, origin, stock, versions);
        let configuration =
            Arc::new(configuration.trying(Arc::new(Files), folder.path().join("rollout.json")));
        let door = Door::new(engine, DoorLimits::default()).managing(Arc::clone(&configuration));
        door.set_ready(true);
        let free = ([127, 0, 0, 1], 0).into();
        let planes = Planes::bind(free, free).await.unwrap();
        let bound = planes.bound().unwrap();
        let grace = Duration::from_secs(5);
        let serving = tokio::spawn(chorus_server::serve(planes, door, CancellationToken::new(), grace));
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { up, configuration, file, folder, records, bound, serving, http }
    }

    /// A request to the management plane.
    pub(crate) fn ask(&self, method: &str, path: &str) -> Builder {
        Request::builder().method(method).uri(format!("http://{}{path}", self.bound.management))
    }

    pub(crate) async fn send(&self, request: Builder, body: impl Into<Bytes>) -> Answer {
        let response = self.http.request(request.body(Full::new(body.into())).unwrap()).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Answer { status: head.status.as_u16(), headers: head.headers, body }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.ask("GET", path), "").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Answer {
        self.send(self.ask("POST", path), body.to_string()).await
    }

    /// A change that is based on what is served now.
    pub(crate) async fn change(&self, method: &str, path: &str, body: impl Into<Bytes>) -> Answer {
        let etag = format!("\"{}\"", self.configuration.state().digest);
        self.send(self.ask(method, path).header("if-match", etag), body).await
    }

    /// A chat completion, whole.
    pub(crate) async fn chat(&self, text: &str) -> Answer {
        self.completion(text, false).await
    }

    /// A chat completion with `stream: true`; its events are the body.
    pub(crate) async fn chat_streamed(&self, text: &str) -> Answer {
        self.completion(text, true).await
    }

    async fn completion(&self, text: &str, stream: bool) -> Answer {
        let messages = json!([{"role": "user", "content": text}]);
        let body = json!({"model": "vllm-sr/auto", "stream": stream, "messages": messages});
        let uri = format!("http://{}/v1/chat/completions", self.bound.data);
        self.send(Request::post(uri), body.to_string()).await
    }

    /// Writes the file and has it loaded.
    pub(crate) async fn load(&self, text: &str) -> Result<Arc<State>, Refusal> {
        std::fs::write(&self.file, text).unwrap();
        self.configuration.reload(Cause::Signal).await
    }

    /// All records, once there are `count`.
    pub(crate) async fn records(&self, count: usize) -> Vec<RunRecord> {
        for _ in 0..1000 {
            let page = Page { limit: 1000, before: None };
            let records = self.records.list(RunFilter::default(), page).await.unwrap();
            if records.len() >= count {
                assert_eq!(records.len(), count);
                return records;
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("fewer than {count} records came");
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// One place a first letter, so that texts with the same words are alike.
pub(crate) struct WordBag;

impl TextEncoder for WordBag {
    fn digest(&self) -> &str {
        "sha256:words"
    }

    fn dimension(&self) -> usize {
        64
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let vector = |text: &&str| {
            let mut counts = vec![0.0_f32; self.dimension()];
            counts[0] = 0.1;
            for word in text.split_whitespace() {
                let place = word.bytes().next().map_or(0, usize::from);
                counts[1 + place % 63] += 1.0;
            }
            let length = counts.iter().map(|x| x * x).sum::<f32>().sqrt();
            counts.into_iter().map(|x| x / length).collect()
        };
        Ok(texts.iter().map(vector).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}
