//! The served encoder as the vectors of grounding by meaning.
//!
//! **Invariant:** an encoder that fails is no evidence: grounding goes by words then.

use crate::mom::Mom;
use chorus_collab::fusion::{FusionPlan, MeaningScorer, TextVectors};
use chorus_spec::{Algorithm, Decision, GroundingScorer, Spec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::fmt;
use std::sync::Arc;

/// Whether any decision grounds its panel by meaning, for which an encoder must be loaded.
#[must_use]
pub fn needs_encoder(spec: &Spec) -> bool {
    let by_meaning = |decision: &Decision| match &decision.algorithm {
        Algorithm::Fusion(it) => it.grounding.is_some_and(|it| it.scorer == GroundingScorer::Meaning),
        _ => false,
    };
    spec.recipes.iter().flat_map(|recipe| &recipe.decisions).any(by_meaning)
}

/// The plan with the encoder's vectors for its grounding, where it wants them and an encoder is loaded.
pub(super) fn grounded(mom: &Arc<Mom>, plan: &FusionPlan) -> Option<FusionPlan> {
    let wanted = plan.grounding.is_some_and(|it| it.scorer == GroundingScorer::Meaning);
    let scorer = by_meaning(mom).filter(|_| wanted)?;
    Some(FusionPlan { scorer: Arc::new(scorer), ..plan.clone() })
}

/// A scorer over the served encoder's vectors, where an encoder is loaded.
pub(crate) fn by_meaning(mom: &Arc<Mom>) -> Option<MeaningScorer> {
    mom.classifiers.encoder()?;
    Some(MeaningScorer::new(Arc::new(ServedVectors(Arc::clone(mom)))))
}

/// The encoder of a configuration.
struct ServedVectors(Arc<Mom>);

impl fmt::Debug for ServedVectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ServedVectors").field(&self.0.classifiers.encoder()).finish()
    }
}

impl TextVectors for ServedVectors {
    fn vectors(&self, texts: Vec<String>) -> BoxFuture<'_, Option<Vec<Vec<f32>>>> {
        async move {
            let encoded = self.0.classifiers.embed(texts).await;
            encoded.inspect_err(|fault| tracing::warn!(%fault, "grounding goes by words")).ok()
        }
        .boxed()
    }
}
