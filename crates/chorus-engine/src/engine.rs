//! The engine itself: the configuration that is served, the requests that are alive, and where their records go.

mod vectors;

pub use vectors::{VectorsAnswer, VectorsAsk};

use crate::artifact::Artifact;
use crate::evaluate::{self, Evaluation};
use crate::fault::Fault;
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::life::Life;
use crate::meters::Meters;
use crate::mom::Mom;
use crate::options::{Options, StartFault};
use crate::parts;
use crate::placed::placed;
use crate::rollout::{self, Stage, Trial};
use crate::run::{Inbound, Part, Run, Work};
use crate::swap::{Serving, Workshop};
use crate::tape::deck::Deck;
use crate::tape::{Tape, Tapes};
use crate::verdicts::Verdicts;
use chorus_spec::{LooperKind, Model, ModelId, Spec};
use chorus_store::{Losses, OutcomeStore, Page, Purpose, RunFilter, RunId, RunRecord, RunStore};
use chorus_wire::{ChatRequest, ModelCard, ModelList, RequestFault};
use serde_json::json;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::Semaphore;
use tokio_util::task::TaskTracker;

/// Latest runs whose calls are recalled at a start.
const RECALLED_RUNS: usize = 512;

/// Most copies of requests that a candidate works on at once (`shadows_in_flight`).
const SHADOWS_IN_FLIGHT: usize = 16;

/// The trace of a record that says what a candidate had to do with it.
const ROLLOUT: &str = "rollout";

/// The constraint of points of which no content is kept.
const NO_RETENTION: &str = "no_retention";

