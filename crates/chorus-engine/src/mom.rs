//! A configuration made ready to serve; immutable once built.

use crate::answer_cache::AnswerCache;
use crate::artifact::Artifact;
use crate::backends::Backends;
use crate::budget::Limits;
use crate::classify::Classifiers;
use crate::env::Env;
use crate::fault::{Code, Fault};
use crate::meters::Meters;
use crate::quota::Quotas;
use crate::scorers::Scorers;
use crate::selection::Selection;
use crate::served::ServedRecipe;
use crate::shelf::Shelf;
use crate::toolbox::Toolboxes;
use chorus_collab::WorkflowStates;
use chorus_spec::Spec;
use chorus_store::RunStore;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A configuration made ready to serve.
pub struct Mom {
    /// As checked.
    pub spec: Spec,
    /// The headers by which a client may steer plugins, in lower case.
    pub control_headers: BTreeSet<String>,
    /// Its recipes, in order.
    pub recipes: Vec<ServedRecipe>,
    /// Whether a signal or a choice asks a model before the route is known.
    pub(crate) asks_models: bool,
    /// Its backends.
    pub backends: Backends,
    /// What one request may spend.
    pub limits: Limits,
    /// The environment.
    pub env: Env,
    /// The built-in classifiers, for whoever asks them apart from any policy.
    pub classifiers: Classifiers,
    /// How decisions pick among their candidates.
    pub(crate) selection: Selection,
    /// Trained rules over answers.
    pub scorers: Scorers,
    /// Workflows that wait for a client's tools; all configurations of a process share them.
    pub workflow_states: Arc<dyn WorkflowStates>,
    /// How much callers may do.
    pub quotas: Quotas,
    /// Answers to earlier requests; configurations that name the same store share them.
    pub answer_cache: Arc<AnswerCache>,
    /// What plugins recall from; all configurations of a process share it.
    pub shelf: Shelf,
    /// Tools that routes add to requests.
    pub(crate) toolboxes: Toolboxes,
    /// Where run records go; all configurations of a process share it.
    pub(crate) records: Option<Arc<dyn RunStore>>,
    /// What is counted for operators; all configurations of a process share them.
    pub meters: Arc<Meters>,
    /// Which bundle it is of, under which binding and lock, and what it promises.
    pub artifact: Artifact,
    /// Counts what this process has served, from 1.
    pub generation: u64,
}

impl Mom {
    /// The recipe at that index.
    ///
    /// # Errors
    /// [`Code::Internal`] when there is none.
    pub fn recipe(&self, at: usize) -> Result<&ServedRecipe, Fault> {
        self.recipes.get(at).ok_or_else(|| Fault::new(Code::Internal, "the recipe is gone"))
    }

    /// This configuration, where no call leaves.
    #[must_use]
    pub(crate) fn sealed(self) -> Self {
        let backends = self.backends.sealed();
        Self { backends, ..self }
    }

    /// This configuration as the one of that artifact.
    #[must_use]
    pub fn named(self, artifact: Artifact) -> Self {
        Self { artifact, ..self }
    }
}
