//! The engine itself: a configuration made ready, the requests that are alive, and where their records go.

use crate::backends::Backends;
use crate::budget::Limits;
use crate::env::Env;
use crate::evaluate::{self, Evaluation};
use crate::fault::Fault;
use crate::ledger::Ledger;
use crate::life::Life;
use crate::local::LocalModels;
use crate::mom::Mom;
use crate::run::{Inbound, Run, Shared};
use crate::served::ServedRecipe;
use chorus_infer::TextEncoder;
use chorus_spec::{Model, ModelId, Spec};
use chorus_store::{RunId, RunStore};
use chorus_upstream::{ClientOptions, Upstream};
use chorus_wire::{ChatRequest, ModelCard, ModelList};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::task::TaskTracker;

/// Parts of one run that may wait for a slow door.
const PARTS_IN_FLIGHT: usize = 64;

/// What an engine is built with besides its configuration.
pub struct Options {
    /// The environment.
    pub env: Env,
    /// The encoder of learned signals; without one they are absent.
    pub encoder: Option<Arc<dyn TextEncoder>>,
    /// Models run in this process.
    pub local: Option<Arc<LocalModels>>,
    /// Where run records go; without one they are dropped.
    pub records: Option<Arc<dyn RunStore>>,
    /// What one request may spend.
    pub limits: Limits,
}

/// Why an engine cannot start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// A signal cannot be prepared.
    #[error("recipe `{recipe}`: {fault}")]
    Signals {
        /// Whose.
        recipe: String,
        /// Why.
        fault: chorus_signals::PrepareFault,
    },
    /// The upstream client cannot be built.
    #[error("the upstream client cannot start: {0}")]
    Upstream(#[from] chorus_upstream::TlsFault),
}

/// A served Mixture-of-Models. Cloning shares it.
#[derive(Clone)]
pub struct Engine {
    mom: Arc<Mom>,
    records: Option<Arc<dyn RunStore>>,
    alive: TaskTracker,
    callers: Arc<AtomicU64>,
}

impl Engine {
    /// Makes a configuration ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub fn new(spec: Spec, options: Options) -> Result<Self, StartFault> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let gate = Arc::new(Semaphore::new(cores));
        let mut recipes = Vec::with_capacity(spec.recipes.len());
        for recipe in &spec.recipes {
            let served =
                ServedRecipe::prepare(recipe, &spec.global, options.encoder.clone(), Arc::clone(&gate));
            recipes.push(served.map_err(|fault| StartFault::Signals { recipe: recipe.name.clone(), fault })?);
        }
        let upstream = Upstream::new(&ClientOptions::default())?;
        let backends = Backends::new(&spec, upstream, options.local, options.env.clone());
        let mom = Mom { spec, recipes, backends, limits: options.limits, env: options.env };
        Ok(Self {
            mom: Arc::new(mom),
            records: options.records,
            alive: TaskTracker::new(),
            callers: Arc::new(AtomicU64::new(0)),
        })
    }

    /// The configuration that is served.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.mom.spec
    }

    /// Starts a request. It lives until its last part is taken, or the [`Run`] is dropped; then its record is written.
    #[must_use]
    pub fn run(&self, inbound: Inbound) -> Run {
        let (parts, receiver) = mpsc::channel(PARTS_IN_FLIGHT);
        let shared = Arc::new(Shared::default());
        let id = RunId::new().to_string();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let life = Life {
            mom: Arc::clone(&self.mom),
            id: id.clone(),
            created: now,
            caller: self.callers.fetch_add(1, Ordering::Relaxed),
            started: Instant::now(),
            parts,
            shared: Arc::clone(&shared),
            ledger: Ledger::default(),
        };
        let records = self.records.clone();
        self.alive.spawn(async move {
            let record = life.live(inbound).await;
            if let Some(records) = records
                && let Err(fault) = records.append(record).await
            {
                tracing::error!(%fault, "a run record could not be kept");
            }
        });
        Run { id, created: now.as_secs(), parts: receiver, shared }
    }

    /// What would happen to a request; nothing is called, recorded or counted.
    ///
    /// # Errors
    /// An unknown model, or a malformed request.
    pub async fn evaluate(&self, request: ChatRequest) -> Result<Evaluation, Fault> {
        evaluate::evaluate(&self.mom, request).await
    }

    /// Every public name: auto names, Fusion slugs, entrypoints, and concrete models where the file says so.
    #[must_use]
    pub fn models(&self) -> ModelList {
        let spec = &self.mom.spec;
        let window = spec.models.values().filter_map(|m| m.card.context_window_size).min();
        let window = window.filter(|_| spec.models.values().all(|m| m.card.context_window_size.is_some()));
        let entrypoints = spec.entrypoints.iter().flat_map(|e| &e.model_names);
        let routed = spec.global.auto_names.iter().chain(&spec.global.fusion_names).chain(entrypoints);
        let mut cards: Vec<ModelCard> = routed.map(|name| card(name, "chorus", None, window)).collect();
        if spec.global.include_config_models_in_list {
            cards.extend(spec.models.values().map(concrete));
        }
        ModelList::new(cards)
    }

    /// One public name, listed or not: a concrete model can always be asked for.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<ModelCard> {
        let listed = self.models().data.into_iter().find(|card| card.id == name);
        listed.or_else(|| self.mom.spec.models.get(&ModelId::new(name)).map(concrete))
    }

    /// Waits for living requests and their records, at most for `grace`; returns whether all came to their end.
    pub async fn drain(&self, grace: Duration) -> bool {
        self.alive.close();
        let ended = tokio::time::timeout(grace, self.alive.wait()).await.is_ok();
        if let Some(records) = &self.records
            && let Err(fault) = records.flush().await
        {
            tracing::error!(%fault, "run records could not be flushed");
        }
        ended
    }
}

fn concrete(model: &Model) -> ModelCard {
    card(model.id.as_str(), "chorus", Some(&model.card.description), model.card.context_window_size)
}

fn card(id: &str, owner: &str, description: Option<&String>, context_window: Option<u32>) -> ModelCard {
    ModelCard {
        id: id.to_owned(),
        object: "model",
        created: 0,
        owned_by: owner.to_owned(),
        description: description.filter(|d| !d.is_empty()).cloned(),
        context_window,
    }
}
