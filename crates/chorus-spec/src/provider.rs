//! Who can answer: logical models, their cards, and the backends behind them.

use crate::deployment::{Access, BackendLimits, Reliability};
use crate::{ModelId, Place, Secret, Template};
use std::collections::BTreeMap;

/// One logical model: `providers.models[]` joined with its `routing.modelCards[]` entry.
#[derive(Debug, Clone)]
pub struct Model {
    /// Public name.
    pub id: ModelId,
    /// Name sent upstream (`provider_model_id`; the public name when absent).
    pub upstream_name: String,
    /// Dialect of its backends.
    pub api_format: ApiFormat,
    /// Name of its reasoning family, if it has one.
    pub reasoning_family: Option<String>,
    /// Prices; zero when absent.
    pub pricing: Pricing,
    /// What energy its tokens take; zero when absent (*extension*: `energy`).
    pub energy: Energy,
    /// What is done when its backends fail.
    pub reliability: Reliability,
    /// Where it runs; at least one.
    pub backends: Vec<Backend>,
    /// What is declared about it.
    pub card: ModelCard,
    /// Where it was written.
    pub place: Place,
}

/// What `routing.modelCards[]` declares about a model.
#[derive(Debug, Default, Clone)]
pub struct ModelCard {
    /// Total context window in tokens.
    pub context_window_size: Option<u32>,
    /// For people and for description-based selectors.
    pub description: String,
    /// Declared abilities, such as `chat`, `code`, `vision`, `tools`.
    pub capabilities: Vec<String>,
    /// Size as written, such as `7b`.
    pub param_size: Option<String>,
    /// Prior quality in 0..=1.
    pub quality_score: Option<f64>,
    /// `ar`, `omni`, `diffusion` or `text`.
    pub modality: Option<String>,
    /// Free tags.
    pub tags: Vec<String>,
}

/// The shape a backend speaks.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ApiFormat {
    /// OpenAI chat completions.
    #[default]
    OpenAi,
    /// Anthropic Messages.
    Anthropic,
    /// OpenAI chat completions at Azure's paths (*extension*: `azure_openai`).
    Azure,
    /// Google's `generateContent` (*extension*: `gemini`).
    Gemini,
    /// Amazon Bedrock's `Converse` (*extension*: `bedrock`).
    Bedrock,
}

/// Prices per million tokens, in micro-dollars (`prompt_per_1m: 0.5` is 500,000).
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Pricing {
    /// Prompt tokens.
    pub prompt_micro_usd_per_1m: u64,
    /// Completion tokens.
    pub completion_micro_usd_per_1m: u64,
    /// Prompt tokens that the provider had cached.
    pub cached_input_micro_usd_per_1m: Option<u64>,
}

/// Energy of a model's tokens, in joules for a thousand; 0 where nothing is known.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Energy {
    /// Prompt tokens.
    pub joules_per_1k_prompt: f64,
    /// Completion tokens.
    pub joules_per_1k_completion: f64,
}

impl Energy {
    /// What so many tokens take, in joules.
    #[must_use]
    pub fn joules(self, prompt_tokens: u64, completion_tokens: u64) -> f64 {
        (prompt_tokens as f64 * self.joules_per_1k_prompt
            + completion_tokens as f64 * self.joules_per_1k_completion)
            / 1000.0
    }
}

/// One place where a model can be called.
#[derive(Debug, Clone)]
pub struct Backend {
    /// Its name within the model.
    pub name: String,
    /// Where.
    pub endpoint: Endpoint,
    /// Share of traffic among the model's backends; at least 1.
    pub weight: u32,
    /// Its own bounds.
    pub limits: BackendLimits,
}

/// Where a backend listens.
#[derive(Debug, Clone)]
pub enum Endpoint {
    /// An HTTP server that speaks the model's dialect.
    Http {
        /// `http(s)://host[:port][/prefix]`; the chat path is appended.
        base_url: Template,
        /// Path of chat completions below the base (`/chat/completions` when `base_url` was written,
        /// `/v1/chat/completions` when `endpoint` was).
        chat_path: String,
        /// Header that carries the credential (`Authorization`).
        auth_header: String,
        /// Word before the credential (`Bearer`); empty for none.
        auth_prefix: String,
        /// The credential itself: `${NAME}` from `api_key_env`, or `api_key` as written.
        api_key: Option<Secret>,
        /// Further headers.
        extra_headers: BTreeMap<String, Template>,
        /// The API that it speaks: the model's, unless it names its own (*extension*).
        api: ApiFormat,
        /// The way to it.
        access: Box<Access>,
    },
    /// A model of the local store, run in this process (`type: local`, our extension; `model` names the store entry).
    Local {
        /// Name in the model store.
        model: String,
    },
}

/// How a family of models is told to reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReasoningFamily {
    /// Where the parameter goes.
    pub kind: ReasoningKind,
    /// The parameter's name, such as `enable_thinking`.
    pub parameter: String,
}

/// Where a reasoning parameter goes in the request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningKind {
    /// `chat_template_kwargs.<parameter>: bool`.
    ChatTemplateKwargs,
    /// `chat_template_kwargs.<parameter>: effort`.
    ReasoningEffort,
    /// `reasoning_effort: effort` at the top.
    TopLevelReasoningEffort,
}
