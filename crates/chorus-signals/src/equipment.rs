//! What signals are prepared with, besides the configuration: an encoder, heads over it, folders.
//!
//! It knows no rule. **Invariant:** everything in it is shared, so that every recipe may have all of it.

use crate::knowledge::Folders;
pub use chorus_infer::heads::Heads;
use chorus_infer::{TextEncoder, heads};
use std::sync::Arc;

/// What signals are prepared with, besides the configuration.
#[derive(Clone, Default)]
pub struct Equipment {
    /// The encoder; without one, learned signals are absent.
    pub encoder: Option<Arc<dyn TextEncoder>>,
    /// The heads over it.
    pub heads: Heads,
    /// Where files that the configuration names are looked for.
    pub folders: Folders,
    /// The vocabularies of the models that may answer; none when one of them is not at hand.
    pub vocabularies: Vec<Vocabulary>,
}

impl Equipment {
    /// An encoder with the built-in heads that fit it, and nothing else. Without one the heads are those of the default
    /// encoder: what they know of words alone still counts.
    #[must_use]
    pub fn of(encoder: Option<Arc<dyn TextEncoder>>) -> Self {
        let of = |encoder: &dyn TextEncoder| heads::for_encoder(encoder.digest());
        let heads = encoder.as_deref().map_or_else(heads::of_default, of);
        Self { encoder, heads, ..Self::default() }
    }
}

/// How a model counts tokens.
#[derive(Clone)]
pub struct Vocabulary {
    /// The model.
    pub model: String,
    /// Tokens of a text.
    pub count: Arc<dyn Fn(&str) -> usize + Send + Sync>,
}
