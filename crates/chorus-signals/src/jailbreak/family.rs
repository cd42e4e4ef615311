//! Families of attempts: what each tries.
//!
//! It knows no pattern and no text. **Invariant:** every family has a name of its own.
//! Source: OWASP LLM01:2025 "Prompt Injection" for the families.

/// What an attempt tries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RuleFamily {
    /// To replace the instructions that hold.
    Override,
    /// To make the model someone without rules.
    Role,
    /// To learn the instructions.
    Extraction,
    /// To look like another part of the conversation.
    Template,
    /// To hide instructions in an encoding.
    Encoding,
    /// To give orders from within a document or a tool's output.
    Imperative,
    /// To send data away.
    Exfiltration,
}

impl RuleFamily {
    /// Its name in explanations.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Override => "instruction override",
            Self::Role => "role hijack",
            Self::Extraction => "system prompt extraction",
            Self::Template => "template spoofing",
            Self::Encoding => "encoding smuggling",
            Self::Imperative => "orders in data",
            Self::Exfiltration => "exfiltration",
        }
    }

    /// Whether it only tells against texts that the user did not write: a user may well ask for what it describes.
    pub(super) fn only_foreign(self) -> bool {
        matches!(self, Self::Imperative | Self::Exfiltration)
    }
}
