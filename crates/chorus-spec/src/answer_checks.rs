//! The `hallucination` and `response_jailbreak` plugins: what is looked at before an answer leaves.
//!
//! Plain data of the file; it knows no answer. Source: contract §1.10.

/// Where a remark about an answer stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum Remark {
    /// As a word of `x-vsr-response-warnings`.
    #[default]
    Header,
    /// In front of the answer's text.
    Body,
    /// In the run's record only.
    None,
}

/// The `hallucination` plugin: statements that the material at hand does not support.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct HallucinationSettings {
    /// Whether statements are also compared by meaning (`use_nli`); otherwise by words alone.
    pub by_meaning: bool,
    /// What becomes of unsupported statements.
    pub unsupported: Remark,
    /// What becomes of an answer to a question for facts where there is no material to hold it against.
    pub unverified: Remark,
    /// Whether a remark in the body quotes the statements.
    pub details: bool,
}

/// What becomes of an answer that looks like an attempt to take over whoever reads it.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum JailbreakAction {
    /// It leaves, with a word in `x-vsr-response-warnings`.
    #[default]
    Header,
    /// It does not leave; neither does one that could not be looked at.
    Block,
    /// It leaves; the run's record says it.
    None,
}

/// The `response_jailbreak` plugin.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct ResponseJailbreakSettings {
    /// Least score of a finding, in 0..=1; that of `modules.prompt_guard` where `None`.
    pub threshold: Option<f64>,
    /// What becomes of a finding.
    pub action: JailbreakAction,
}
