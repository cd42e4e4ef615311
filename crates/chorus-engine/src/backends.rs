//! The places where models can be called, behind one pair of functions: an HTTP backend, or a model in this process.
//!
//! It chooses a backend, makes one attempt there and says how it went. It knows no budget, no ledger and no algorithm,
//! and makes no second attempt: [`crate::calls`] does.

mod checks;
mod circuit;
mod deployment;
mod line;
mod missed;

use crate::env::Env;
use crate::local::LocalModels;
use crate::qdrant_link::Link;
use chorus_collab::{CallFault, Chunks};
use chorus_spec::{ApiFormat, Endpoint, Model, ModelId, QdrantPlace, Spec, Template};
use chorus_upstream::reliability::BreakerState;
use chorus_upstream::{ChunkStream, Secret, Target, TargetBuilder, Timeouts, Upstream, Vectors, VectorsWish};
use chorus_wire::{ChatReply, ChatRequest, Chunk, RawObject};
use deployment::{Deployment, Underway, lock};
use futures_util::{Stream, StreamExt};
use missed::{call_fault, misconfigured};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

pub(crate) use line::{Line, Until};
pub(crate) use missed::{Missed, Why, word_of};

/// All backends of a configuration.
pub struct Backends {
    upstream: Upstream,
    local: Option<Arc<LocalModels>>,
    env: Env,
    lines: BTreeMap<ModelId, Arc<Line>>,
    checks: Vec<(Arc<Line>, chorus_spec::HealthCheck)>,
    checking: Once,
    random: Mutex<fastrand::Rng>,
    /// Whether nothing may leave: what is played calls nobody.
    sealed: bool,
}

/// The backend that was chosen for a call.
#[derive(Clone)]
pub(crate) struct Picked {
    /// Which of the model's backends.
    pub(crate) index: usize,
    deployment: Arc<Deployment>,
}

impl Picked {
    /// Its name within the model.
    pub(crate) fn name(&self) -> &str {
        &self.deployment.backend.name
    }
}

/// One call as a backend gets it.
pub(crate) struct BackendCall<'a> {
    /// The request, with the backend's own name for the model.
    pub(crate) request: &'a ChatRequest,
    /// Further headers.
    pub(crate) headers: &'a [(String, String)],
    /// How long it may take.
    pub(crate) total: Duration,
    /// Estimated tokens of its prompt.
    pub(crate) tokens: u64,
    /// Whose call it is, for a fair queue.
    pub(crate) caller: u64,
}

/// One call for vectors as a backend gets it.
#[derive(Clone, Copy)]
pub(crate) struct VectorsCall<'a> {
    /// The request, with the backend's own name for the model.
    pub(crate) body: &'a RawObject,
    /// What the answer has to be.
    pub(crate) wish: VectorsWish,
    /// Further headers.
    pub(crate) headers: &'a [(String, String)],
    /// How long it may take.
    pub(crate) total: Duration,
    /// Estimated tokens of the texts.
    pub(crate) tokens: u64,
}

/// How one backend is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackendState {
    /// The logical model.
    pub model: String,
    /// The backend's name within it.
    pub backend: String,
    /// What its breaker lets pass.
    pub breaker: BreakerState,
    /// Calls under way.
    pub in_flight: usize,
}

impl Backends {
    /// Backends of that configuration; `local` runs those of `type: local`.
    #[must_use]
    pub fn new(spec: &Spec, upstream: Upstream, local: Option<Arc<LocalModels>>, env: Env) -> Self {
        let now = Instant::now();
        let line = |model: &Model| Arc::new(Line::new(model, now));
        let lines: BTreeMap<_, _> = spec.models.iter().map(|(id, model)| (id.clone(), line(model))).collect();
        let checked = |(id, model): (&ModelId, &Model)| {
            Some((lines.get(id).cloned()?, model.reliability.health_check.clone()?))
        };
        let checks = spec.models.iter().filter_map(checked).collect();
        let random = Mutex::new(fastrand::Rng::new());
        Self { upstream, local, env, lines, checks, checking: Once::new(), random, sealed: false }
    }

    /// The same, where nothing leaves.
    pub(crate) fn sealed(self) -> Self {
        Self { sealed: true, ..self }
    }

    /// The backends of a model.
    pub(crate) fn line(&self, model: &ModelId) -> Option<&Arc<Line>> {
        self.lines.get(model)
    }

    /// The backend for a call to that model, none of those to avoid.
    ///
    /// # Errors
    /// Why none may be called now.
    pub(crate) fn pick(&self, line: &Line, avoid: &[usize], tokens: u64) -> Result<Picked, Missed> {
        self.checking.call_once(|| {
            for (line, check) in self.checks.iter().filter(|_| !self.sealed) {
                checks::begin(line, check.clone(), self.upstream.clone(), self.env.clone());
            }
        });
        let index = line.choose(avoid, tokens, Instant::now())?;
        let deployment = line.deployments.get(index).cloned();
        let deployment = deployment.ok_or_else(|| misconfigured("the backend is gone"))?;
        Ok(Picked { index, deployment })
    }

