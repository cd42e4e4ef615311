//! Settings of the selectors: how one of a decision's candidates is picked; defaults filled.
//!
//! Sources: contract §1.7 for keys and defaults, where §7.1 does not call one a fault. Keys that the contract does not
//! have are marked *extension*. It knows no selector's arithmetic.

use crate::{ModelId, OnError, RedisServer};
use std::time::Duration;

/// How a decision picks one of its candidates.
#[derive(Debug, Clone)]
pub struct SelectorSettings {
    /// By what.
    pub method: SelectorMethod,
    /// What happens when it cannot choose: `skip` takes the first candidate of the static order, `fail` refuses.
    pub on_error: OnError,
}

/// The selectors besides `static`, with their settings.
#[derive(Debug, Clone)]
pub enum SelectorMethod {
    /// Nearness of the request to what model cards say.
    RouterDc(RouterDcSettings),
    /// Experience, nearness, AutoMix value and price together.
    Hybrid(HybridSettings),
    /// The quickest.
    LatencyAware(LatencyAwareSettings),
    /// Quality, latency, price and load, within limits.
    MultiFactor(MultiFactorSettings),
    /// The cheapest that is expected to pass.
    Automix(AutomixSettings),
    /// A model is asked.
    Prompt(PromptSettings),
    /// Nearest neighbours of a trained set.
    Knn(LearnedSettings),
    /// Clusters of a trained set.
    Kmeans(LearnedSettings),
    /// A trained support vector machine.
    Svm(LearnedSettings),
    /// A trained network.
    Mlp(LearnedSettings),
    /// Ratings from comparisons (*extension*: the contract hides it).
    Elo(EloSettings),
    /// A draw from what is believed about each (*extension*: the contract hides it).
    Thompson(ThompsonSettings),
}

impl SelectorMethod {
    /// The contract's type word.
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::RouterDc(_) => "router_dc",
            Self::Hybrid(_) => "hybrid",
            Self::LatencyAware(_) => "latency_aware",
            Self::MultiFactor(_) => "multi_factor",
            Self::Automix(_) => "automix",
            Self::Prompt(_) => "prompt",
            Self::Knn(_) => "knn",
            Self::Kmeans(_) => "kmeans",
            Self::Svm(_) => "svm",
            Self::Mlp(_) => "mlp",
            Self::Elo(_) => "elo",
            Self::Thompson(_) => "thompson",
        }
    }
}

/// `algorithm.router_dc`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RouterDcSettings {
    /// Sharpness of the softmax over similarities; above 0, default 0.07.
    pub temperature: f64,
    /// Least similarity of a candidate, in 0..=1; default 0.3.
    pub min_similarity: f64,
    /// A candidate without a description is not looked at (default false: it counts as unrelated).
    pub require_descriptions: bool,
    /// A card's `capabilities` are read with its description (default false).
    pub use_capabilities: bool,
}

impl Default for RouterDcSettings {
    fn default() -> Self {
        Self { temperature: 0.07, min_similarity: 0.3, require_descriptions: false, use_capabilities: false }
    }
}

/// `algorithm.automix`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AutomixSettings {
    /// Expected quality from which an answer would be accepted, in 0..=1; default 0.7.
    pub verification_threshold: f64,
    /// Escalations that a start may be charged for; default 2.
    pub max_escalations: u32,
    /// Whether price counts (default true).
    pub cost_aware_routing: bool,
    /// Weight of price against quality, in 0..=1; default 0.3.
    pub cost_quality_tradeoff: f64,
    /// What is left of a start's value after each expected escalation, in 0..=1; default 0.95.
    pub discount_factor: f64,
}

impl Default for AutomixSettings {
    fn default() -> Self {
        Self {
            verification_threshold: 0.7,
            max_escalations: 2,
            cost_aware_routing: true,
            cost_quality_tradeoff: 0.3,
            discount_factor: 0.95,
        }
    }
}

/// `algorithm.hybrid`. Weights are relative: they are divided by their sum, over what is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HybridSettings {
    /// Weight of ratings; default 0.3.
    pub experience_weight: f64,
    /// Weight of nearness to the card; default 0.3.
    pub router_dc_weight: f64,
    /// Weight of the AutoMix value; default 0.2.
    pub automix_weight: f64,
    /// Weight of a low price; default 0.2.
    pub cost_weight: f64,
    /// How far below the best rating a candidate may stand and still gain by its price, in 0..=1; default 0.1.
    pub quality_gap_threshold: f64,
    /// Whether each part is stretched to 0..=1 over the candidates (default true).
    pub normalize_scores: bool,
}

impl Default for HybridSettings {
    fn default() -> Self {
        Self {
            experience_weight: 0.3,
            router_dc_weight: 0.3,
            automix_weight: 0.2,
            cost_weight: 0.2,
            quality_gap_threshold: 0.1,
            normalize_scores: true,
        }
    }
}

