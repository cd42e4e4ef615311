//! Why a selector cannot be prepared.

use chorus_select::ArtifactFault;

/// Why a decision's selector cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[error("recipe `{recipe}`, decision `{decision}`: the selector `{kind}` cannot be prepared: {fault}")]
pub struct SelectorFault {
    /// The recipe.
    pub recipe: String,
    /// The decision.
    pub decision: String,
    /// The contract's type word.
    pub kind: &'static str,
    /// Why.
    pub fault: ArtifactFault,
}
