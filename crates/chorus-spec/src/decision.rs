//! Policy as written: a boolean rule over evidence, and what the route carries when it wins.

use crate::{Algorithm, Condition, ModelId, Place, Template};

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
#[derive(Debug, Clone)]
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
    /// Candidates, in order.
    pub model_refs: Vec<ModelRef>,
    /// How candidates become an answer.
    pub algorithm: Algorithm,
    /// What else happens on this route, in order; at most one of a type.
    pub plugins: Vec<Plugin>,
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

/// What else happens on a route.
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
    /// Known to the contract, not supported yet; disabled ones are dropped when read.
    Unsupported {
        /// The contract's type word.
        kind: String,
        /// Where it was written.
        place: Place,
    },
}

impl Plugin {
    /// The contract's type word.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::SystemPrompt(_) => "system_prompt",
            Self::HeaderMutation(_) => "header_mutation",
            Self::FastResponse { .. } => "fast_response",
            Self::RequestParams(_) => "request_params",
            Self::Tools(_) => "tools",
            Self::Unsupported { kind, .. } => kind,
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
