//! How the models of a recipe count tokens, where they all run in this process.
//!
//! It knows model files and no request. **Invariant:** the vocabularies of a recipe are those of every model that may
//! answer, or none.

use crate::local::LocalModels;
use chorus_infer::generator::TokenCounter;
use chorus_signals::Vocabulary;
use chorus_spec::{Endpoint, Recipe, Spec};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The vocabularies of the models that may answer for a recipe; none where one of them is served elsewhere, or its file
/// is not here yet.
pub(crate) fn of(recipe: &Recipe, spec: &Spec, local: Option<&LocalModels>) -> Vec<Vocabulary> {
    let refs = recipe.decisions.iter().flat_map(|decision| &decision.model_refs);
    let models: BTreeSet<_> = refs.map(|it| &it.model).chain(&spec.default_model).collect();
    let backends = models.iter().filter_map(|id| spec.models.get(id)).flat_map(|model| &model.backends);
    let names: Option<BTreeSet<&str>> = backends
        .map(|backend| match &backend.endpoint {
            Endpoint::Local { model } => Some(model.as_str()),
            Endpoint::Http { .. } => None,
        })
        .collect();
    let open = |name: &str| {
        let counter = TokenCounter::open(&local?.file(name)?).ok()?;
        Some(Vocabulary { model: name.to_owned(), count: Arc::new(move |text| counter.count(text)) })
    };
    names.into_iter().flatten().map(open).collect::<Option<_>>().unwrap_or_default()
}
