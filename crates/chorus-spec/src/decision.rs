//! Policy as written: a boolean rule over evidence, and what the route carries when it wins.

use crate::{
    Algorithm, CacheSettings, CandidateSet, CompressionSettings, Condition, HallucinationSettings,
    ImageGenSettings, MemorySettings, ModelId, OutputContract, Place, RagSettings, ReplaySettings,
    ResponseJailbreakSettings, Template, ToolSelectionSettings,
};
use std::collections::BTreeMap;

/// How the winner is chosen among matched decisions that have no tier.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Strategy {
    /// Priority, then confidence, then name.
    #[default]
    Priority,
    /// Confidence, then priority, then name.
    Confidence,
}

/// One route of a recipe.
#[derive(Debug, Default, Clone)]
pub struct Decision {
    /// Its name; unique in the recipe.
    pub name: String,
    /// For people.
    pub description: String,
    /// Greater wins.
    pub priority: i64,
    /// Smaller wins over any priority, when above zero.
    pub tier: i64,
    /// `None` matches every request.
    pub rules: Option<Condition>,
    /// Candidates, in order: those of `modelRefs`, then those that loops put out.
    pub model_refs: Vec<ModelRef>,
    /// How candidates become an answer.
    pub algorithm: Algorithm,
    /// What else happens on this route, in order; at most one of a type.
    pub plugins: Vec<Plugin>,
    /// What the model is told about the form of its answer.
    pub output_contract: Option<String>,
    /// What the answer is held to.
    pub output_contract_spec: Option<OutputContract>,
    /// What the client is told about keeping the conversation where it is.
    pub emits: Vec<Retention>,
    /// Loops that put out candidates; what they put out is among `model_refs`.
    pub candidate_iterations: Vec<CandidateIteration>,
    /// Whether and how learning may change this route's choice.
    pub adaptations: Option<Adaptations>,
    /// Values for other programs, as JSON; at most 32 keys and 4,096 bytes together.
    pub annotations: BTreeMap<String, serde_json::Value>,
    /// Where it was written.
    pub place: Place,
}

/// One candidate of a decision.
#[derive(Debug, Clone)]
pub struct ModelRef {
    /// The model.
    pub model: ModelId,
    /// LoRA adapter to ask for instead of the base name.
    pub lora_name: Option<String>,
    /// Share for weighted algorithms.
    pub weight: Option<f64>,
    /// Turn reasoning on or off; `None` leaves the request as it is.
    pub use_reasoning: Option<bool>,
    /// Effort word; the provider default when absent.
    pub reasoning_effort: Option<String>,
}

/// What else happens on a route; one that is switched off is not there.
#[derive(Debug, Clone)]
pub enum Plugin {
    /// Put an operator's system prompt in front.
    SystemPrompt(SystemPrompt),
    /// Edit upstream request headers.
    HeaderMutation(HeaderMutation),
    /// Answer at once, without a model.
    FastResponse {
        /// The answer.
        message: String,
    },
    /// Block, cap or strip request fields.
    RequestParams(RequestParams),
    /// Filter or remove tools.
    Tools(ToolsPlugin),
    /// Choose the tools that a model is offered.
    ToolSelection(Box<ToolSelectionSettings>),
    /// Show what is remembered of the caller, and remember.
    Memory(Box<MemorySettings>),
    /// Look the request up and show what was found.
    Rag(Box<RagSettings>),
    /// Answer as an earlier request was answered.
    ResponseCache(Box<CacheSettings>),
    /// Keep bodies in the run's record.
    RouterReplay(Box<ReplaySettings>),
    /// Shorten what a model is shown.
    ContextCompression(Box<CompressionSettings>),
    /// Refuse or mark an answer that looks like an attempt.
    ResponseJailbreak(ResponseJailbreakSettings),
    /// Mark what the material at hand does not support.
    Hallucination(HallucinationSettings),
    /// Answer with an image.
    ImageGen(Box<ImageGenSettings>),
}

impl Plugin {
    /// The contract's type word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SystemPrompt(_) => "system_prompt",
            Self::HeaderMutation(_) => "header_mutation",
            Self::FastResponse { .. } => "fast_response",
            Self::RequestParams(_) => "request_params",
            Self::Tools(_) => "tools",
            Self::ToolSelection(_) => "tool_selection",
            Self::Memory(_) => "memory",
            Self::Rag(_) => "rag",
            Self::ResponseCache(_) => "response_cache",
            Self::RouterReplay(_) => "router_replay",
            Self::ContextCompression(_) => "context_compression",
            Self::ResponseJailbreak(_) => "response_jailbreak",
            Self::Hallucination(_) => "hallucination",
            Self::ImageGen(_) => "image_gen",
        }
    }
}

