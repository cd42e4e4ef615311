//! What a recipe wants to know about a request: signal rules, by family.

use crate::{Condition, Family, NumericPredicate, Place};

/// One signal rule of a recipe.
#[derive(Debug, Clone)]
pub struct Signal {
    /// The rule's name.
    pub name: String,
    /// For people.
    pub description: String,
    /// What it measures.
    pub kind: SignalKind,
    /// Where it was written.
    pub place: Place,
}

impl Signal {
    /// The family it belongs to.
    #[must_use]
    pub fn family(&self) -> Family {
        match &self.kind {
            SignalKind::Keyword(_) => Family::Keyword,
            SignalKind::Context(_) => Family::Context,
            SignalKind::Structure(_) => Family::Structure,
            SignalKind::Language(_) => Family::Language,
            SignalKind::Conversation(_) => Family::Conversation,
            SignalKind::Embedding(_) => Family::Embedding,
            SignalKind::Domain(_) => Family::Domain,
            SignalKind::Complexity(_) => Family::Complexity,
            SignalKind::Unsupported(family) => *family,
        }
    }

    /// The names this rule can emit (`complexity` emits three labels, the others their own name).
    #[must_use]
    pub fn emits(&self) -> Vec<String> {
        match &self.kind {
            SignalKind::Complexity(_) => {
                ["hard", "medium", "easy"].map(|l| format!("{}:{l}", self.name)).to_vec()
            }
            _ => vec![self.name.clone()],
        }
    }
}

/// What a signal measures, with its options checked and defaults filled.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "each variant is documented on the type it holds")]
pub enum SignalKind {
    Keyword(KeywordSignal),
    Context(ContextSignal),
    Structure(StructureSignal),
    Language(LanguageSignal),
    Conversation(ConversationSignal),
    Embedding(EmbeddingSignal),
    Domain(DomainSignal),
    Complexity(ComplexitySignal),
    /// Known to the contract, not supported yet.
    Unsupported(Family),
}

/// Words or patterns in the user's text.
#[derive(Debug, Clone)]
pub struct KeywordSignal {
    /// How single hits combine.
    pub operator: KeywordOperator,
    /// Words, or patterns when the method is [`KeywordMethod::Regex`].
    pub keywords: Vec<String>,
    /// `false` folds case.
    pub case_sensitive: bool,
    /// How a keyword is looked for.
    pub method: KeywordMethod,
}

/// How keyword hits combine.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum KeywordOperator {
    /// Any keyword.
    #[default]
    Or,
    /// Every keyword.
    And,
    /// No keyword.
    Nor,
}

/// How a keyword is looked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum KeywordMethod {
    /// No `method` written: the keyword itself, at word edges.
    Literal,
    /// `method: regex`: the keyword is a pattern, as written.
    Regex,
    /// `method: bm25`.
    Bm25 {
        /// Least score, 0..; default 0.1.
        threshold: f64,
    },
    /// `method: ngram`.
    Ngram {
        /// Least similarity in 0..=1; default 0.4.
        threshold: f64,
        /// Characters a gram; default 3.
        arity: usize,
    },
    /// `fuzzy_match: true` (or `method: fuzzy`): whole words within an edit distance.
    Fuzzy {
        /// Greatest edit distance; default 2.
        max_distance: usize,
    },
}

/// Estimated tokens of the whole request within `[min_tokens, max_tokens]`.
#[derive(Debug, Clone, Copy)]
pub struct ContextSignal {
    /// Least, inclusive.
    pub min_tokens: u64,
    /// Greatest, inclusive; `None` is unbounded.
    pub max_tokens: Option<u64>,
}

/// A countable property of the user's text.
#[derive(Debug, Clone)]
pub struct StructureSignal {
    /// What is measured.
    pub feature: StructureFeature,
    /// What the value must satisfy; `None` is "greater than zero".
    pub predicate: Option<NumericPredicate>,
}

/// What a structure signal measures.
#[derive(Debug, Clone)]
pub struct StructureFeature {
    /// How occurrences become a number.
    pub kind: FeatureKind,
    /// What is looked for.
    pub source: StructureSource,
}

/// How occurrences become a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FeatureKind {
    /// 1 if any, else 0.
    Exists,
    /// How many.
    Count,
    /// How many a word (structure) or a message.
    Density,
    /// 1 if the parts occur in this order, else 0.
    Sequence,
}

/// What a structure signal looks for.
#[derive(Debug, Clone)]
pub enum StructureSource {
    /// Matches of a pattern.
    Regex {
        /// The pattern, compiled when read.
        pattern: String,
        /// `false` folds case.
        case_sensitive: bool,
    },
    /// Occurrences of words.
    KeywordSet {
        /// The words.
        keywords: Vec<String>,
        /// `false` folds case.
        case_sensitive: bool,
    },
    /// Ordered phrases.
    Sequence {
        /// Alternatives; each a list of phrases that must occur in order.
        sequences: Vec<Vec<String>>,
        /// `false` folds case.
        case_sensitive: bool,
    },
    /// Bytes of the user's text.
    TextBytes,
}

/// The natural language of the user's text; the signal's name is its ISO 639-1 code.
#[derive(Debug, Clone, Copy)]
pub struct LanguageSignal {
    /// Least confidence in 0..=1; default 0.3.
    pub threshold: f64,
}

/// Counts over the message list.
#[derive(Debug, Clone)]
pub struct ConversationSignal {
    /// What is counted.
    pub feature: ConversationFeature,
    /// What the count must satisfy; `None` is "greater than zero".
    pub predicate: Option<NumericPredicate>,
}

/// What a conversation signal counts.
#[derive(Debug, Clone)]
pub struct ConversationFeature {
    /// [`FeatureKind::Exists`] or [`FeatureKind::Count`].
    pub kind: FeatureKind,
    /// What is counted.
    pub source: ConversationSource,
}

/// What a conversation signal counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConversationSource {
    /// Messages, of one role (`user`, `assistant`, `system`, `developer`, `tool`, `non_user`) or of all.
    Message {
        /// The role; `None` is all.
        role: Option<String>,
    },
    /// Tools offered.
    ToolDefinition,
    /// Tool calls made by the assistant.
    AssistantToolCall,
    /// Tool calls that have their result.
    AssistantToolCycle,
    /// 1 while the last message is a tool result or an unanswered call.
    ActiveToolLoop,
    /// Image parts.
    ImageContent,
}

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
    /// Hard examples.
    pub hard: Vec<String>,
    /// Easy examples.
    pub easy: Vec<String>,
    /// A rule that must hold for a label to be emitted.
    pub composer: Option<Condition>,
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
