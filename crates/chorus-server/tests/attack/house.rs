//! A served Chorus whose every name is an operating point for safety, one for each way to work; and what its backend got.

use crate::conversation::{Door, Turns, chat};
use bytes::Bytes;
use chorus_engine::{Artifact, Engine, Env, Options, Point};
use chorus_infer::encoder::{DEFAULT_ENCODER, digest_in};
use chorus_infer::store::{Catalog, ModelStore};
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_policy::Observation;
use chorus_server::{DoorLimits, Planes};
use chorus_spec::BudgetSettings;
use chorus_testkit::{Received, Script, ScriptedUpstream};
use chorus_wire::{ChatRequest, RequestLimits};
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Every way to work on a request, by its name, and the algorithm that does it.
pub(crate) const WAYS: [(&str, &str); 7] = [
    ("one", "{ type: static }"),
    ("confidence", "{ type: confidence, confidence: { escalation_order: declared, threshold: 0.9 } }"),
    ("ratings", "{ type: ratings, ratings: { raters: components, aggregate: best } }"),
    (
        "remom",
        "{ type: remom, remom: { breadth_schedule: [2], model_distribution: equal, synthesis_model: c } }",
    ),
    ("fusion", "{ type: fusion, fusion: { model: judge, analysis_models: [a, b], on_error: skip } }"),
    (
        "workflows",
        "{ type: workflows, workflows: { roles: [{ name: Thinker, models: [a] }, { name: Solver, models: [b] }], final: { model: c } } }",
    ),
    (
        "poll",
        "{ type: poll, poll: { alternatives: 4, steps: [{ models: [a, b], accept: 0.6 }, { models: [c] }] } }",
    ),
];

/// What the backend got, and what its first model is to say.
#[derive(Default)]
struct Backend {
    got: Mutex<Vec<Bytes>>,
    poison: Mutex<Option<String>>,
}

pub(crate) struct House {
    engine: Engine,
    backend: Arc<Backend>,
    data: SocketAddr,
    http: Client<HttpConnector, Full<Bytes>>,
    serving: JoinHandle<std::io::Result<()>>,
    _up: ScriptedUpstream,
}

/// What came of a request.
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) text: String,
    /// Bodies that the backend got for it.
    pub(crate) got: Vec<Bytes>,
}

impl House {
    pub(crate) async fn open(encoder: Arc<dyn TextEncoder>) -> Self {
        let up = ScriptedUpstream::start().await.unwrap();
        let backend = Arc::new(Backend::default());
        let log = Arc::clone(&backend);
        up.otherwise(move |received| log.answer(received));
        let env = Env::having(&[("UP", &up.base_url())]);
        let options = Options { encoder: Some(encoder), ..Options::bare(env) };
        let checked = chorus_spec::read(&file());
        let spec = checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics));
        let artifact = Artifact { points: WAYS.map(|(way, _)| point(way)).into(), ..Artifact::default() };
        let engine = Engine::of(spec, options, artifact).unwrap();
        let door = chorus_server::Door::new(engine.clone(), DoorLimits::default());
        door.set_ready(true);
        let free: SocketAddr = ([127, 0, 0, 1], 0).into();
        let planes = Planes::bind(free, free).await.unwrap();
        let data = planes.bound().unwrap().data;
        let serving = chorus_server::serve(planes, door, CancellationToken::new(), Duration::from_secs(5));
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self { engine, backend, data, http, serving: tokio::spawn(serving), _up: up }
    }

    /// Sends a conversation through a door, to the point of that way.
    pub(crate) async fn send(&self, way: &str, door: Door, turns: &Turns) -> Outcome {
        self.backend.got.lock().unwrap().clear();
        let body = door.request(&name(way), turns).to_string();
        let request =
            Request::post(format!("http://{}{}", self.data, door.path)).body(Full::new(body.into()));
        let response = self.http.request(request.unwrap()).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let got = std::mem::take(&mut *self.backend.got.lock().unwrap());
        Outcome { status, text: door.text(&body), got }
    }

    /// What the backend's first model says from now on.
    pub(crate) fn poison(&self, text: Option<&str>) {
        *self.backend.poison.lock().unwrap() = text.map(str::to_owned);
    }

    /// Whether the classifier lets that conversation pass, asked apart from any door.
    pub(crate) async fn passes(&self, turns: &Turns) -> bool {
        let body = json!({"model": "m", "messages": chat(turns)}).to_string();
        let request = ChatRequest::parse(body.as_bytes(), &RequestLimits::default()).unwrap();
        let seen = self.engine.serving().classifiers.outbound(request).await.unwrap();
        matches!(seen, Observation::Unmatched { .. })
    }

    /// Whether that value is known for personal data in one of the texts, asked apart from any door.
    pub(crate) async fn finds(&self, value: &str, turns: &Turns) -> bool {
        let mom = self.engine.serving();
        for (_, text) in turns.iter().filter(|(_, text)| text.contains(value)) {
            let asked = mom.classifiers.personal_data(text.clone(), 0.5, Vec::new()).await;
            if asked.unwrap().1.text.contains(value) {
                return false;
            }
        }
        true
    }
}

