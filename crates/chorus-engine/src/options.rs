//! What an engine, or another configuration for it, is made with; and why it cannot be.

use crate::budget::Limits;
use crate::env::Env;
use crate::local::LocalModels;
use chorus_infer::TextEncoder;
use chorus_signals::Folders;
use chorus_store::{Recall, RunStore};
use std::sync::Arc;

/// What an engine is built with besides its configuration.
pub struct Options {
    /// The environment.
    pub env: Env,
    /// The encoder of learned signals; without one they are absent.
    pub encoder: Option<Arc<dyn TextEncoder>>,
    /// Models run in this process.
    pub local: Option<Arc<LocalModels>>,
    /// Where run records go; without one they are dropped. `Engine::prepare` leaves an engine's records where they go.
    pub records: Option<Arc<dyn RunStore>>,
    /// What one request may spend.
    pub limits: Limits,
    /// Where memories and documents are kept; without one they are gone with the process. As with records, an engine's stay
    /// where they are.
    pub recall: Option<Recall>,
    /// Where files that the configuration names are looked for: knowledge bases, heads of classifiers.
    pub folders: Folders,
}

impl Options {
    /// Nothing besides an environment: learned signals are absent, no model runs here, records are dropped.
    #[must_use]
    pub fn bare(env: Env) -> Self {
        Self {
            env,
            encoder: None,
            local: None,
            records: None,
            limits: Limits::default(),
            recall: None,
            folders: Folders::default(),
        }
    }
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
    /// A decision's selector cannot be prepared.
    #[error(transparent)]
    Selector(#[from] crate::selection::SelectorFault),
    /// A trained rule over answers cannot be used.
    #[error(transparent)]
    Scorers(#[from] crate::scorers::ScorersFault),
    /// Memories and documents cannot be kept.
    #[error(transparent)]
    Recall(#[from] chorus_store::RecallFault),
    /// A server of what plugins recall from cannot be used.
    #[error(transparent)]
    Shelf(#[from] crate::shelf::ServedFault),
    /// The shared counters of limits cannot be used.
    #[error(transparent)]
    Limits(#[from] crate::quota::LimitsPlaceFault),
    /// The store of the response cache cannot be used.
    #[error(transparent)]
    Cache(#[from] crate::answer_cache::CachePlaceFault),
    /// The store of waiting workflows cannot be opened.
    #[error(transparent)]
    States(#[from] crate::states::StatesFault),
    /// The upstream client cannot be built.
    #[error("the upstream client cannot start: {0}")]
    Upstream(#[from] chorus_upstream::TlsFault),
}
