//! Signals that compare meaning: prototype banks and heads over the encoder.

use crate::Condition;

/// Similarity to example sentences.
#[derive(Debug, Clone)]
pub struct EmbeddingSignal {
    /// Least similarity.
    pub threshold: f64,
    /// The examples.
    pub candidates: Vec<String>,
    /// How similarities to several examples combine.
    pub aggregation: Aggregation,
    /// `text` (default); `image` and `audio` are known, not supported yet.
    pub query_modality: String,
}

/// How similarities to several examples combine.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Aggregation {
    /// Mean over all examples.
    Mean,
    /// The prototype score: best and mean of the best few.
    #[default]
    Max,
    /// Any example above the threshold.
    Any,
}

/// The categories of MMLU-Pro, which the domain head tells apart, in alphabetical order.
pub const MMLU_CATEGORIES: [&str; 14] = [
    "biology",
    "business",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "health",
    "history",
    "law",
    "math",
    "other",
    "philosophy",
    "physics",
    "psychology",
];

/// The subject matter, by the 14-class head.
#[derive(Debug, Clone)]
pub struct DomainSignal {
    /// MMLU-Pro categories that count as this domain; the signal's own name when empty.
    pub mmlu_categories: Vec<String>,
    /// Known quality of models on this domain, for the `static` algorithm.
    pub model_scores: Vec<ModelScore>,
}

/// The known quality of one model on one domain.
#[derive(Debug, Clone)]
pub struct ModelScore {
    /// The model.
    pub model: String,
    /// Its score in 0..=1.
    pub score: f64,
    /// Whether reasoning should be on; `None` leaves it to the decision.
    pub use_reasoning: Option<bool>,
}

/// How hard the question is: nearer to the hard examples or to the easy ones.
#[derive(Debug, Clone)]
pub struct ComplexitySignal {
    /// Half-width of `medium` around a margin of zero.
    pub threshold: f64,
    /// Least probability of the trained head that a text is easy for the label `easy`, in 0..=1; below it the label is
    /// `medium` at least.
    pub easy_certainty: f64,
    /// Hard examples.
    pub hard: Vec<String>,
    /// Easy examples.
    pub easy: Vec<String>,
    /// A rule that must hold for a label to be emitted.
    pub composer: Option<Condition>,
}

impl ComplexitySignal {
    /// [`easy_certainty`](Self::easy_certainty) where a rule names none: likelier easy than hard.
    pub const EASY_CERTAINTY: f64 = 0.5;
}

/// How example sentences become prototypes (`embedding_config.prototype_scoring`).
#[derive(Debug, Clone, Copy)]
pub struct PrototypeScoring {
    /// Examples nearer than this share a prototype; default 0.9.
    pub cluster_similarity_threshold: f64,
    /// Most prototypes a bank; default 8.
    pub max_prototypes: usize,
    /// Weight of the best prototype; default 0.75.
    pub best_weight: f64,
    /// How many of the best make the mean; default 2.
    pub top_m: usize,
}

impl Default for PrototypeScoring {
    fn default() -> Self {
        Self { cluster_similarity_threshold: 0.9, max_prototypes: 8, best_weight: 0.75, top_m: 2 }
    }
}

/// Whether a claim in the question needs checking; the rule's name is the label that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FactCheckSignal {
    /// `needs_fact_check`.
    Needed,
    /// `no_fact_check_needed`.
    NotNeeded,
}

/// What the user thinks of the answer before; the rule's name is the label that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum UserFeedbackSignal {
    /// `satisfied`.
    Satisfied,
    /// `need_clarification`.
    NeedClarification,
    /// `wrong_answer`.
    WrongAnswer,
    /// `want_different`.
    WantDifferent,
}

/// The user asks again what they asked before.
#[derive(Debug, Clone, Copy)]
pub struct ReaskSignal {
    /// Least similarity to the turn before, in 0..=1; default 0.8.
    pub threshold: f64,
    /// How many turns in a row must be alike, from 1; default 1.
    pub lookback_turns: usize,
}

/// A kind of wish, by its examples.
#[derive(Debug, Clone)]
pub struct PreferenceSignal {
    /// What the wish is, in words; an example of its own.
    pub description: String,
    /// Example requests.
    pub examples: Vec<String>,
    /// Least similarity; `None` leaves it to the signal's default.
    pub threshold: Option<f64>,
}

/// Whether text, an image or both are wanted; the rule's name is the label that it stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ModalitySignal {
    /// `AR`: text.
    Text,
    /// `DIFFUSION`: an image.
    Image,
    /// `BOTH`: text and an image.
    Both,
}

/// Nearness to a part of a knowledge base.
#[derive(Debug, Clone)]
pub struct KbSignal {
    /// The name of the knowledge base.
    pub kb: String,
    /// The part.
    pub target: KbTarget,
    /// When the part counts.
    pub matching: KbMatch,
}

/// A part of a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KbTarget {
    /// One label.
    Label(String),
    /// Any label of a group.
    Group(String),
}

/// When a part of a knowledge base counts.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum KbMatch {
    /// A label of it reaches its threshold.
    #[default]
    Threshold,
    /// The best label of the whole base, above its threshold, is one of it.
    Best,
}

/// A classifier of the operator: a local head, or a helper model that is asked.
///
/// A rule asks it with `label` and a predicate over that label's probability; it emits `name:label`.
#[derive(Debug, Clone)]
pub struct ClassifierSignal {
    /// Who classifies.
    pub kind: ClassifierKind,
    /// The labels, in order; at least one.
    pub labels: Vec<String>,
}

/// Who classifies.
#[derive(Debug, Clone, PartialEq)]
pub enum ClassifierKind {
    /// A head over the encoder, read from a file.
    Local {
        /// The file: `model_path`, or `model` where it is a path.
        path: String,
    },
    /// A model that is asked to choose a label.
    Llm {
        /// A model of `providers.models`.
        model: crate::ModelId,
        /// What it is told beyond the labels.
        instructions: String,
    },
}
