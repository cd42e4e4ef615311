//! Settings of the loopers besides Fusion, and of budgets; defaults filled.
//!
//! Sources: contract §1.8 for keys and defaults, where §7.1 does not call one a fault. Keys that the contract does not
//! have are marked *extension*.

use crate::ModelId;
use std::time::Duration;

/// What a failing member or stage does.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// Go on with what there is.
    #[default]
    Skip,
    /// Fail the request.
    Fail,
}

/// What one request may spend (*extension*: `budget` of an algorithm, and of an operating point). `None` is unbounded.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct BudgetSettings {
    /// Model calls.
    pub max_calls: Option<u32>,
    /// Tokens, read and written, over all calls.
    pub max_tokens: Option<u64>,
    /// Millionths of a US dollar, from the price table.
    pub max_micro_usd: Option<u64>,
    /// From the first byte read to the last byte written.
    pub max_time: Option<Duration>,
    /// Joules, from the deployments' energy profiles.
    pub max_joules: Option<f64>,
    /// What happens once it is spent; `None` answers with what is there.
    pub when_spent: Option<WhenSpent>,
}

/// What a spent budget does.
#[derive(Debug, Default, Clone, PartialEq, Eq, Copy)]
pub enum WhenSpent {
    /// `answer`: the best answer so far.
    #[default]
    Answer,
    /// `fallback`: the first candidate of the decision answers, outside the budget.
    Fallback,
    /// `abstain`: an error that says so.
    Abstain,
}

/// `algorithm.confidence`: a cascade from a small model to a large one.
#[derive(Debug, Clone)]
pub struct ConfidenceSettings {
    /// How the confidence of an answer is measured.
    pub method: ConfidenceMethod,
    /// From this confidence on an answer is accepted, in 0..=1; `None` is the method's default. Zero accepts all.
    pub threshold: Option<f64>,
    /// Below this confidence nothing is escalated, because the large model fails on such questions too, in 0..=1
    /// (*extension*: `hopeless_threshold`).
    pub hopeless: Option<f64>,
    /// Weight of log-probability, and of margin, in the `hybrid` method; sum 1.
    pub hybrid_weights: (f64, f64),
    /// In which order candidates are tried.
    pub order: EscalationOrder,
    /// Weight of cost against quality in the `automix` order, in 0..=1; default 0.3.
    pub cost_quality_tradeoff: f64,
    /// Which tokens count.
    pub token_filter: TokenFilter,
    /// Samples for the `agreement` method; default 3 (*extension*).
    pub samples: usize,
    /// Which quantile for the `quantile_logprob` method, in 0..=1; default 0.1 (*extension*).
    pub quantile: f64,
    /// The AutoMix verifier, for `automix_entailment`; the model itself verifies where there is none.
    pub verifier_url: Option<String>,
    /// How long the verifier may take; default 60 s.
    pub verifier_timeout: Duration,
    /// The file of the trained rule, for `learned` (*extension*: `scorer`).
    pub scorer: Option<String>,
    /// What a failing candidate or measurement does.
    pub on_error: OnError,
    /// What the request may spend.
    pub budget: BudgetSettings,
}

impl Default for ConfidenceSettings {
    fn default() -> Self {
        Self {
            method: ConfidenceMethod::default(),
            threshold: None,
            hopeless: None,
            hybrid_weights: (0.5, 0.5),
            order: EscalationOrder::default(),
            cost_quality_tradeoff: 0.3,
            token_filter: TokenFilter::default(),
            samples: 3,
            quantile: 0.1,
            verifier_url: None,
            verifier_timeout: Duration::from_secs(60),
            scorer: None,
            on_error: OnError::Skip,
            budget: BudgetSettings::default(),
        }
    }
}

/// How the confidence of an answer is measured.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum ConfidenceMethod {
    /// Mean log-probability of its tokens.
    #[default]
    AvgLogprob,
    /// Mean distance of the best two tokens.
    Margin,
    /// Both, weighted.
    Hybrid,
    /// The model grades its own answer.
    SelfVerify,
    /// A verifier samples whether the answer follows.
    AutomixEntailment,
    /// A low quantile of its tokens' log-probabilities: the one uncertain token (*extension*).
    QuantileLogprob,
    /// The share of samples that agree with it (*extension*).
    Agreement,
    /// A trained scorer over the quantiles (*extension*).
    Learned,
}