    /// The backend of that name, whatever its state.
    pub(crate) fn named(&self, line: &Line, name: &str) -> Option<Picked> {
        let index = line.deployments.iter().position(|it| it.backend.name == name)?;
        Some(Picked { index, deployment: line.deployments.get(index).cloned()? })
    }

    /// A number in 0..1 for jitter.
    pub(crate) fn random(&self) -> f64 {
        lock(&self.random).f64()
    }

    /// How every backend is doing, by model and name.
    #[must_use]
    pub fn states(&self) -> Vec<BackendState> {
        let now = Instant::now();
        let of = |(model, line): (&ModelId, &Arc<Line>)| {
            let state = |it: &Arc<Deployment>| BackendState {
                model: model.to_string(),
                backend: it.backend.name.clone(),
                breaker: it.state(now),
                in_flight: it.in_flight(),
            };
            line.deployments.iter().map(state).collect::<Vec<_>>()
        };
        self.lines.iter().flat_map(of).collect()
    }

    /// One whole answer.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn complete(&self, picked: &Picked, call: BackendCall<'_>) -> Result<ChatReply, Missed> {
        let deployment = &picked.deployment;
        self.open()?;
        if let Endpoint::Local { model } = &deployment.backend.endpoint {
            return Ok(self.local()?.complete(model, call.request, call.caller).await?);
        }
        let target = deployment.target(&self.env).await?;
        let underway = entered(deployment, call.total, call.tokens).await?;
        let limits = deployment.timeouts(call.total);
        let body = body_of(call.request, &deployment.backend.endpoint).into();
        match self.upstream.complete(&target, body, call.headers, &limits).await {
            Ok(reply) => {
                underway.succeeded(reply.usage.map(|usage| usage.total_tokens));
                Ok(reply)
            }
            Err(fault) => {
                underway.failed(&fault);
                Err(fault.into())
            }
        }
    }

    /// Vectors, as the body asks for them.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) async fn vectors(&self, picked: &Picked, call: VectorsCall<'_>) -> Result<Vectors, Missed> {
        let VectorsCall { body, wish, headers, total, tokens } = call;
        let deployment = &picked.deployment;
        self.open()?;
        let target = deployment.target(&self.env).await?;
        let underway = entered(deployment, total, tokens).await?;
        match self.upstream.vectors(&target, body, wish, headers, &deployment.timeouts(total)).await {
            Ok(vectors) => {
                underway.succeeded(vectors.usage.map(|usage| usage.total_tokens));
                Ok(vectors)
            }
            Err(fault) => {
                underway.failed(&fault);
                Err(fault.into())
            }
        }
    }

    /// One answer as a stream, once the backend has begun it.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn stream(&self, picked: &Picked, call: BackendCall<'_>) -> Result<Chunks, Missed> {
        let deployment = &picked.deployment;
        self.open()?;
        if let Endpoint::Local { model } = &deployment.backend.endpoint {
            return Ok(self.local()?.stream(model, call.request, call.caller).await?);
        }
        let target = deployment.target(&self.env).await?;
        let underway = entered(deployment, call.total, call.tokens).await?;
        let limits = deployment.timeouts(call.total);
        let body = body_of(call.request, &deployment.backend.endpoint).into();
        match self.upstream.stream(&target, body, call.headers, &limits).await {
            Ok(chunks) => Ok(Watched { chunks, underway: Some(underway), took: None }.boxed()),
            Err(fault) => {
                underway.failed(&fault);
                Err(fault.into())
            }
        }
    }

    /// A server that is no model, at that address; `${NAME}` in it stands for a variable.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn server(&self, base_url: &str, path: &str) -> Result<Server, CallFault> {
        self.open()?;
        let base_url =
            self.env.resolve(&Template::new(base_url)).map_err(|e| misconfigured(&e.to_string()))?;
        let target = Target::builder(&base_url).chat_path(path).build();
        let target = target.map_err(|e| misconfigured(&e.to_string()))?;
        Ok(Server { upstream: self.upstream.clone(), target })
    }

    /// A server that is no model and asks for a key, sent as a bearer token.
    ///
    /// # Errors
    /// An address that cannot be used, or a variable that is not set.
    pub(crate) fn keyed_server(
        &self,
        base_url: &str,
        path: &str,
        key: Option<&chorus_spec::Secret>,
    ) -> Result<Server, CallFault> {
        self.open()?;
        let mut target = Target::builder(base_url).chat_path(path);
        if let Some(key) = key {
            let key = self.env.reveal(key).map_err(|e| misconfigured(&e.to_string()))?;
            target = target.auth("authorization", "Bearer", Secret::new(&key));
        }
        let target = target.build().map_err(|e| misconfigured(&e.to_string()))?;
        Ok(Server { upstream: self.upstream.clone(), target })
    }

    /// A server that is no model, with headers and a credential of its own.
    ///
    /// # Errors
    /// An address or a header that cannot be used.
    pub(crate) fn site(&self, target: TargetBuilder) -> Result<Server, CallFault> {
        self.open()?;
        let target = target.build().map_err(|e| misconfigured(&e.to_string()))?;
        Ok(Server { upstream: self.upstream.clone(), target })
    }

    /// The way to a Qdrant server, over the same connections.
    ///
    /// # Errors
    /// An address or a key that cannot be used.
    pub(crate) fn qdrant(&self, place: &QdrantPlace, env: &Env) -> Result<Link, CallFault> {
        self.open()?;
        Link::to(place, env, self.upstream.clone()).map_err(|fault| misconfigured(&fault.to_string()))
    }

    fn open(&self) -> Result<(), CallFault> {
        if self.sealed { Err(misconfigured("what is played calls no backend")) } else { Ok(()) }
    }

    fn local(&self) -> Result<&LocalModels, CallFault> {
        self.local.as_deref().ok_or_else(|| misconfigured("this process serves no local models"))
    }
}

