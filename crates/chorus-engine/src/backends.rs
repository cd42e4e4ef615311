//! The places where models can be called, behind one pair of functions: an HTTP backend, or a model in this process.
//!
//! It picks a backend by weight and turns every kind of failure into a [`CallFault`]. It knows no budget, no ledger
//! and no algorithm.

use crate::env::Env;
use crate::local::LocalModels;
use chorus_collab::{CallFault, Chunks, FaultKind};
use chorus_spec::{Backend, Endpoint, Model, ModelId, Spec, Template};
use chorus_upstream::{Secret, Target, Timeouts, Upstream, UpstreamFault};
use chorus_wire::{ChatReply, ChatRequest};
use futures_util::StreamExt;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// All backends of a configuration.
pub struct Backends {
    upstream: Upstream,
    local: Option<Arc<LocalModels>>,
    env: Env,
    lines: BTreeMap<ModelId, Line>,
}

/// What is kept of one model.
struct Line {
    /// Calls so far, for taking turns.
    turns: AtomicU64,
    /// The resolved target of each backend, from its first use on.
    targets: Vec<OnceLock<Target>>,
}

/// The backend whose turn it is.
#[derive(Clone, Copy)]
pub struct Picked<'m> {
    /// As configured.
    pub backend: &'m Backend,
    target: &'m OnceLock<Target>,
}

/// One call as a backend gets it.
pub struct BackendCall<'a> {
    /// The request, with the backend's own name for the model.
    pub request: &'a ChatRequest,
    /// Further headers.
    pub headers: &'a [(String, String)],
    /// How long it may take.
    pub total: Duration,
    /// Whose call it is, for a fair queue.
    pub caller: u64,
}

impl Backends {
    /// Backends of that configuration; `local` runs those of `type: local`.
    #[must_use]
    pub fn new(spec: &Spec, upstream: Upstream, local: Option<Arc<LocalModels>>, env: Env) -> Self {
        let line = |model: &Model| Line {
            turns: AtomicU64::new(0),
            targets: model.backends.iter().map(|_| OnceLock::new()).collect(),
        };
        let lines = spec.models.iter().map(|(id, model)| (id.clone(), line(model))).collect();
        Self { upstream, local, env, lines }
    }

    /// The backend whose turn it is, in proportion to weights.
    #[must_use]
    pub fn pick<'m>(&'m self, model: &'m Model) -> Option<Picked<'m>> {
        let line = self.lines.get(&model.id)?;
        let total: u64 = model.backends.iter().map(|b| u64::from(b.weight.max(1))).sum();
        let mut left = line.turns.fetch_add(1, Ordering::Relaxed).checked_rem(total)?;
        let mut places = model.backends.iter().zip(&line.targets);
        let (backend, target) = places.find(|(backend, _)| {
            let weight = u64::from(backend.weight.max(1));
            let hit = left < weight;
            left = left.saturating_sub(weight);
            hit
        })?;
        Some(Picked { backend, target })
    }

    /// One whole answer.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn complete(&self, picked: Picked<'_>, call: BackendCall<'_>) -> Result<ChatReply, CallFault> {
        match &picked.backend.endpoint {
            Endpoint::Local { model } => self.local()?.complete(model, call.request, call.caller).await,
            endpoint => {
                let target = self.target(endpoint, picked.target)?;
                let body = call.request.to_bytes().into();
                let limits = limits(call.total);
                self.upstream.complete(target, body, call.headers, &limits).await.map_err(|f| call_fault(&f))
            }
        }
    }

    /// One answer as a stream, once the backend has begun it.
    ///
    /// # Errors
    /// Why there is none.
    pub async fn stream(&self, picked: Picked<'_>, call: BackendCall<'_>) -> Result<Chunks, CallFault> {
        match &picked.backend.endpoint {
            Endpoint::Local { model } => self.local()?.stream(model, call.request, call.caller).await,
            endpoint => {
                let target = self.target(endpoint, picked.target)?;
                let body = call.request.to_bytes().into();
                let limits = limits(call.total);
                let chunks = self.upstream.stream(target, body, call.headers, &limits).await;
                let chunks = chunks.map_err(|fault| call_fault(&fault))?;
                Ok(chunks.map(|item| item.map_err(|fault| call_fault(&fault))).boxed())
            }
        }
    }

    /// A server that is no model, at that address; `${NAME}` in it stands for a variable.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn server(&self, base_url: &str, path: &str) -> Result<Server, CallFault> {
        let base_url =
            self.env.resolve(&Template::new(base_url)).map_err(|e| misconfigured(&e.to_string()))?;
        let target = Target::builder(&base_url).chat_path(path).build();
        let target = target.map_err(|e| misconfigured(&e.to_string()))?;
        Ok(Server { upstream: self.upstream.clone(), target })
    }

    fn local(&self) -> Result<&LocalModels, CallFault> {
        self.local.as_deref().ok_or_else(|| misconfigured("this process serves no local models"))
    }

    /// The target, resolved on first use: a variable that is set too late is found by the next call.
    fn target<'m>(&self, endpoint: &Endpoint, kept: &'m OnceLock<Target>) -> Result<&'m Target, CallFault> {
        match kept.get() {
            Some(target) => Ok(target),
            None => {
                let target = self.resolve(endpoint)?;
                Ok(kept.get_or_init(|| target))
            }
        }
    }

    fn resolve(&self, endpoint: &Endpoint) -> Result<Target, CallFault> {
        let Endpoint::Http { base_url, chat_path, auth_header, auth_prefix, api_key, extra_headers } =
            endpoint
        else {
            return Err(misconfigured("the backend has no address"));
        };
        let base_url = self.env.resolve(base_url).map_err(|e| misconfigured(&e.to_string()))?;
        let mut target = Target::builder(&base_url).chat_path(chat_path);
        if let Some(key) = api_key {
            let key = self.env.reveal(key).map_err(|e| misconfigured(&e.to_string()))?;
            target = target.auth(auth_header, auth_prefix, Secret::new(&key));
        }
        for (name, value) in extra_headers {
            let value = self.env.resolve(value).map_err(|e| misconfigured(&e.to_string()))?;
            target = target.header(name, &value);
        }
        target.build().map_err(|e| misconfigured(&e.to_string()))
    }
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
        let body = question.to_string().into();
        let answer = self.upstream.ask_json(&self.target, body, &limits(total)).await;
        answer.map_err(|fault| call_fault(&fault))
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("origin", &self.target.origin()).finish_non_exhaustive()
    }
}

fn limits(total: Duration) -> Timeouts {
    let defaults = Timeouts::default();
    Timeouts { total: defaults.total.min(total), ..defaults }
}

/// What is wrong is for the operator, not for the client.
fn misconfigured(detail: &str) -> CallFault {
    tracing::error!(detail, "a backend cannot be called");
    let public = "the backend of the model is not configured; the log of the server says what is missing";
    CallFault { kind: FaultKind::Misconfigured, public: public.to_owned(), status: None }
}

fn call_fault(fault: &UpstreamFault) -> CallFault {
    let kind = match fault {
        UpstreamFault::Timeout { .. } => FaultKind::Timeout,
        UpstreamFault::Status { .. } | UpstreamFault::InBand { .. } => FaultKind::Status,
        _ => FaultKind::Transport,
    };
    tracing::warn!(%fault, "a call to a backend failed");
    CallFault { kind, public: fault.public(), status: fault.status() }
}