/// In which order candidates are tried.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum EscalationOrder {
    /// By `param_size`, small ones first (`size`, `small_to_large`).
    #[default]
    Size,
    /// As declared.
    Declared,
    /// By price, cheap ones first.
    Cost,
    /// By the AutoMix value of quality and cost.
    Automix,
}

/// Which tokens of an answer count.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum TokenFilter {
    /// All.
    #[default]
    All,
    /// Those of tool-call arguments; all where there are none.
    ToolCallArgs,
}

/// `algorithm.ratings`: candidates answer side by side and are rated.
#[derive(Debug, Clone)]
pub struct RatingsSettings {
    /// Most calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// Who rates (*extension*; default `none`, which gives all answers as choices, as the contract does).
    pub raters: Raters,
    /// How ratings become an answer (*extension*).
    pub aggregate: Aggregate,
    /// The judge of `raters: judge`; the first candidate when absent (*extension*).
    pub judge: Option<ModelId>,
    /// What the judge looks at; a built-in rubric when absent (*extension*).
    pub rubric: Option<String>,
    /// The AutoMix verifier of `raters: verifier` (*extension*).
    pub verifier_url: Option<String>,
    /// How long it may take for one answer; default 60 s (*extension*).
    pub verifier_timeout: Duration,
    /// The file of the trained rule of `raters: scorer` (*extension*).
    pub scorer: Option<String>,
    /// How long a round may take (*extension*).
    pub round_timeout: Option<Duration>,
    /// What a failing candidate does.
    pub on_error: OnError,
    /// What the request may spend.
    pub budget: BudgetSettings,
}

impl Default for RatingsSettings {
    fn default() -> Self {
        Self {
            max_concurrent: None,
            raters: Raters::None,
            aggregate: Aggregate::Choices,
            judge: None,
            rubric: None,
            verifier_url: None,
            verifier_timeout: Duration::from_secs(60),
            scorer: None,
            round_timeout: None,
            on_error: OnError::Skip,
            budget: BudgetSettings::default(),
        }
    }
}

/// Who rates the answers of a rated ensemble.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Raters {
    /// Nobody.
    #[default]
    None,
    /// Each candidate rates the others' answers, without names and in its own order.
    Peers,
    /// One judge rates all by a rubric.
    Judge,
    /// The components' known ratings (Bradley–Terry) alone.
    Components,
    /// A server says how far each answer is supported.
    Verifier,
    /// A trained rule over each answer's log-probabilities.
    Scorer,
}

/// How a rated ensemble answers.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Aggregate {
    /// Every answer is a choice, with its rating.
    #[default]
    Choices,
    /// The best-rated answer.
    Best,
    /// Equal extracted answers add up their ratings; the heaviest one wins.
    Vote,
}

/// `algorithm.remom`: rounds of parallel reasoning, each shown the one before, and a synthesis.
#[derive(Debug, Clone)]
pub struct RemomSettings {
    /// Calls a round, before the last round of one; not empty, each at least 1.
    pub breadth_schedule: Vec<usize>,
    /// Who answers how many of a round's calls.
    pub distribution: Distribution,
    /// Sampling temperature; default 1.
    pub temperature: f64,
    /// Whether references show the reasoning too.
    pub include_reasoning: bool,
    /// Tokens kept of each reference (`compaction_strategy: last_n_tokens`); `None` keeps all (`full`).
    pub compaction_tokens: Option<usize>,
    /// Own synthesis prompt.
    pub synthesis_template: Option<String>,
    /// Who writes the last round; chosen like the others when absent.
    pub synthesis_model: Option<ModelId>,
    /// Most calls at once; all when absent.
    pub max_concurrent: Option<usize>,
    /// Cap of each call.
    pub max_completion_tokens: Option<u64>,
    /// How long a round may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that end a round; all when absent.
    pub min_successful_responses: Option<usize>,
    /// References shown of a round; all when absent.
    pub max_responses_per_round: Option<usize>,
    /// Seed of shuffles; default 42.
    pub shuffle_seed: u64,
    /// Show the rounds in the trace (default true).
    pub include_intermediate_responses: bool,
    /// Stop asking once the leading answer stays ahead with this probability, in 0.5..=1 (*extension*:
    /// `stop_when_certain`); `None` asks every call.
    pub stop_when_certain: Option<f64>,
    /// What a failing round does.
    pub on_error: OnError,
    /// What the request may spend.
    pub budget: BudgetSettings,
}

