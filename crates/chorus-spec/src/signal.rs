//! What a recipe wants to know about a request: signal rules, by family.

mod envelope;
mod guard;
mod learned;
mod textual;

pub use envelope::{EventSignal, MetadataPredicate, MetadataSignal};
pub use guard::{AuthzSignal, JailbreakMethod, JailbreakSignal, PII_TYPES, PiiSignal, RoleSubject};
pub use learned::{
    Aggregation, ClassifierKind, ClassifierSignal, ComplexitySignal, DomainSignal, EmbeddingSignal,
    FactCheckSignal, KbMatch, KbSignal, KbTarget, MMLU_CATEGORIES, ModalitySignal, ModelScore,
    PreferenceSignal, PrototypeScoring, ReaskSignal, UserFeedbackSignal,
};
pub use textual::{
    ContextSignal, ConversationFeature, ConversationSignal, ConversationSource, FeatureKind, KeywordMethod,
    KeywordOperator, KeywordSignal, LanguageSignal, StructureFeature, StructureSignal, StructureSource,
};

use crate::{Family, Place};

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
            SignalKind::FactCheck(_) => Family::FactCheck,
            SignalKind::UserFeedback(_) => Family::UserFeedback,
            SignalKind::Reask(_) => Family::Reask,
            SignalKind::Preference(_) => Family::Preference,
            SignalKind::Modality(_) => Family::Modality,
            SignalKind::Authz(_) => Family::Authz,
            SignalKind::Jailbreak(_) => Family::Jailbreak,
            SignalKind::Pii(_) => Family::Pii,
            SignalKind::Kb(_) => Family::Kb,
            SignalKind::Event(_) => Family::Event,
            SignalKind::Metadata(_) => Family::Metadata,
            SignalKind::Classifier(_) => Family::Classifier,
            SignalKind::Unsupported(family) => *family,
        }
    }

    /// The names this rule can emit: `complexity` three labels, `classifier` one a label, `authz` the role, the others
    /// their own name.
    #[must_use]
    pub fn emits(&self) -> Vec<String> {
        match &self.kind {
            SignalKind::Complexity(_) => {
                ["hard", "medium", "easy"].map(|l| format!("{}:{l}", self.name)).to_vec()
            }
            SignalKind::Classifier(classifier) => {
                classifier.labels.iter().map(|label| format!("{}:{label}", self.name)).collect()
            }
            SignalKind::Authz(binding) => vec![binding.role.clone()],
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
    FactCheck(FactCheckSignal),
    UserFeedback(UserFeedbackSignal),
    Reask(ReaskSignal),
    Preference(PreferenceSignal),
    Modality(ModalitySignal),
    Authz(AuthzSignal),
    Jailbreak(JailbreakSignal),
    Pii(PiiSignal),
    Kb(KbSignal),
    Event(EventSignal),
    Metadata(MetadataSignal),
    Classifier(ClassifierSignal),
    /// Known to the contract, not supported yet.
    Unsupported(Family),
}