/// Waits its turn where a backend takes only so many calls at once.
async fn entered(deployment: &Arc<Deployment>, total: Duration, tokens: u64) -> Result<Underway, Missed> {
    if let Some(underway) = deployment.enter_at_once(tokens) {
        return Ok(underway);
    }
    let entering = Box::pin(tokio::time::timeout(total, deployment.enter(tokens)));
    entering.await.map_err(|_| missed::too_busy())
}

/// A stream whose end reaches the backend's breaker: one that dies amid the answer has failed (case C08).
struct Watched {
    chunks: ChunkStream,
    /// Gone once it has ended.
    underway: Option<Underway>,
    took: Option<u64>,
}

impl Stream for Watched {
    type Item = Result<Chunk, CallFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.underway.is_none() {
            return Poll::Ready(None);
        }
        let item = ready!(self.chunks.poll_next_unpin(cx));
        if let Some(Ok(chunk)) = &item {
            self.took = chunk.usage.map(|usage| usage.total_tokens).or(self.took);
        } else if let Some(underway) = self.underway.take() {
            match &item {
                Some(Err(fault)) => underway.failed(fault),
                _ => underway.succeeded(self.took),
            }
        }
        Poll::Ready(item.map(|item| item.map_err(|fault| call_fault(&fault))))
    }
}

/// The body for that place. What only an Anthropic backend understands goes to no other (case B22).
fn body_of(request: &ChatRequest, endpoint: &Endpoint) -> Vec<u8> {
    let is_anthropic = matches!(endpoint, Endpoint::Http { api: ApiFormat::Anthropic, .. });
    if is_anthropic || !request.has_extras() {
        return request.to_bytes();
    }
    let mut request = request.clone();
    request.strip_extras();
    request.to_bytes()
}

/// A server that is no model.
pub struct Server {
    upstream: Upstream,
    target: Target,
}

impl Server {
    /// What it says to a JSON question, within `total`.
    ///
    /// # Errors
    /// Why it says nothing.
    pub async fn ask(
        &self,
        question: &serde_json::Value,
        total: Duration,
    ) -> Result<serde_json::Value, CallFault> {
        let usual = Timeouts::default();
        let limits = Timeouts { total: usual.total.min(total), ..usual };
        let answer = self.upstream.ask_json(&self.target, question.to_string().into(), &limits).await;
        answer.map_err(|fault| call_fault(&fault))
    }
}

impl Server {
    /// A conversation with it over JSON-RPC, each message within `total`.
    pub(crate) fn converse(&self, revision: &'static str, total: Duration) -> Conversation {
        let usual = Timeouts::default();
        let limits = Timeouts { total: usual.total.min(total), ..usual };
        Conversation(self.upstream.converse(&self.target, revision, limits))
    }
}

/// A conversation over JSON-RPC.
pub(crate) struct Conversation(chorus_upstream::Conversation);

impl Conversation {
    /// The response to a request.
    pub(crate) async fn ask(&mut self, message: &serde_json::Value) -> Result<serde_json::Value, CallFault> {
        self.0.ask(message).await.map_err(|fault| call_fault(&fault))
    }

    /// Sends a notification.
    pub(crate) async fn tell(&mut self, message: &serde_json::Value) -> Result<(), CallFault> {
        self.0.tell(message).await.map_err(|fault| call_fault(&fault))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("origin", &self.target.origin()).finish_non_exhaustive()
    }
}
