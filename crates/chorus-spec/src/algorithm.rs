//! How the candidates of a decision become an answer.

use crate::{
    BudgetSettings, ConfidenceSettings, GroundingSettings, ModelId, OnError, PollSettings, RatingsSettings,
    RemomSettings, SelectorSettings, WorkflowSettings,
};
use std::time::Duration;

/// The algorithm of a decision.
#[derive(Debug, Default, Clone)]
pub enum Algorithm {
    /// One model: the domain's best known, else the first candidate.
    #[default]
    Static,
    /// One model, picked by a selector.
    Selector(Box<SelectorSettings>),
    /// Panel, judge, synthesis.
    Fusion(Box<FusionSettings>),
    /// A cascade from a small model to a large one.
    Confidence(Box<ConfidenceSettings>),
    /// Candidates side by side, rated.
    Ratings(Box<RatingsSettings>),
    /// Rounds of parallel reasoning, and a synthesis.
    Remom(Box<RemomSettings>),
    /// Bounded roles, or a planner.
    Workflows(Box<WorkflowSettings>),
    /// Weighted votes, step by step (*extension*).
    Poll(Box<PollSettings>),
}

impl Algorithm {
    /// The contract's type word.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Static => "static",
            Self::Selector(it) => it.method.as_str(),
            Self::Fusion(_) => "fusion",
            Self::Confidence(_) => "confidence",
            Self::Ratings(_) => "ratings",
            Self::Remom(_) => "remom",
            Self::Workflows(_) => "workflows",
            Self::Poll(_) => "poll",
        }
    }

    /// Which looper it is, if several models collaborate.
    #[must_use]
    pub fn looper(&self) -> Option<LooperKind> {
        match self {
            Self::Static | Self::Selector(_) => None,
            Self::Fusion(_) => Some(LooperKind::Fusion),
            Self::Confidence(_) => Some(LooperKind::Confidence),
            Self::Ratings(_) => Some(LooperKind::Ratings),
            Self::Remom(_) => Some(LooperKind::ReMoM),
            Self::Workflows(_) => Some(LooperKind::Workflows),
            Self::Poll(_) => Some(LooperKind::Poll),
        }
    }

    /// What a request may spend on it; unbounded where nothing is declared.
    #[must_use]
    pub fn budget(&self) -> BudgetSettings {
        match self {
            Self::Static | Self::Selector(_) => BudgetSettings::default(),
            Self::Fusion(it) => it.budget,
            Self::Confidence(it) => it.budget,
            Self::Ratings(it) => it.budget,
            Self::Remom(it) => it.budget,
            Self::Workflows(it) => it.budget,
            Self::Poll(it) => it.budget,
        }
    }
}

/// The loopers: those of the contract, and Poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each name is the contract's own word for the looper")]
pub enum LooperKind {
    Confidence,
    Ratings,
    ReMoM,
    Fusion,
    Workflows,
    Poll,
}

impl LooperKind {
    /// The contract's type word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Confidence => "confidence",
            Self::Ratings => "ratings",
            Self::ReMoM => "remom",
            Self::Fusion => "fusion",
            Self::Workflows => "workflows",
            Self::Poll => "poll",
        }
    }
}

/// `algorithm.fusion`, and what a request's `fusion` plugin may override.
#[derive(Debug, Clone)]
pub struct FusionSettings {
    /// The judge, who also writes the answer; the first surviving panel member when absent.
    pub judge: Option<ModelId>,
    /// The panel; the decision's candidates when empty. A name may stand twice (a self-panel).
    pub panel: Vec<ModelId>,
    /// Whom to seat where no panel is named (*extension*).
    pub preset: Option<FusionPreset>,
    /// Per-member settings.
    pub overrides: Vec<FusionOverride>,
    /// Most panel calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// Cap of each inner call.
    pub max_completion_tokens: Option<u64>,
    /// How long the panel (and then the judge) may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that are enough; all of the panel when absent.
    pub min_successful_responses: Option<usize>,
    /// Sampling temperature of the panel.
    pub temperature: Option<f64>,
    /// Show the judge's analysis in the trace (default true).
    pub include_analysis: bool,
    /// Show the panel's answers in the trace (default true).
    pub include_intermediate_responses: bool,
    /// What a failing member or judge does (default skip).
    pub on_error: OnError,
    /// Own judge prompt, with `{{original}}` and `{{responses}}`.
    pub analysis_template: Option<String>,
    /// Own synthesis prompt, with `{{original}}`, `{{responses}}` and `{{analysis}}`.
    pub synthesis_template: Option<String>,
    /// Version word of the built-in prompts (default `fusion-v1`).
    pub judge_prompt_version: String,
    /// Our extension: with one usable answer, give it as it is instead of going through synthesis (default false).
    pub single_answer_passthrough: bool,
    /// How often the panel is asked about one question (*extension*).
    pub cadence: PanelCadence,
    /// What the panel's answers are held against before they count; `None` counts all alike.
    pub grounding: Option<GroundingSettings>,
    /// What the request may spend (*extension*).
    pub budget: BudgetSettings,
}

impl Default for FusionSettings {
    fn default() -> Self {
        Self {
            judge: None,
            panel: Vec::new(),
            preset: None,
            overrides: Vec::new(),
            max_concurrent: None,
            max_completion_tokens: None,
            round_timeout: None,
            min_successful_responses: None,
            temperature: None,
            include_analysis: true,
            include_intermediate_responses: true,
            on_error: OnError::Skip,
            analysis_template: None,
            synthesis_template: None,
            judge_prompt_version: "fusion-v1".to_owned(),
            single_answer_passthrough: false,
            cadence: PanelCadence::default(),
            grounding: None,
            budget: BudgetSettings::default(),
        }
    }
}

/// A panel and a judge, seated from the candidates by what their cards declare. Source: `OpenRouter`'s
/// `<task>-<tier>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FusionPreset {
    /// `general-high`: the best by declared quality, at most eight; the best of them judges.
    GeneralHigh,
    /// `general-low`: the three cheapest; the best of them judges.
    GeneralLow,
    /// `self`: the best one, three times.
    SelfPanel,
}

impl FusionPreset {
    /// Every preset with its word.
    pub const WORDS: [(&str, Self); 3] =
        [("general-high", Self::GeneralHigh), ("general-low", Self::GeneralLow), ("self", Self::SelfPanel)];

    /// The preset of that word.
    #[must_use]
    pub fn of_word(word: &str) -> Option<Self> {
        Self::WORDS.into_iter().find(|(known, _)| *known == word).map(|(_, preset)| preset)
    }
}

/// How often a panel is asked, where the answer to a question takes several turns of tool calls.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum PanelCadence {
    /// `user_turn`: once a question; later turns go on with what it said.
    #[default]
    UserTurn,
    /// `every_turn`: again with every turn's tool results.
    EveryTurn,
}

/// Settings of one panel member.
#[derive(Debug, Clone)]
pub struct FusionOverride {
    /// The member.
    pub model: ModelId,
    /// Its temperature.
    pub temperature: Option<f64>,
    /// Its cap.
    pub max_completion_tokens: Option<u64>,
}
