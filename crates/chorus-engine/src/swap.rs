//! One configuration takes the place of another, whole and at once.
//!
//! It knows what all configurations of a process share: the connections, the gate of encoder passes, and workflows that
//! wait. It does not know where a configuration comes from.
//!
//! **Invariant:** a request sees one generation, from its first byte to its record.

use crate::answer_cache::Caches;
use crate::artifact::Artifact;
use crate::backends::Backends;
use crate::classify::Classifiers;
use crate::identity::identify;
use crate::meters::Meters;
use crate::mom::Mom;
use crate::options::{Options, StartFault};
use crate::quota::{Counters, Quotas};
use crate::rollout::{Stage, Trial};
use crate::scorers::Scorers;
use crate::selection::{self, Selection};
use crate::served::ServedRecipe;
use crate::shelf::Shelf;
use crate::states::SharedStates;
use crate::toolbox::Toolboxes;
use crate::vocabulary;
use arc_swap::{ArcSwap, ArcSwapOption};
use chorus_signals::Equipment;
use chorus_spec::Spec;
use chorus_store::{Recall, RunStore};
use chorus_upstream::{ClientOptions, Upstream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// The one pointer to what is served, and those to what is tried beside it and what was served before.
pub(crate) struct Serving {
    now: ArcSwap<Fleet>,
    tried: ArcSwapOption<Tried>,
    before: ArcSwapOption<Fleet>,
    generations: AtomicU64,
}

/// A candidate, and how it is tried.
struct Tried {
    fleet: Arc<Fleet>,
    trial: Trial,
}

/// Who serves a request.
pub(crate) struct Chosen {
    pub(crate) mom: Arc<Mom>,
    /// Whether that is the candidate.
    pub(crate) is_tried: bool,
    /// Who is shown a copy of it.
    pub(crate) shadow: Option<Arc<Mom>>,
}

/// Everything that is served at once: the one that any name leads to, and others for names of their own.
pub(crate) struct Fleet {
    first: Arc<Mom>,
    others: Vec<Arc<Mom>>,
}

impl Fleet {
    /// Who serves that name: whose operating point it is, else the first that knows it.
    fn of(&self, name: &str) -> &Arc<Mom> {
        let all = || std::iter::once(&self.first).chain(&self.others);
        let has = |it: &&Arc<Mom>| it.artifact.point(name).is_some() || it.artifact.admit(name).is_err();
        let knows = |it: &&Arc<Mom>| identify(&it.spec, name).is_ok();
        all().find(has).or_else(|| all().find(knows)).unwrap_or(&self.first)
    }

    /// Whether anybody in it serves that name.
    fn knows(&self, name: &str) -> bool {
        identify(&self.of(name).spec, name).is_ok()
    }

    fn numbered(mut first: Mom, mut others: Vec<Mom>, generation: u64) -> Self {
        first.generation = generation;
        others.iter_mut().for_each(|it| it.generation = generation);
        Self { first: Arc::new(first), others: others.into_iter().map(Arc::new).collect() }
    }
}

impl Serving {
    pub(crate) fn first(mom: Mom) -> Self {
        let fleet = Fleet::numbered(mom, Vec::new(), 1);
        let (tried, before) = (ArcSwapOption::empty(), ArcSwapOption::empty());
        Self { now: ArcSwap::from_pointee(fleet), tried, before, generations: AtomicU64::new(1) }
    }

    /// The one that any name leads to.
    pub(crate) fn now(&self) -> Arc<Mom> {
        Arc::clone(&self.now.load().first)
    }

    /// The one that serves that name.
    pub(crate) fn of(&self, name: &str) -> Arc<Mom> {
        Arc::clone(self.now.load().of(name))
    }

    /// The others.
    pub(crate) fn others(&self) -> Vec<Arc<Mom>> {
        self.now.load().others.clone()
    }

    /// Puts others beside the one that is served; they are of its generation.
    pub(crate) fn add(&self, others: Vec<Mom>) {
        let now = self.now.load_full();
        let added = others.into_iter().map(|mut it| {
            it.generation = now.first.generation;
            Arc::new(it)
        });
        let others = now.others.iter().cloned().chain(added).collect();
        self.now.store(Arc::new(Fleet { first: Arc::clone(&now.first), others }));
    }

    /// Serves these. What was promoted before is forgotten; what is tried beside it stays.
    pub(crate) fn swap(&self, next: Mom, others: Vec<Mom>) -> u64 {
        let generation = self.next_generation();
        self.before.store(None);
        self.now.store(Arc::new(Fleet::numbered(next, others, generation)));
        generation
    }

    /// Who serves the request of that name and conversation. A candidate serves names that what is served knows too, and
    /// as a canary also those that it alone knows.
    pub(crate) fn choose(&self, name: &str, key: impl FnOnce() -> String) -> Chosen {
        let now = self.now.load();
        let stable = || Chosen { mom: Arc::clone(now.of(name)), is_tried: false, shadow: None };
        let tried = self.tried.load();
        let Some(tried) = tried.as_ref().filter(|tried| tried.fleet.knows(name)) else { return stable() };
        let is_known = now.knows(name);
        let candidate = tried.fleet.of(name);
        let takes = tried.trial.takes(&key(), candidate.spec.digest.as_str());
        match tried.trial.stage {
            Stage::Canary if takes || !is_known => {
                Chosen { mom: Arc::clone(candidate), is_tried: true, shadow: None }
            }
            Stage::Shadow if takes && is_known => Chosen { shadow: Some(Arc::clone(candidate)), ..stable() },
            _ => stable(),
        }
    }

    /// Tries these beside what is served, in the place of what was tried before.
    pub(crate) fn try_beside(&self, first: Mom, others: Vec<Mom>, trial: Trial) {
        let fleet = Arc::new(Fleet::numbered(first, others, self.next_generation()));
        self.tried.store(Some(Arc::new(Tried { fleet, trial })));
    }

    /// Tries the same candidate for another share of conversations; whether there is one at that stage.
    pub(crate) fn retry(&self, trial: Trial) -> bool {
        let tried = self.tried.load_full().filter(|tried| tried.trial.stage == trial.stage);
        let fleet = tried.map(|tried| Arc::clone(&tried.fleet));
        fleet.map(|fleet| self.tried.store(Some(Arc::new(Tried { fleet, trial })))).is_some()
    }

    /// Tries nothing any more.
    pub(crate) fn end_trial(&self) {
        self.tried.store(None);
    }

    /// Serves what is tried, by one store of a pointer, and keeps what was served; its generation.
    pub(crate) fn promote(&self) -> Option<u64> {
        let tried = self.tried.swap(None)?;
        let before = self.now.swap(Arc::clone(&tried.fleet));
        self.before.store(Some(before));
        Some(tried.fleet.first.generation)
    }

    /// Serves what was served before the promotion, by one store of a pointer; its generation.
    pub(crate) fn demote(&self) -> Option<u64> {
        let before = self.before.swap(None)?;
        let generation = before.first.generation;
        self.now.store(before);
        Some(generation)
    }

    fn next_generation(&self) -> u64 {
        self.generations.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Where configurations are made ready.
pub(crate) struct Workshop {
    upstream: Upstream,
    encoder_gate: Arc<Semaphore>,
    workflow_states: SharedStates,
    meters: Arc<Meters>,
    caches: Caches,
    /// Whether it must not touch what is served.
    apart: bool,
    shelf: Shelf,
    records: Option<Arc<dyn RunStore>>,
    counters: Counters,
    selection: selection::Shared,
}

impl Workshop {
    pub(crate) fn open(
        records: Option<Arc<dyn RunStore>>,
        recall: Option<Recall>,
    ) -> Result<Self, StartFault> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let gate = Arc::new(Semaphore::new(cores));
        Ok(Self::over(Upstream::new(&ClientOptions::default())?, gate, records, Shelf::over(recall)?))
    }

    /// A workshop for what must not touch what is served: its sessions, counters, statistics and waiting workflows are
    /// its own, and so are memories and documents; the connections and the encoder's gate are shared.
    pub(crate) fn apart(&self) -> Result<Self, StartFault> {
        let (upstream, gate) = (self.upstream.clone(), Arc::clone(&self.encoder_gate));
        let own = Self::over(upstream, gate, None, Shelf::over(None)?);
        Ok(Self { apart: true, caches: Caches::apart(), ..own })
    }

    fn over(
        upstream: Upstream,
        encoder_gate: Arc<Semaphore>,
        records: Option<Arc<dyn RunStore>>,
        shelf: Shelf,
    ) -> Self {
        let selection = selection::Shared {
            board: Arc::default(),
            experience: Arc::default(),
            sessions: Arc::default(),
            gate: Arc::clone(&encoder_gate),
        };
        Self {
            upstream,
            encoder_gate,
            selection,
            workflow_states: SharedStates::default(),
            meters: Arc::default(),
            caches: Caches::default(),
            apart: false,
            shelf,
            records,
            counters: Counters::default(),
        }
    }

    /// A configuration made ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub(crate) fn prepare(&self, spec: Spec, options: Options) -> Result<Mom, StartFault> {
        let gate = || Arc::clone(&self.encoder_gate);
        let scorers = Scorers::read(&spec, &options.folders)?;
        let selection =
            Selection::prepare(&spec, options.encoder.clone(), &options.folders, self.selection.clone())?
                .sharing(
                    spec.global.session_store.as_deref().filter(|_| !self.apart),
                    &options.env,
                    &self.meters,
                )?;
        let toolboxes = Toolboxes::read(&spec, &options.folders);
        let equipment = Equipment { folders: options.folders, ..Equipment::of(options.encoder.clone()) };
        let mut recipes = Vec::with_capacity(spec.recipes.len());
        for recipe in &spec.recipes {
            let vocabularies = vocabulary::of(recipe, &spec, options.local.as_deref());
            let equipment = Equipment { vocabularies, ..equipment.clone() };
            let served = ServedRecipe::prepare(recipe, &spec.global, equipment, gate());
            recipes.push(served.map_err(|fault| StartFault::Signals { recipe: recipe.name.clone(), fault })?);
        }
        let classifiers = Classifiers::prepare(&spec.global, options.encoder, gate())
            .map_err(|fault| StartFault::Signals { recipe: "classifiers".to_owned(), fault })?;
        let backends = Backends::new(&spec, self.upstream.clone(), options.local, options.env.clone());
        let workflow_states = self.workflow_states.of(&spec.global.flow_state, &options.env)?;
        let quotas = Quotas::of(&spec.global, self.counters.clone(), &options.env)?;
        let answer_cache = self.caches.of(&spec.global.response_cache, &options.env, &self.upstream)?;
        let shelf = if self.apart {
            self.shelf.clone()
        } else {
            self.shelf.served(&spec.global, &options.env, &self.upstream)?
        };
        Ok(Mom {
            asks_models: recipes.iter().any(ServedRecipe::asks_models) || selection.asks_models(),
            control_headers: spec.control_headers(),
            spec,
            recipes,
            backends,
            limits: options.limits,
            env: options.env,
            classifiers,
            workflow_states,
            selection,
            scorers,
            quotas,
            meters: Arc::clone(&self.meters),
            answer_cache,
            shelf,
            toolboxes,
            records: self.records.clone(),
            artifact: Artifact::default(),
            generation: 0,
        })
    }
}