impl Default for RemomSettings {
    fn default() -> Self {
        Self {
            breadth_schedule: vec![4],
            distribution: Distribution::default(),
            temperature: 1.0,
            include_reasoning: false,
            compaction_tokens: None,
            synthesis_template: None,
            synthesis_model: None,
            max_concurrent: None,
            max_completion_tokens: None,
            round_timeout: None,
            min_successful_responses: None,
            max_responses_per_round: None,
            shuffle_seed: 42,
            include_intermediate_responses: true,
            stop_when_certain: None,
            on_error: OnError::Skip,
            budget: BudgetSettings::default(),
        }
    }
}

/// Who answers how many calls of a round.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    /// By the candidates' weights, by largest remainder, then shuffled.
    #[default]
    Weighted,
    /// As equal as can be.
    Equal,
    /// In turns, going on where the round before ended.
    RoundRobin,
    /// The first candidate alone.
    FirstOnly,
}

/// `algorithm.workflows`: bounded roles, or a planner.
#[derive(Debug, Clone)]
pub struct WorkflowSettings {
    /// Who makes the plan.
    pub mode: WorkflowMode,
    /// The template's name in the trace; default `micro_agent`.
    pub template: String,
    /// Steps of a static plan, in order.
    pub roles: Vec<WorkflowRole>,
    /// Who writes the final answer, and how; the planner, else the first candidate.
    pub final_model: Option<ModelId>,
    /// Own prompt of the final answer.
    pub final_prompt: Option<String>,
    /// The planner; the first candidate when absent.
    pub planner: Option<ModelId>,
    /// Cap of the planner's answer; default 2048.
    pub planner_max_completion_tokens: u64,
    /// Most steps of a plan; default 3.
    pub max_steps: usize,
    /// Most workers of a step; default 2.
    pub max_parallel: usize,
    /// Cap of each worker's answer.
    pub max_completion_tokens: Option<u64>,
    /// How long a step may take.
    pub round_timeout: Option<Duration>,
    /// Usable answers that end a step; all when absent.
    pub min_successful_responses: Option<usize>,
    /// Sampling temperature of the workers.
    pub temperature: Option<f64>,
    /// Show the steps' answers in the trace (default true).
    pub include_intermediate_responses: bool,
    /// What a failing plan or step does (default fail).
    pub on_error: OnError,
    /// What the request may spend.
    pub budget: BudgetSettings,
}

impl Default for WorkflowSettings {
    fn default() -> Self {
        Self {
            mode: WorkflowMode::Static,
            template: "micro_agent".to_owned(),
            roles: Vec::new(),
            final_model: None,
            final_prompt: None,
            planner: None,
            planner_max_completion_tokens: 2048,
            max_steps: 3,
            max_parallel: 2,
            max_completion_tokens: None,
            round_timeout: None,
            min_successful_responses: None,
            temperature: None,
            include_intermediate_responses: true,
            on_error: OnError::Fail,
            budget: BudgetSettings::default(),
        }
    }
}

/// Who makes the plan of a workflow.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowMode {
    /// The file.
    #[default]
    Static,
    /// A model.
    Dynamic,
}

/// One step of a static workflow.
#[derive(Debug, Clone)]
pub struct WorkflowRole {
    /// Its name; its id is the name in lower-case with hyphens.
    pub name: String,
    /// Its workers; all candidates when empty.
    pub models: Vec<ModelId>,
    /// Its prompt; the built-in one of the role when absent.
    pub prompt: Option<String>,
    /// Ids of earlier steps (or workers, `step:index:model`) whose answers it sees; `None` is all of them.
    pub access_list: Option<Vec<String>>,
}
