//! A configuration made ready to serve; immutable once built.

use crate::backends::Backends;
use crate::budget::Limits;
use crate::env::Env;
use crate::fault::{Code, Fault};
use crate::served::ServedRecipe;
use chorus_spec::Spec;

/// A configuration made ready to serve.
pub struct Mom {
    /// As checked.
    pub spec: Spec,
    /// Its recipes, in order.
    pub recipes: Vec<ServedRecipe>,
    /// Its backends.
    pub backends: Backends,
    /// What one request may spend.
    pub limits: Limits,
    /// The environment.
    pub env: Env,
}

impl Mom {
    /// The recipe at that index.
    ///
    /// # Errors
    /// [`Code::Internal`] when there is none.
    pub fn recipe(&self, at: usize) -> Result<&ServedRecipe, Fault> {
        self.recipes.get(at).ok_or_else(|| Fault::new(Code::Internal, "the recipe is gone"))
    }
}