/// `algorithm.latency_aware`. At least one percentile counts; with none written, both at 95.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyAwareSettings {
    /// Percentile of the time per output token, in 1..=100.
    pub tpot_percentile: Option<u8>,
    /// Percentile of the time to the first token, in 1..=100.
    pub ttft_percentile: Option<u8>,
}

impl Default for LatencyAwareSettings {
    fn default() -> Self {
        Self { tpot_percentile: Some(95), ttft_percentile: Some(95) }
    }
}

/// `algorithm.multi_factor`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MultiFactorSettings {
    /// Weight of quality; relative, as all four; default 0.25.
    pub quality_weight: f64,
    /// Weight of low latency.
    pub latency_weight: f64,
    /// Weight of a low price.
    pub cost_weight: f64,
    /// Weight of few requests in flight.
    pub load_weight: f64,
    /// Most milliseconds per output token.
    pub max_tpot_ms: Option<f64>,
    /// Most milliseconds to the first token.
    pub max_ttft_ms: Option<f64>,
    /// Most US dollars per million tokens, prompt and completion averaged.
    pub max_cost_per_1m: Option<f64>,
    /// Most requests in flight.
    pub max_inflight: Option<u32>,
    /// Which percentile latency is taken at, in 1..=100; default 95.
    pub latency_percentile: u8,
    /// What happens when no candidate keeps the limits.
    pub on_no_candidates: OnNoCandidates,
}

impl Default for MultiFactorSettings {
    fn default() -> Self {
        Self {
            quality_weight: 0.25,
            latency_weight: 0.25,
            cost_weight: 0.25,
            load_weight: 0.25,
            max_tpot_ms: None,
            max_ttft_ms: None,
            max_cost_per_1m: None,
            max_inflight: None,
            latency_percentile: 95,
            on_no_candidates: OnNoCandidates::default(),
        }
    }
}

/// What happens when no candidate keeps the limits of `multi_factor`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum OnNoCandidates {
    /// The cheapest is taken.
    #[default]
    Cheapest,
    /// The first is taken.
    First,
    /// The request is refused, whatever `on_error` says.
    Fail,
}

/// `algorithm.prompt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptSettings {
    /// Who is asked; the first candidate when absent.
    pub model: Option<ModelId>,
    /// What the choice is to look at, in the author's words.
    pub instructions: Option<String>,
    /// How long it may take; default 10 s.
    pub timeout: Duration,
}

impl Default for PromptSettings {
    fn default() -> Self {
        Self { model: None, instructions: None, timeout: Duration::from_secs(10) }
    }
}

/// `algorithm.{knn,kmeans,svm,mlp}` over `global.router.model_selection.ml`; what is absent here is looked up there.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct LearnedSettings {
    /// The trained artifact, as written (*extension* in a decision).
    pub path: Option<String>,
    /// `knn`: how many neighbours vote; the artifact's own number when absent.
    pub k: Option<usize>,
    /// `kmeans`: weight of a low price, in 0..=1; the artifact's own when absent.
    pub efficiency_weight: Option<f64>,
    /// Whether a request unlike all that was learnt goes to the best fixed model (default true, *extension*).
    pub guard: Option<bool>,
}

impl LearnedSettings {
    /// These settings, and those of `base` where these say nothing.
    #[must_use]
    pub fn over(&self, base: &Self) -> Self {
        Self {
            path: self.path.clone().or_else(|| base.path.clone()),
            k: self.k.or(base.k),
            efficiency_weight: self.efficiency_weight.or(base.efficiency_weight),
            guard: self.guard.or(base.guard),
        }
    }
}

/// `algorithm.elo`.
#[derive(Debug, Clone, PartialEq)]
pub struct EloSettings {
    /// The ratings, as written; those of `model_selection.ml.elo` when absent.
    pub path: Option<String>,
    /// Rating of a model that was compared too seldom; default 1500.
    pub initial_rating: f64,
    /// Comparisons from which a rating counts; default 10.
    pub min_comparisons: u64,
    /// Whether ratings of the request's category are preferred (default true).
    pub category_weighted: bool,
    /// Rating points that a dollar per million tokens costs; default 0.
    pub cost_scaling_factor: f64,
}

impl Default for EloSettings {
    fn default() -> Self {
        Self {
            path: None,
            initial_rating: 1500.0,
            min_comparisons: 10,
            category_weighted: true,
            cost_scaling_factor: 0.0,
        }
    }
}

/// `algorithm.thompson`.
#[derive(Debug, Clone, PartialEq)]
pub struct ThompsonSettings {
    /// Wins and losses to start from, as an artifact of `elo`; none when absent.
    pub path: Option<String>,
    /// Whether a draw decides. Default false: the greatest mean does, and nothing is explored.
    pub explore: bool,
    /// How many observations a card's `quality_score` is worth, at least 0; default 10.
    pub prior_strength: f64,
    /// Weight of price, in 0..=1; default 0.04.
    pub cost_weight: f64,
}

