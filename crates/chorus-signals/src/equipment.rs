//! What signals are prepared with, besides the configuration: an encoder, heads over it, folders.
//!
//! It knows no rule. **Invariant:** everything in it is shared, so that every recipe may have all of it.

use crate::knowledge::Folders;
use chorus_infer::{Head, MixedHead, TextEncoder, heads, mixed};
use std::sync::Arc;

/// The heads that learned signals use.
#[derive(Debug, Clone, Copy, Default)]
pub struct Heads {
    /// One probability an MMLU-Pro category.
    pub domain: Option<&'static Head>,
    /// Labels `easy` and `hard` at least.
    pub complexity: Option<&'static Head>,
    /// `needs_fact_check` and `no_fact_check_needed`.
    pub fact_check: Option<&'static Head>,
    /// The four kinds of feedback, and a label for what is none.
    pub user_feedback: Option<&'static Head>,
    /// What is wanted: text, an image, both.
    pub modality: Option<&'static Head>,
    /// The probability that a text tries to take over the model.
    pub injection: Option<&'static MixedHead>,
}

impl Heads {
    /// The heads that are built in.
    #[must_use]
    pub fn built_in() -> Self {
        Self {
            domain: heads::domain(),
            complexity: heads::complexity(),
            fact_check: heads::fact_check(),
            user_feedback: heads::user_feedback(),
            modality: heads::modality(),
            injection: mixed::injection(),
        }
    }
}

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

/// How a model counts tokens.
#[derive(Clone)]
pub struct Vocabulary {
    /// The model.
    pub model: String,
    /// Tokens of a text.
    pub count: Arc<dyn Fn(&str) -> usize + Send + Sync>,
}
