//! One configuration takes the place of another, whole and at once.
//!
//! It knows what all configurations of a process share: the connections, the gate of encoder passes, and workflows that
//! wait. It does not know where a configuration comes from.
//!
//! **Invariant:** a request sees one generation, from its first byte to its record.

use crate::artifact::Artifact;
use crate::backends::Backends;
use crate::classify::Classifiers;
use crate::identity::identify;
use crate::meters::Meters;
use crate::mom::Mom;
use crate::options::{Options, StartFault};
use crate::quota::{Counters, Quotas};
use crate::scorers::Scorers;
use crate::selection::{self, Selection};
use crate::served::ServedRecipe;
use crate::states::SharedStates;
use crate::vocabulary;
use arc_swap::ArcSwap;
use chorus_signals::Equipment;
use chorus_spec::Spec;
use chorus_upstream::{ClientOptions, Upstream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// The one pointer to what is served.
pub(crate) struct Serving {
    now: ArcSwap<Fleet>,
    generations: AtomicU64,
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
}

impl Serving {
    pub(crate) fn first(mut mom: Mom) -> Self {
        mom.generation = 1;
        let fleet = Fleet { first: Arc::new(mom), others: Vec::new() };
        Self { now: ArcSwap::from_pointee(fleet), generations: AtomicU64::new(1) }
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

    pub(crate) fn swap(&self, mut next: Mom, mut others: Vec<Mom>) -> u64 {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        next.generation = generation;
        others.iter_mut().for_each(|it| it.generation = generation);
        let others = others.into_iter().map(Arc::new).collect();
        self.now.store(Arc::new(Fleet { first: Arc::new(next), others }));
        generation
    }
}

/// Where configurations are made ready.
pub(crate) struct Workshop {
    upstream: Upstream,
    encoder_gate: Arc<Semaphore>,
    workflow_states: SharedStates,
    meters: Arc<Meters>,
    counters: Counters,
    selection: selection::Shared,
}

impl Workshop {
    pub(crate) fn open() -> Result<Self, StartFault> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let encoder_gate = Arc::new(Semaphore::new(cores));
        let selection = selection::Shared {
            board: Arc::default(),
            experience: Arc::default(),
            sessions: Arc::default(),
            gate: Arc::clone(&encoder_gate),
        };
        Ok(Self {
            upstream: Upstream::new(&ClientOptions::default())?,
            encoder_gate,
            selection,
            workflow_states: SharedStates::default(),
            meters: Arc::default(),
            counters: Counters::default(),
        })
    }

    /// A configuration made ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub(crate) fn prepare(&self, spec: Spec, options: Options) -> Result<Mom, StartFault> {
        let gate = || Arc::clone(&self.encoder_gate);
        let scorers = Scorers::read(&spec, &options.folders)?;
        let selection =
            Selection::prepare(&spec, options.encoder.clone(), &options.folders, self.selection.clone())?;
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
        let quotas = Quotas::new(&spec.global.rate_limits, self.counters.clone());
        Ok(Mom {
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
            artifact: Artifact::default(),
            generation: 0,
        })
    }
}