impl Default for ThompsonSettings {
    fn default() -> Self {
        Self { path: None, explore: false, prior_strength: 10.0, cost_weight: 0.04 }
    }
}

/// `global.router.model_selection`: what decisions' selectors fall back on.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct SelectionSettings {
    /// `knn`.
    pub knn: LearnedSettings,
    /// `kmeans`.
    pub kmeans: LearnedSettings,
    /// `svm`.
    pub svm: LearnedSettings,
    /// `mlp`.
    pub mlp: LearnedSettings,
    /// Ratings of `elo`, and the experience of `hybrid` (*extension*).
    pub elo_path: Option<String>,
    /// `router_dc` of decisions that do not set it themselves.
    pub router_dc: Option<RouterDcSettings>,
    /// `automix` of decisions that do not set it themselves.
    pub automix: Option<AutomixSettings>,
    /// `hybrid` of decisions that do not set it themselves.
    pub hybrid: Option<HybridSettings>,
    /// The type word of the selector of decisions that name no algorithm (`method`); `None` means `static`.
    pub method: Option<&'static str>,
    /// Whether hard conversations keep to what served them (`momentum`); `None` where it is off.
    pub momentum: Option<MomentumSettings>,
}

/// `global.router.model_selection.momentum`: how hard a conversation has been moves fast upwards and slowly downwards.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MomentumSettings {
    /// Share of the momentum so far that is left after a harder turn, in 0..=1; default 0.3.
    pub attack: f64,
    /// Share of the momentum so far that is left after an easier turn, in 0..=1; default 0.9.
    pub release: f64,
    /// Momentum above which an easier turn is served as the hard ones were, in 0..=1; default 0.5.
    pub threshold: f64,
}

impl Default for MomentumSettings {
    fn default() -> Self {
        Self { attack: 0.3, release: 0.9, threshold: 0.5 }
    }
}

/// `global.router.learning.adaptation`: whether verdicts on past runs move the choice among candidates.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct AdaptationSettings {
    /// Whether they do (default false; `learning.enabled` and `adaptation.enabled`).
    pub enabled: bool,
    /// Among whom, where a decision does not say.
    pub candidates: CandidateSet,
}

/// `candidate_set`: among whom verdicts may move a choice. Source: contract §4.8.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CandidateSet {
    /// The decision's own candidates.
    #[default]
    Decision,
    /// Those of all decisions of its tier; its own where it has none.
    Tier,
    /// Those of all decisions of its recipe.
    Global,
}

impl CandidateSet {
    /// The contract's words.
    pub const WORDS: [(&'static str, Self); 3] =
        [("decision", Self::Decision), ("tier", Self::Tier), ("global", Self::Global)];
}

/// `global.router.learning.protection`: when a running conversation keeps its model.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionSettings {
    /// Whether conversations are protected at all (default false; `learning.enabled` and `protection.enabled`).
    pub enabled: bool,
    /// Header that names a session, in lower case; default `x-session-id`.
    pub session_header: String,
    /// Header that names a conversation, in lower case; default `x-conversation-id`.
    pub conversation_header: String,
    /// Whether the conversation rather than the session is what is kept together (default false).
    pub by_conversation: bool,
    /// After so long a silence a conversation is free; default 300 s.
    pub idle_timeout: Duration,
    /// Turns on one model before another may take over; default 1.
    pub min_turns_before_switch: u32,
    /// By how much another must be better, at least 0; default 0.05.
    pub switch_margin: f64,
    /// Weight of staying, at least 0; default 1.
    pub stability_weight: f64,
}

impl Default for SessionSettings {
    fn default() -> Self {
        Self {
            enabled: false,
            session_header: "x-session-id".to_owned(),
            conversation_header: "x-conversation-id".to_owned(),
            by_conversation: false,
            idle_timeout: Duration::from_secs(300),
            min_turns_before_switch: 1,
            switch_margin: 0.05,
            stability_weight: 1.0,
        }
    }
}

/// A Redis server where what is known of conversations is kept, which replicas share (`learning.state_store`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionStore {
    /// How it is reached; names of keys begin with `vllm-sr:sessions:` by default.
    pub place: RedisServer,
    /// A conversation that is silent for so long is forgotten; default a day.
    pub ttl: Duration,
    /// How long one question may take; default 200 ms. A request waits for it.
    pub timeout: Duration,
}

impl Default for SessionStore {
    fn default() -> Self {
        let place = RedisServer { key_prefix: "vllm-sr:sessions:".to_owned(), ..RedisServer::default() };
        Self { place, ttl: Duration::from_secs(86_400), timeout: Duration::from_millis(200) }
    }
}
