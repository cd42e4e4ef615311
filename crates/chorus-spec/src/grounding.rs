//! Settings of grounding: what a panel's answers are held against before they count. Source: contract §1.8.

use crate::OnError;

/// `algorithm.fusion.grounding`: answers are held against what is known before they count.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GroundingSettings {
    /// What they are held against.
    pub reference: GroundingReference,
    /// What a badly supported answer costs.
    pub policy: GroundingPolicy,
    /// Least support of an answer that stays, under `filter`, in 0..=1; default 0.
    pub min_score: f64,
    /// Answers that stay in any case; default 1.
    pub min_keep: usize,
    /// What a contradiction counts against an entailment; default 1.
    pub contradiction_penalty: f64,
    /// Who tells whether a sentence is supported (*extension*).
    pub scorer: GroundingScorer,
    /// What a failing scorer does.
    pub on_error: OnError,
}

impl Default for GroundingSettings {
    fn default() -> Self {
        Self {
            reference: GroundingReference::default(),
            policy: GroundingPolicy::default(),
            min_score: 0.0,
            min_keep: 1,
            contradiction_penalty: 1.0,
            scorer: GroundingScorer::default(),
            on_error: OnError::Skip,
        }
    }
}

/// Who tells whether a sentence is supported.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroundingScorer {
    /// Shared words, numbers and negations.
    #[default]
    Words,
    /// The encoder's vectors, with numbers and negations by words; words alone where no encoder is loaded.
    Meaning,
}

/// What a panel's answers are held against.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroundingReference {
    /// The context where the conversation has one, else the panel.
    #[default]
    Hybrid,
    /// System text and tool results of the conversation.
    Context,
    /// The other members' answers.
    Panel,
}

/// What a badly supported answer costs.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroundingPolicy {
    /// Judge and writer are told its score.
    #[default]
    Weight,
    /// They are also told the unsupported sentences.
    Annotate,
    /// It is dropped below `min_score`.
    Filter,
}
