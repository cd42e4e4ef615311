//! The families of signals, and the key by which rules and evidence name one fact.
//!
//! It knows no options of any family. **Invariant:** a family's text form is the contract's own word.

use std::fmt;
use std::sync::Arc;

/// The families of signals that the contract knows. The text form is the `type` word of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each name is the contract's own word for the family")]
pub enum Family {
    Keyword,
    Embedding,
    Domain,
    FactCheck,
    UserFeedback,
    Reask,
    Preference,
    Language,
    Context,
    Structure,
    Complexity,
    Modality,
    Authz,
    Jailbreak,
    Pii,
    Kb,
    Conversation,
    Event,
    Metadata,
    Classifier,
    /// Not a signal of a request: the named output of a mapping.
    Projection,
}

impl Family {
    /// Every family, in the contract's order.
    pub const ALL: [Self; 21] = [
        Self::Keyword,
        Self::Embedding,
        Self::Domain,
        Self::FactCheck,
        Self::UserFeedback,
        Self::Reask,
        Self::Preference,
        Self::Language,
        Self::Context,
        Self::Structure,
        Self::Complexity,
        Self::Modality,
        Self::Authz,
        Self::Jailbreak,
        Self::Pii,
        Self::Kb,
        Self::Conversation,
        Self::Event,
        Self::Metadata,
        Self::Classifier,
        Self::Projection,
    ];

    /// The `type` word of rules.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Keyword => "keyword",
            Self::Embedding => "embedding",
            Self::Domain => "domain",
            Self::FactCheck => "fact_check",
            Self::UserFeedback => "user_feedback",
            Self::Reask => "reask",
            Self::Preference => "preference",
            Self::Language => "language",
            Self::Context => "context",
            Self::Structure => "structure",
            Self::Complexity => "complexity",
            Self::Modality => "modality",
            Self::Authz => "authz",
            Self::Jailbreak => "jailbreak",
            Self::Pii => "pii",
            Self::Kb => "kb",
            Self::Conversation => "conversation",
            Self::Event => "event",
            Self::Metadata => "metadata",
            Self::Classifier => "classifier",
            Self::Projection => "projection",
        }
    }

    /// The word of the evaluation endpoint's buckets (`keywords`, `domains`, …).
    #[must_use]
    pub fn bucket(self) -> &'static str {
        match self {
            Self::Keyword => "keywords",
            Self::Embedding => "embeddings",
            Self::Domain => "domains",
            Self::Preference => "preferences",
            other => other.as_str(),
        }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One fact that a rule can ask for: a family and the name that the family emits
/// (`keyword:greeting`, `complexity:needs_reasoning:hard`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SignalKey {
    /// The family.
    pub family: Family,
    /// `family:name`, so that whoever writes the key out has it at hand; a clone shares it.
    shown: Arc<str>,
}

impl SignalKey {
    /// A key of a family and the name that it emits.
    pub fn new(family: Family, name: impl AsRef<str>) -> Self {
        Self { family, shown: format!("{family}:{}", name.as_ref()).into() }
    }

    /// The emitted name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.shown.get(self.family.as_str().len() + 1..).unwrap_or_default()
    }

    /// The family and the name with a colon between them.
    #[must_use]
    pub fn shown(&self) -> &Arc<str> {
        &self.shown
    }
}

impl fmt::Display for SignalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}
