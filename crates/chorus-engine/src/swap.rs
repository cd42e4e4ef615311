//! One configuration takes the place of another, whole and at once.
//!
//! It knows what all configurations of a process share: the connections, the gate of encoder passes, and workflows that
//! wait. It does not know where a configuration comes from.
//!
//! **Invariant:** a request sees one generation, from its first byte to its record.

use crate::backends::Backends;
use crate::classify::Classifiers;
use crate::mom::Mom;
use crate::options::{Options, StartFault};
use crate::served::ServedRecipe;
use crate::vocabulary;
use arc_swap::ArcSwap;
use chorus_signals::Equipment;
use chorus_spec::Spec;
use chorus_store::MemoryStates;
use chorus_upstream::{ClientOptions, Upstream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Semaphore;

/// The one pointer to what is served.
pub(crate) struct Serving {
    now: ArcSwap<Mom>,
    generations: AtomicU64,
}

impl Serving {
    pub(crate) fn first(mut mom: Mom) -> Self {
        mom.generation = 1;
        Self { now: ArcSwap::from_pointee(mom), generations: AtomicU64::new(1) }
    }

    pub(crate) fn now(&self) -> Arc<Mom> {
        self.now.load_full()
    }

    pub(crate) fn swap(&self, mut next: Mom) -> u64 {
        let generation = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
        next.generation = generation;
        self.now.store(Arc::new(next));
        generation
    }
}

/// Where configurations are made ready.
pub(crate) struct Workshop {
    upstream: Upstream,
    encoder_gate: Arc<Semaphore>,
    workflow_states: Arc<MemoryStates>,
}

impl Workshop {
    pub(crate) fn open() -> Result<Self, StartFault> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            upstream: Upstream::new(&ClientOptions::default())?,
            encoder_gate: Arc::new(Semaphore::new(cores)),
            workflow_states: Arc::default(),
        })
    }

    /// A configuration made ready.
    ///
    /// # Errors
    /// [`StartFault`].
    pub(crate) fn prepare(&self, spec: Spec, options: Options) -> Result<Mom, StartFault> {
        let gate = || Arc::clone(&self.encoder_gate);
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
        Ok(Mom {
            spec,
            recipes,
            backends,
            limits: options.limits,
            env: options.env,
            classifiers,
            workflow_states: Arc::<MemoryStates>::clone(&self.workflow_states),
            generation: 0,
        })
    }
}