/// The `system_prompt` plugin.
#[derive(Debug, Clone)]
pub struct SystemPrompt {
    /// The prompt.
    pub text: String,
    /// What happens to the client's own system message.
    pub mode: SystemPromptMode,
}

/// What happens to the client's own system message.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum SystemPromptMode {
    /// It is replaced.
    #[default]
    Replace,
    /// The operator's text goes in front of it.
    Insert,
}

/// The `header_mutation` plugin.
#[derive(Debug, Default, Clone)]
pub struct HeaderMutation {
    /// Set when absent.
    pub add: Vec<(String, Template)>,
    /// Set always.
    pub update: Vec<(String, Template)>,
    /// Remove.
    pub delete: Vec<String>,
}

/// The `request_params` plugin.
#[derive(Debug, Default, Clone)]
pub struct RequestParams {
    /// Fields that are removed.
    pub blocked: Vec<String>,
    /// Cap of `max_tokens` and `max_completion_tokens`.
    pub max_tokens_limit: Option<u64>,
    /// Cap of `n`.
    pub max_n: Option<u64>,
    /// Remove every field that the chat completions API does not define.
    pub strip_unknown: bool,
}

/// The `tools` plugin.
#[derive(Debug, Default, Clone)]
pub struct ToolsPlugin {
    /// What happens to the client's tools.
    pub mode: ToolsMode,
    /// Names kept in `filtered` mode; empty keeps all.
    pub allow: Vec<String>,
    /// Names removed in `filtered` mode.
    pub block: Vec<String>,
    /// In mode `none`: also turn past tool traffic into plain text.
    pub strip_tool_history: bool,
}

/// What happens to the client's tools.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ToolsMode {
    /// They stay.
    #[default]
    Passthrough,
    /// Only allowed ones stay.
    Filtered,
    /// None stays.
    None,
}

/// A hint to the client about the conversation that this route serves (`emits`, kind `retention`): one
/// `x-vsr-retention-*` header for each field that is there.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// The conversation need not be kept.
    pub drop: Option<bool>,
    /// Turns for which the hint holds; at least 1.
    pub ttl_turns: Option<u64>,
    /// The next turns should go to the same model.
    pub keep_current_model: Option<bool>,
    /// A backend that has the conversation's beginning in its cache is worth more.
    pub prefer_prefix_retention: Option<bool>,
}

/// A loop over candidates (`FOR … IN` in the DSL).
#[derive(Debug, Clone)]
pub struct CandidateIteration {
    /// The loop's variable.
    pub variable: String,
    /// `decision.candidates` or `models`.
    pub source: IterationSource,
    /// What each turn puts out, as (type, value).
    pub outputs: Vec<(String, Option<String>)>,
}

impl CandidateIteration {
    /// Whether its turns put out a model: an output of that type whose value is the variable.
    #[must_use]
    pub fn puts_out_models(&self) -> bool {
        self.outputs
            .iter()
            .any(|(kind, value)| kind == "model" && value.as_deref() == Some(self.variable.as_str()))
    }
}

/// What a [`CandidateIteration`] goes over.
#[derive(Debug, Clone)]
pub enum IterationSource {
    /// The decision's own candidates.
    Candidates,
    /// These models.
    Models(Vec<ModelRef>),
}

/// Whether and how learning may change a route's choice.
#[derive(Debug, Clone, PartialEq)]
pub struct Adaptations {
    /// For the whole route.
    pub mode: AdaptationMode,
    /// For the choice among candidates.
    pub adaptation: Option<AdaptationMode>,
    /// Among whom, where the decision says it itself.
    pub candidates: Option<CandidateSet>,
    /// For the protection of running conversations.
    pub protection: Option<AdaptationMode>,
    /// Weight of staying; at least 0.
    pub stability_weight: Option<f64>,
    /// By how much another must be better; at least 0.
    pub switch_margin: Option<f64>,
}

/// What becomes of a learned proposal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum AdaptationMode {
    /// It is followed.
    #[default]
    Apply,
    /// It is noted.
    Observe,
    /// It is not asked for.
    Bypass,
}