impl Drop for House {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Backend {
    /// Says back every placeholder that it was shown, so that what comes back can be looked at.
    fn answer(&self, received: &Received) -> Script {
        self.got.lock().unwrap().push(received.body.clone());
        let poison = self.poison.lock().unwrap().clone().filter(|_| received.model == "a");
        let shown = placeholders(&String::from_utf8_lossy(&received.body)).join(" and ");
        Script::reply(&poison.unwrap_or_else(|| format!("It concerns {shown} as far as I see.")))
    }
}

/// Every `<KIND_7>` of a text.
pub(crate) fn placeholders(text: &str) -> Vec<String> {
    let inside = |part: &str| part.split_once('>').map(|(name, _)| name.to_owned());
    let is_one = |name: &String| {
        name.rsplit_once('_').is_some_and(|(kind, count)| {
            kind.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
                && count.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let mut found: Vec<String> = text.split('<').skip(1).filter_map(inside).filter(is_one).collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().map(|name| format!("<{name}>")).collect()
}

/// Whether a text stands in a body, in its bytes or in one of its strings.
pub(crate) fn holds(body: &[u8], text: &str) -> bool {
    let written = Value::from(text).to_string();
    let written = written.trim_matches('"').as_bytes();
    body.windows(written.len().max(1)).any(|window| window == written)
        || String::from_utf8_lossy(body).contains(text)
        || serde_json::from_slice(body).is_ok_and(|value: Value| has(&value, text))
}

fn has(value: &Value, text: &str) -> bool {
    match value {
        Value::String(own) => own.contains(text),
        Value::Array(items) => items.iter().any(|item| has(item, text)),
        Value::Object(fields) => fields.iter().any(|(key, item)| key.contains(text) || has(item, text)),
        _ => false,
    }
}

fn name(way: &str) -> String {
    format!("acme/x-{way}")
}

fn point(way: &str) -> Point {
    Point {
        name: way.to_owned(),
        names: vec![name(way)],
        budget: BudgetSettings::default(),
        constraints: vec!["fail_closed".to_owned()],
        objective: "safety".to_owned(),
    }
}

fn file() -> String {
    let model =
        |name: &str| format!("    - {{ name: {name}, backend_refs: [{{ base_url: \"${{UP}}\" }}] }}\n");
    let models: String = ["a", "b", "c", "judge"].into_iter().map(model).collect();
    let recipe = |(way, algorithm): &(&str, &str)| {
        format!(
            "  - name: {way}\n    routing:\n      decisions:\n        - {{ name: {way}, priority: 1, modelRefs: [{{ model: a }}, {{ model: b }}, {{ model: c }}], algorithm: {algorithm} }}\n"
        )
    };
    let recipes: String = WAYS.iter().map(recipe).collect();
    let entrypoint =
        |(way, _): &(&str, &str)| format!("  - {{ model_names: [{}], recipe: {way} }}\n", name(way));
    let entrypoints: String = WAYS.iter().map(entrypoint).collect();
    format!(
        "version: v0.3\nproviders:\n  models:\n{models}routing:\n  decisions: [{{ name: all, priority: 1, modelRefs: [{{ model: a }}] }}]\nrecipes:\n{recipes}entrypoints:\n{entrypoints}"
    )
}

/// An encoder without a model: every text has the same vector, so that the head goes by its words alone.
pub(crate) struct Blank(String);

impl Blank {
    pub(crate) fn new() -> Self {
        Self(digest_in(&Catalog::builtin(), DEFAULT_ENCODER).unwrap())
    }
}

impl TextEncoder for Blank {
    fn digest(&self) -> &str {
        &self.0
    }

    fn dimension(&self) -> usize {
        384
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        Ok(vec![vec![0.0; 384]; texts.len()])
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encode(&[text])
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

/// The default encoder of this user's model store; it reads each text once.
pub(crate) fn real() -> Arc<dyn TextEncoder> {
    let folder = ModelStore::default_dir(|name| std::env::var_os(name)).unwrap();
    let store = ModelStore::open(folder, Catalog::builtin());
    let opened = chorus_infer::encoder::open(&store, DEFAULT_ENCODER);
    let encoder =
        opened.unwrap_or_else(|why| panic!("{why}; `chorus models pull {DEFAULT_ENCODER}` fetches it"));
    Arc::new(Remembering { encoder: Box::new(encoder), read: Mutex::default() })
}

/// An encoder that remembers what it has read.
struct Remembering {
    encoder: Box<dyn TextEncoder>,
    read: Mutex<BTreeMap<String, Vec<Vec<f32>>>>,
}

impl TextEncoder for Remembering {
    fn digest(&self) -> &str {
        self.encoder.digest()
    }

    fn dimension(&self) -> usize {
        self.encoder.dimension()
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        self.encoder.encode(texts)
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        if let Some(known) = self.read.lock().unwrap().get(text) {
            return Ok(known.clone());
        }
        let vectors = self.encoder.encode_windows(text)?;
        self.read.lock().unwrap().insert(text.to_owned(), vectors.clone());
        Ok(vectors)
    }

    fn count_tokens(&self, text: &str) -> usize {
        self.encoder.count_tokens(text)
    }
}
