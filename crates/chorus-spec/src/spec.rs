//! The whole of a checked configuration.

use crate::{
    Decision, Digest, Model, ModelId, Place, Projections, PrototypeScoring, ReasoningFamily, Signal, Strategy,
};
use std::collections::BTreeMap;
use std::time::Duration;

/// A checked v0.3 configuration.
#[derive(Debug, Clone)]
pub struct Spec {
    /// Digest of the file's bytes: the identity that run records name.
    pub digest: Digest,
    /// Where the data plane listens; empty means the command line's default.
    pub listeners: Vec<Listener>,
    /// Logical models by name.
    pub models: BTreeMap<ModelId, Model>,
    /// Answers what no decision claims.
    pub default_model: Option<ModelId>,
    /// Effort when reasoning is on and nobody says which.
    pub default_reasoning_effort: Option<String>,
    /// Reasoning families by name.
    pub reasoning_families: BTreeMap<String, ReasoningFamily>,
    /// Recipes; the first is `default` (the top-level `routing`).
    pub recipes: Vec<Recipe>,
    /// Names that lead to a recipe.
    pub entrypoints: Vec<Entrypoint>,
    /// The rest.
    pub global: Global,
}

impl Spec {
    /// The recipe of that name.
    #[must_use]
    pub fn recipe(&self, name: &str) -> Option<&Recipe> {
        self.recipes.iter().find(|r| r.name == name)
    }
}

/// One place where the data plane listens.
#[derive(Debug, Clone)]
pub struct Listener {
    /// Its name.
    pub name: String,
    /// IP address as written.
    pub address: String,
    /// TCP port.
    pub port: u16,
    /// Longest time of one request.
    pub timeout: Option<Duration>,
}

/// One routing policy.
#[derive(Debug, Default, Clone)]
pub struct Recipe {
    /// Its name; `default` for the top-level one.
    pub name: String,
    /// For people.
    pub description: String,
    /// How the winner is chosen.
    pub strategy: Strategy,
    /// What can be asked about a request.
    pub signals: Vec<Signal>,
    /// Evidence combined.
    pub projections: Projections,
    /// Routes.
    pub decisions: Vec<Decision>,
}

/// Model names that lead to a recipe.
#[derive(Debug, Clone)]
pub struct Entrypoint {
    /// The names.
    pub model_names: Vec<String>,
    /// The recipe.
    pub recipe: String,
    /// Where it was written.
    pub place: Place,
}

/// What `global` says, as far as this version runs it; defaults filled.
#[derive(Debug, Clone)]
pub struct Global {
    /// Names that lead to the default recipe (`MoM`, `vllm-sr/auto` and `global.router.auto_model_names`).
    pub auto_names: Vec<String>,
    /// Names that lead to Fusion decisions only (`vllm-sr/fusion`, `openrouter/fusion` unless configured).
    pub fusion_names: Vec<String>,
    /// Names of loopers that are known, not supported yet (`vllm-sr/remom`, `vllm-sr/flow`).
    pub unsupported_looper_names: Vec<String>,
    /// Whether `GET /v1/models` lists concrete models too.
    pub include_config_models_in_list: bool,
    /// Longest time of one looper call (`integrations.looper.timeout_seconds`).
    pub looper_timeout: Duration,
    /// Prototype scoring of embedding signals.
    pub embedding_prototypes: PrototypeScoring,
    /// Embedding rules that stay matched, best first; 0 is all.
    pub embedding_top_k: usize,
    /// Least similarity of a soft match; `None` turns soft matching off.
    pub embedding_soft_threshold: Option<f64>,
    /// Prototype scoring of complexity signals.
    pub complexity_prototypes: PrototypeScoring,
    /// Least probability of a domain.
    pub domain_threshold: f64,
    /// Where the management plane listens.
    pub management_address: String,
    /// Its port.
    pub management_port: u16,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            auto_names: vec!["MoM".to_owned(), "vllm-sr/auto".to_owned()],
            fusion_names: vec!["vllm-sr/fusion".to_owned(), "openrouter/fusion".to_owned()],
            unsupported_looper_names: vec!["vllm-sr/remom".to_owned(), "vllm-sr/flow".to_owned()],
            include_config_models_in_list: false,
            looper_timeout: Duration::from_secs(1200),
            embedding_prototypes: PrototypeScoring::default(),
            embedding_top_k: 1,
            embedding_soft_threshold: Some(0.5),
            complexity_prototypes: PrototypeScoring::default(),
            domain_threshold: 0.5,
            management_address: "127.0.0.1".to_owned(),
            management_port: 8080,
        }
    }
}