/// A served Mixture-of-Models. Cloning shares it.
#[derive(Clone)]
pub struct Engine {
    serving: Arc<Serving>,
    workshop: Arc<Workshop>,
    records: Option<Arc<dyn RunStore>>,
    /// Where the content of runs is kept, where the operator asked for it.
    tapes: Option<Tapes>,
    /// Places for copies of requests that a candidate is shown.
    shadows: Arc<Semaphore>,
    verdicts: Option<Arc<Verdicts>>,
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
        let workshop = Workshop::open(records.clone(), options.recall.clone())?;
        let mom = workshop.prepare(spec, options)?.named(artifact);
        Ok(Self { records, ..Self::serving_first(mom, workshop) })
    }

    fn serving_first(mom: Mom, workshop: Workshop) -> Self {
        Self {
            serving: Arc::new(Serving::first(mom)),
            workshop: Arc::new(workshop),
            records: None,
            tapes: None,
            shadows: Arc::new(Semaphore::new(SHADOWS_IN_FLIGHT)),
            verdicts: None,
            alive: TaskTracker::new(),
            callers: Arc::new(AtomicU64::new(0)),
        }
    }

    /// The same engine, which keeps what it is asked and what models answer; not of points that demand `no_retention`.
    #[must_use]
    pub fn recording(self, tapes: Tapes) -> Self {
        Self { tapes: Some(tapes), ..self }
    }

    /// An engine that calls nobody, for runs that are executed again.
    ///
    /// # Errors
    /// [`StartFault`].
    pub fn sealed(spec: Spec, options: Options, artifact: Artifact) -> Result<Self, StartFault> {
        let workshop = Workshop::open(None, None)?;
        let mom = workshop.prepare(spec, options)?.named(artifact).sealed();
        Ok(Self::serving_first(mom, workshop))
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

    /// As [`prepare`](Self::prepare), where nothing that it does touches what is served: for what is shown copies of
    /// requests.
    ///
    /// # Errors
    /// [`StartFault`].
    pub fn prepare_apart(&self, spec: Spec, options: Options) -> Result<Mom, StartFault> {
        self.workshop.apart()?.prepare(spec, options)
    }

    /// Tries a candidate beside what is served.
    pub fn try_beside(&self, first: Mom, others: Vec<Mom>, trial: Trial) {
        self.serving.try_beside(first, others, trial);
    }

    /// Tries the same candidate at the same stage for another share; whether there is one.
    pub fn retry(&self, trial: Trial) -> bool {
        self.serving.retry(trial)
    }

    /// Tries no candidate any more.
    pub fn end_trial(&self) {
        self.serving.end_trial();
    }

    /// Serves the candidate from the next request on, and keeps what was served; its generation.
    pub fn promote(&self) -> Option<u64> {
        self.serving.promote()
    }

    /// Serves what was served before the promotion; its generation.
    pub fn demote(&self) -> Option<u64> {
        self.serving.demote()
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
        let chosen = self.serving.choose(inbound.request.model(), || rollout::key(&inbound));
        let (life, parts) = self.life(chosen.mom, &inbound);
        if let Some(candidate) = chosen.shadow {
            self.shadow(candidate, &inbound, &life.id);
        }
        let (id, created) = (life.id.clone(), life.created.as_secs());
        let shared = Arc::clone(&life.shared);
        let (records, meters) = (self.records.clone(), Arc::clone(&life.mom.meters));
        let taping = self.taping(&life, &inbound);
        let alive = self.alive.token();
        let work = placed(|| async move {
            let ledger = life.ledger.clone();
            let mut record = life.live(inbound).await;
            if chosen.is_tried {
                record.traces.insert(ROLLOUT.to_owned(), json!({"stage": Stage::Canary}));
            }
            log(&record);
            if let Some((tapes, tape)) = taping {
                keep(tapes, tape.with_calls_of(ledger.deck())).await;
            }
            record_in(records, &meters, record).await;
            drop(alive);
        });
        Run { id, created, parts, shared, work: Work::new(work) }
    }

    /// Shows a candidate a copy of a request; its answer reaches nobody, and its record says so. A copy too many at once is
    /// not made.
    fn shadow(&self, candidate: Arc<Mom>, inbound: &Inbound, of: &str) {
        let Ok(place) = Arc::clone(&self.shadows).try_acquire_owned() else { return };
        let copy = Inbound {
            budget: inbound.budget,
            caller: inbound.caller.clone(),
            session: inbound.session.clone(),
            ..Inbound::of(inbound.request.clone())
        };
        let (life, parts) = self.life(candidate, &copy);
        let (records, meters) = (self.records.clone(), Arc::clone(&life.mom.meters));
        let of = of.to_owned();
        self.alive.spawn(async move {
            let mut record = parts::unheard(life.live(copy), parts).await;
            record.purpose = Purpose::Shadow;
            record.traces.insert(ROLLOUT.to_owned(), json!({"stage": Stage::Shadow, "shadow_of": of}));
            record_in(records, &meters, record).await;
            drop(place);
        });
    }

    /// Executes a recorded run again, from its recorded answers alone; the record, and where the run strayed from the
    /// recorded one. The engine must be [`sealed`](Self::sealed).
    ///
    /// # Errors
    /// A request that this version does not take any more.
    pub async fn replay(&self, tape: &Tape) -> Result<(RunRecord, Vec<String>), RequestFault> {
        let inbound = tape.inbound()?;
        let (life, parts) = self.life(self.serving.of(inbound.request.model()), &inbound);
        let deck = tape.deck();
        let life = Life {
            id: tape.run.clone(),
            created: Duration::from_millis(tape.at_ms),
            ledger: Ledger::on(Some(deck.clone())),
            ..life
        };
        let record = parts::unheard(life.live(inbound), parts).await;
        Ok((*record, deck.strayed()))
    }

    /// Where the content of a run goes, if it is kept.
    fn taping(&self, life: &Life, inbound: &Inbound) -> Option<(Tapes, Tape)> {
        life.ledger.deck()?;
        Some((self.tapes.clone()?, Tape::begin(&life.id, life.created, inbound)?))
    }

    /// What records a life's calls, if they are kept.
    fn deck(&self, mom: &Mom, name: &str) -> Option<Deck> {
        let is_kept = !mom.artifact.point(name).is_some_and(|point| point.demands(NO_RETENTION));
        self.tapes.as_ref().filter(|_| is_kept).map(|_| Deck::recording())
    }

    /// A life that begins now, and where its parts arrive.
    fn life(&self, mom: Arc<Mom>, inbound: &Inbound) -> (Life, parts::Receiver<Part>) {
        let (parts, receiver) = parts::queue();
        let life = Life {
            guard: Guard::of(&mom, inbound.request.model()),
            ledger: Ledger::on(self.deck(&mom, inbound.request.model())),
            mom,
            id: RunId::new().into(),
            created: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            caller: self.callers.fetch_add(1, Ordering::Relaxed),
            tracing: inbound.tracing.clone(),
            started: Instant::now(),
            parts,
            shared: Arc::default(),
            held: OnceLock::new(),
        };
        (life, receiver)
    }

    /// Where run records go.
    #[must_use]
    pub fn records(&self) -> Option<&Arc<dyn RunStore>> {
        self.records.as_ref()
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

    /// Where verdicts on runs go.
    pub(crate) fn verdicts(&self) -> Option<&Arc<Verdicts>> {
        self.verdicts.as_ref()
    }

    /// Takes verdicts on runs, and keeps them there; counts those that are kept already, and those that other processes are
    /// told, every [`HEAR_EVERY`](crate::HEAR_EVERY).
    pub async fn taking(self, outcomes: Arc<dyn OutcomeStore>) -> Self {
        let experience = Arc::clone(&self.serving().selection.experience);
        Self { verdicts: Some(Verdicts::of(outcomes, experience).await), ..self }
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

    /// Does work that no request waits for; a stop waits for it as for a request.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.alive.spawn(work);
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

/// Keeps a run's record, where records are kept; nobody waits until it is safe, and what goes wrong there is counted and
/// the log's, not the answer's.
async fn record_in(records: Option<Arc<dyn RunStore>>, meters: &Arc<Meters>, record: Box<RunRecord>) {
    if let Some(records) = records {
        records.hand_over(record, Arc::clone(meters) as Arc<dyn Losses>).await;
    }
}

/// Writes a tape; what is kept of a run is no part of its answer, so a fault goes to the log alone.
async fn keep(tapes: Tapes, tape: Tape) {
    let kept = tokio::task::spawn_blocking(move || tapes.keep(tape)).await;
    if !matches!(kept, Ok(Ok(()))) {
        tracing::error!("the content of a run could not be kept");
    }
}

/// One line a request, with what it took; no word of it.
fn log(record: &RunRecord) {
    tracing::info!(
        target: "chorus_engine::access",
        run = %record.id,
        status = ?record.status,
        code = record.error_code.as_deref(),
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
