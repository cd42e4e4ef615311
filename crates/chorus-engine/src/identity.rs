//! The model name of a request → a recipe, the decisions of one looper, or one model directly.

use crate::fault::{Code, Fault};
use chorus_spec::{LooperKind, ModelId, Spec};

/// What a model name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// A recipe decides (an auto name, or an entrypoint).
    Recipe(usize),
    /// Only the decisions of one looper in the default recipe.
    Looper(LooperKind),
    /// One concrete model, no decision.
    Model(ModelId),
}

/// Looks a name up: auto names, looper slugs, entrypoints, models. Source: contract §3.1.
///
/// # Errors
/// A clear 404.
pub fn identify(spec: &Spec, name: &str) -> Result<Identity, Fault> {
    let is = |names: &[String]| names.iter().any(|n| n == name);
    if is(&spec.global.auto_names) {
        return Ok(Identity::Recipe(0));
    }
    if let Some(kind) = spec.global.looper_of(name) {
        return Ok(Identity::Looper(kind));
    }
    if let Some(entry) = spec.entrypoints.iter().find(|e| is(&e.model_names)) {
        let at = spec.recipes.iter().position(|r| r.name == entry.recipe);
        return at.map(Identity::Recipe).ok_or_else(|| unknown(name));
    }
    let id = ModelId::new(name);
    if spec.models.contains_key(&id) {
        return Ok(Identity::Model(id));
    }
    Err(unknown(name))
}

fn unknown(name: &str) -> Fault {
    // A name of any length comes from outside; the error does not repeat more than a line of it.
    let shown: String = name.chars().take(80).collect();
    Fault::new(
        Code::ModelNotFound,
        format!("the model `{shown}` does not exist; GET /v1/models lists those that do"),
    )
    .at("model")
}
