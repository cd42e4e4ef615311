//! The engine itself: the configuration that is served, the requests that are alive, and where their records go.

use crate::artifact::Artifact;
use crate::evaluate::{self, Evaluation};
use crate::fault::Fault;
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::life::Life;
use crate::mom::Mom;
use crate::options::{Options, StartFault};
use crate::run::{Inbound, Part, Run, Work};
use crate::swap::{Serving, Workshop};
use chorus_spec::{LooperKind, Model, ModelId, Spec};
use chorus_store::{OutcomeStore, Page, RunFilter, RunId, RunRecord, RunStore};
use chorus_wire::{ChatRequest, ModelCard, ModelList};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio_util::task::TaskTracker;

/// Latest runs whose calls are recalled at a start.
const RECALLED_RUNS: usize = 512;

/// Parts of one run that may wait for a slow door.
const PARTS_IN_FLIGHT: usize = 64;

/// A served Mixture-of-Models. Cloning shares it.
#[derive(Clone)]
pub struct Engine {
    serving: Arc<Serving>,
    workshop: Arc<Workshop>,
    records: Option<Arc<dyn RunStore>>,
    outcomes: Option<Arc<dyn OutcomeStore>>,
    alive: TaskTracker,
    callers: Arc<AtomicU64>,
}

impl Engine {
    /// Makes a configuration ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub fn new(spec: Spec, options: Options) -> Result<Self, StartFault> {
        Self::of(spec, options, Artifact::default())
    }

    /// Makes the configuration of an artifact ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub fn of(spec: Spec, options: Options, artifact: Artifact) -> Result<Self, StartFault> {
        let records = options.records.clone();
        let workshop = Workshop::open()?;
        let mom = workshop.prepare(spec, options)?.named(artifact);
        Ok(Self {
            serving: Arc::new(Serving::first(mom)),
            workshop: Arc::new(workshop),
            records,
            outcomes: None,
            alive: TaskTracker::new(),
            callers: Arc::new(AtomicU64::new(0)),
        })
    }

    /// Makes another configuration ready, without serving it. It takes seconds where learned signals have examples:
    /// nothing for a thread of the runtime.
    ///
    /// # Errors
    /// [`StartFault`]; nothing has changed then.
    pub fn prepare(&self, spec: Spec, options: Options) -> Result<Mom, StartFault> {
        self.workshop.prepare(spec, options)
    }

    /// Serves that configuration from the next request on, and returns its generation. A request that has begun ends
    /// on the one that it began with.
    pub fn swap(&self, next: Mom) -> u64 {
        self.serving.swap(next, Vec::new())
    }

    /// As [`swap`](Self::swap), with others beside it for operating points and names of their own.
    pub fn swap_all(&self, next: Mom, others: Vec<Mom>) -> u64 {
        self.serving.swap(next, others)
    }

    /// Serves these beside what is served, for operating points and names of their own.
    pub fn add(&self, others: Vec<Mom>) {
        self.serving.add(others);
    }

    /// What is served now. It stays as it is, whatever is served next.
    #[must_use]
    pub fn serving(&self) -> Arc<Mom> {
        self.serving.now()
    }

    /// Starts a request. It lives until its last part is taken, or the [`Run`] is dropped; then its record is written.
    #[must_use]
    pub fn run(&self, inbound: Inbound) -> Run {
        let (life, parts) = self.life(&inbound);
        let (id, created) = (life.id.clone(), life.created.as_secs());
        let shared = Arc::clone(&life.shared);
        let records = self.records.clone();
        let work = self.alive.track_future(async move {
            let record = life.live(inbound).await;
            log(&record);
            if let Some(records) = records
                && let Err(fault) = records.append(record).await
            {
                tracing::error!(%fault, "a run record could not be kept");
            }
        });
        Run { id, created, parts, shared, work: Work::new(work) }
    }

    /// A life that begins now, and where its parts arrive.
    fn life(&self, inbound: &Inbound) -> (Life, mpsc::Receiver<Part>) {
        let (parts, receiver) = mpsc::channel(PARTS_IN_FLIGHT);
        let mom = self.serving.of(inbound.request.model());
        let life = Life {
            guard: Guard::of(&mom, inbound.request.model()),
            mom,
            id: RunId::new().to_string(),
            created: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            caller: self.callers.fetch_add(1, Ordering::Relaxed),
            started: Instant::now(),
            parts,
            shared: Arc::default(),
            ledger: Ledger::default(),
            held: OnceLock::new(),
        };
        (life, receiver)
    }

    /// What would happen to a request; nothing is called, recorded or counted.
    ///
    /// # Errors
    /// An unknown model, or a malformed request.
    pub async fn evaluate(&self, request: ChatRequest) -> Result<Evaluation, Fault> {
        evaluate::evaluate(&self.serving.of(request.model()), request).await
    }

    /// Every public name: auto names, slugs of loopers, entrypoints, and concrete models where the file says so.
    #[must_use]
    pub fn models(&self) -> ModelList {
        let mom = self.serving.now();
        let spec = &mom.spec;
        let window = spec.models.values().filter_map(|m| m.card.context_window_size).min();
        let window = window.filter(|_| spec.models.values().all(|m| m.card.context_window_size.is_some()));
        let entrypoints = spec.entrypoints.iter().flat_map(|e| &e.model_names);
        let global = &spec.global;
        let decides = |kind| {
            spec.recipes
                .first()
                .is_some_and(|r| r.decisions.iter().any(|d| d.algorithm.looper() == Some(kind)))
        };
        let remom = global.remom_names.iter().filter(|_| decides(LooperKind::ReMoM));
        let flow = global.flow_names.iter().filter(|_| decides(LooperKind::Workflows));
        let slugs = global.fusion_names.iter().chain(remom).chain(flow);
        let routed = global.auto_names.iter().chain(slugs).chain(entrypoints);
        let mut cards: Vec<ModelCard> = routed.map(|name| card(name, "chorus", None, window)).collect();
        if spec.global.include_config_models_in_list {
            cards.extend(spec.models.values().map(concrete));
        }
        for other in self.serving.others() {
            let names = other.spec.entrypoints.iter().flat_map(|e| &e.model_names);
            let new: Vec<&String> =
                names.filter(|name| !cards.iter().any(|card| card.id == **name)).collect();
            cards.extend(new.into_iter().map(|name| card(name, "chorus", None, None)));
        }
        ModelList::new(cards)
    }

    /// One public name, listed or not: a concrete model can always be asked for.
    #[must_use]
    pub fn model(&self, name: &str) -> Option<ModelCard> {
        let listed = self.models().data.into_iter().find(|card| card.id == name);
        listed.or_else(|| self.serving.now().spec.models.get(&ModelId::new(name)).map(concrete))
    }

    /// Where records go.
    pub(crate) fn records(&self) -> Option<&Arc<dyn RunStore>> {
        self.records.as_ref()
    }

    /// Where verdicts on runs go.
    pub(crate) fn outcomes(&self) -> Option<&Arc<dyn OutcomeStore>> {
        self.outcomes.as_ref()
    }

    /// Takes verdicts on runs, and keeps them there; counts those that are kept already.
    pub async fn taking(self, outcomes: Arc<dyn OutcomeStore>) -> Self {
        let engine = Self { outcomes: Some(outcomes), ..self };
        engine.recall_outcomes().await;
        engine
    }

    /// Takes what earlier runs have shown of deployments' latency, from the latest records; none where records are not kept
    /// or cannot be read.
    pub async fn recall(&self) {
        let Some(records) = &self.records else { return };
        let page = Page { limit: RECALLED_RUNS, before: None };
        match records.list(RunFilter::default(), page).await {
            Ok(runs) => self.serving.now().selection.board.recall(&runs),
            Err(fault) => tracing::warn!(%fault, "statistics of earlier runs are not at hand"),
        }
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

/// One line a request, with what it took; no word of it.
fn log(record: &RunRecord) {
    tracing::info!(
        target: "chorus_engine::access",
        run = %record.id,
        status = ?record.status,
        code = record.error_code.as_deref().unwrap_or_default(),
        decision = record.decision.as_deref().unwrap_or_default(),
        models = record.models.join(","),
        calls = record.calls.len(),
        tokens = record.usage.total_tokens,
        cost_micro_usd = record.cost_micro_usd,
        duration_ms = record.duration_ms,
        "run ended"
    );
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
