//! What a policy answers: what it still needs to know, or who has won and why.
//!
//! Plain values; knows nothing of how they come about. **Invariant:** what is written out is sorted and complete, so
//! that the same evidence gives the same bytes.

use crate::{Ask, ProjectionTrace, Proof};
use chorus_spec::SignalKey;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// Which decisions may win.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Every decision of the recipe.
    #[default]
    All,
    /// Those at these positions of the recipe's list; a position past its end is ignored.
    Only(Vec<usize>),
}

impl Scope {
    pub(crate) fn admits(&self, decision: usize) -> bool {
        match self {
            Self::All => true,
            Self::Only(eligible) => eligible.contains(&decision),
        }
    }
}

/// The answer to one look at the evidence.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress {
    /// These signal rules must be evaluated first: never empty, sorted, without duplicates, all of one cost tier.
    ///
    /// An ask that comes back although it was carried out means that the keys which its rule emits were not inserted.
    Need(Vec<Ask>),
    /// The winner is certain.
    Done(Box<Verdict>),
}

/// Who has won, and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// The best decision that holds; `None` leaves the request to the default model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<Won>,
    /// A decision that may outrank the winner, and is undecided for want of unsupported signals.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked: Option<Blocked>,
    /// One for each decision in scope (after [`crate::Policy::explain`]: for each of the recipe), in recipe order.
    pub proofs: Vec<Proof>,
    /// How partitions, scores and mappings came out, as far as they are settled.
    pub projections: ProjectionTrace,
    /// Everything that holds with its confidence: after partitions and composers, mapping outputs included; sorted.
    #[serde(serialize_with = "as_map")]
    pub matched: Vec<(SignalKey, f64)>,
}

/// The winning decision.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Won {
    /// Its position in the recipe's list.
    pub decision: usize,
    /// Its name.
    pub name: Arc<str>,
    /// In 0..=1. A lower bound when `confidence_complete` is false.
    pub confidence: f64,
    /// Whether no signal that was left unasked could raise the confidence. Always true after
    /// [`crate::Policy::explain`]; [`crate::Policy::decide`] asks for confidence only where it ranks.
    pub confidence_complete: bool,
    /// As written.
    pub tier: i64,
    /// As written.
    pub priority: i64,
}

/// A decision that cannot be decided, because this version does not run what it asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Blocked {
    /// Its name.
    pub decision: Arc<str>,
    /// The unsupported signals that it waits for; never empty, sorted.
    #[serde(serialize_with = "as_names")]
    pub missing: Vec<SignalKey>,
}

fn as_map<S: Serializer>(matched: &[(SignalKey, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(matched.iter().map(|(key, confidence)| (key.shown(), confidence)))
}

fn as_names<S: Serializer>(keys: &[SignalKey], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(keys.iter().map(SignalKey::shown))
}
