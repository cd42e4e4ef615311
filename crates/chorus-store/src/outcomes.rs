//! What became known later about runs: verdicts that people or programs give.
//!
//! It knows no run; whoever takes an outcome has looked the run up. **Invariant:** a run is judged once for each thing that
//! can be judged of it, however often and under whatever keys a verdict is sent (case E11).

mod sqlite;

pub use sqlite::SqliteOutcomes;

use crate::RunId;
use crate::database::Unusable;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a verdict is about. Source: contract §4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeTarget {
    /// The model that answered.
    Model,
    /// The decision that won.
    Route,
    /// The policy as a whole.
    Policy,
    /// Whether the conversation kept its model.
    Stability,
    /// The provider behind the model.
    Provider,
    /// The router itself.
    Router,
}

/// How it did. Source: contract §4.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutcomeVerdict {
    /// As it should.
    GoodFit,
    /// Something stronger was needed.
    Underpowered,
    /// Something cheaper would have done.
    Overprovisioned,
    /// It did not work.
    Failed,
}

/// One verdict on a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The run.
    pub run: RunId,
    /// When it was told, in milliseconds since 1970.
    pub told_at_ms: u64,
    /// What it is about.
    pub target: OutcomeTarget,
    /// Which one: the model's name for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_ref: Option<String>,
    /// The decision that the run took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    /// How it did.
    pub verdict: OutcomeVerdict,
    /// Why, in the sender's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A number of the sender's, in 0..=1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Short facts of the sender's.
    #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
    pub metadata: BTreeMap<String, String>,
}

impl Outcome {
    /// Whether it says the same, whenever it was told.
    pub(crate) fn says(&self, other: &Self) -> bool {
        Self { told_at_ms: other.told_at_ms, ..self.clone() } == *other
    }
}

/// What became of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// It is kept.
    New,
    /// It was kept before, under the same key.
    Again,
    /// Another one is kept under that key, or of that part of the run.
    Other,
}

/// Why outcomes cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum OutcomeFault {
    /// Disk full, no permission, damaged, locked for too long.
    #[error("the file of outcomes cannot be used: {0}")]
    Io(String),
    /// The database that replicas share cannot be used.
    #[error("the database of outcomes: {0}")]
    Database(#[from] crate::postgres_line::PostgresFault),
}

impl From<Unusable> for OutcomeFault {
    fn from(Unusable(why): Unusable) -> Self {
        Self::Io(why)
    }
}

impl From<rusqlite::Error> for OutcomeFault {
    fn from(error: rusqlite::Error) -> Self {
        Unusable::from(error).into()
    }
}

/// Keeps outcomes.
pub trait OutcomeStore: Send + Sync {
    /// Keeps an outcome under its sender's key.
    fn tell(&self, key: String, outcome: Outcome) -> BoxFuture<'_, Result<Told, OutcomeFault>>;

    /// The outcomes of a run, in the order in which they were told.
    fn of(&self, run: &RunId) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>>;

    /// The latest outcomes of all runs, latest first.
    fn latest(&self, most: usize) -> BoxFuture<'_, Result<Vec<Outcome>, OutcomeFault>>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(verdict: OutcomeVerdict) -> Outcome {
        Outcome {
            run: RunId::new(),
            told_at_ms: 5,
            target: OutcomeTarget::Model,
            target_ref: Some("small".to_owned()),
            decision: Some("greet".to_owned()),
            verdict,
            reason: None,
            score: Some(0.5),
            metadata: BTreeMap::from([("by".to_owned(), "a test".to_owned())]),
        }
    }

    #[tokio::test]
    async fn e11_an_outcome_is_kept_once_for_each_key_and_run() {
        let store = SqliteOutcomes::in_memory().unwrap();
        let (good, bad) = (outcome(OutcomeVerdict::GoodFit), outcome(OutcomeVerdict::Failed));
        let tell = |key: &str, outcome: &Outcome| store.tell(key.to_owned(), outcome.clone());
        assert_eq!(tell("k1", &good).await.unwrap(), Told::New);
        let later = Outcome { told_at_ms: 9, ..good.clone() };
        assert_eq!(tell("k1", &later).await.unwrap(), Told::Again);
        assert_eq!(tell("k1", &bad).await.unwrap(), Told::Other);
        let second = Outcome { verdict: OutcomeVerdict::Failed, ..good.clone() };
        assert_eq!(tell("k2", &second).await.unwrap(), Told::Other, "a run is judged once");
        assert_eq!(tell("k2", &bad).await.unwrap(), Told::New);
        assert_eq!(store.of(&bad.run).await.unwrap(), std::slice::from_ref(&bad));
        assert_eq!(store.latest(1).await.unwrap(), std::slice::from_ref(&bad));
        assert_eq!(store.latest(10).await.unwrap(), [bad, good]);
    }
}
