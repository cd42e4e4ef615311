//! Signals that read text and counts: keyword, context, structure, language, conversation.

use crate::NumericPredicate;

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
