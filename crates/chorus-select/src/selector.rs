//! The shape that all selectors share. It knows no single selector.

use crate::ask::{Needs, SelectionAsk};
use crate::choice::Choice;

/// An algorithm that picks one of the candidates.
pub trait Selector: std::fmt::Debug + Send + Sync {
    /// Picks one, or says why it cannot. Of equals the earlier candidate is picked.
    fn choose(&self, ask: &SelectionAsk<'_>) -> Choice;

    /// What it wants to see; nothing unless it says so.
    fn needs(&self) -> Needs {
        Needs::default()
    }
}
