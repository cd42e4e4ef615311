//! What became known later about runs: verdicts that people or programs give.
//!
//! It knows no run; whoever takes an outcome has looked the run up. **Invariant:** a run is judged once for each thing that
//! can be judged of it, however often and under whatever keys a verdict is sent (case E11).

mod redis;
mod sqlite;

pub use self::redis::RedisOutcomes;
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

/// How far somebody has read: a place in the order in which outcomes were kept. The default is before all of them.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutcomeMark(pub(crate) i64);

impl OutcomeMark {
    /// The outcomes of such rows, each with its place, and the mark after them all: this one where there are none.
    pub(crate) fn on(self, rows: Vec<(Outcome, i64)>) -> (Vec<Outcome>, Self) {
        let end = rows.iter().map(|(_, place)| *place).max().map_or(self, Self);
        (rows.into_iter().map(|(outcome, _)| outcome).collect(), end)
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
    /// The server that replicas share cannot be used.
    #[error("the Redis server of outcomes: {0}")]
    Server(#[from] crate::redis_line::RedisFault),
}

impl OutcomeFault {
    /// Whether it is the place that replicas share which cannot be used: another try may help.
    #[must_use]
    pub fn is_of_a_shared_place(&self) -> bool {
        matches!(self, Self::Database(_) | Self::Server(_))
    }
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

    /// The latest outcomes of all runs, latest first, and how far one has read with them.
    fn latest(&self, most: usize) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>>;

    /// Outcomes that were told after that mark, earliest first, and how far one has read with them. None is left out: an
    /// outcome that is kept later stands after every mark that was given before.
    fn after(
        &self,
        mark: OutcomeMark,
        most: usize,
    ) -> BoxFuture<'_, Result<(Vec<Outcome>, OutcomeMark), OutcomeFault>>;

    /// Whether other processes keep outcomes here too.
    fn is_shared(&self) -> bool {
        false
    }
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
        let (latest, end) = store.latest(1).await.unwrap();
        assert_eq!(latest, std::slice::from_ref(&bad));
        assert_eq!(store.latest(10).await.unwrap(), (vec![bad, good], end));
    }

    #[tokio::test]
    async fn who_reads_on_from_a_mark_reads_everything_once() {
        let store = SqliteOutcomes::in_memory().unwrap();
        let start = OutcomeMark::default();
        assert_eq!(store.latest(5).await.unwrap(), (Vec::new(), start));
        let told: Vec<Outcome> = (0..5).map(|_| outcome(OutcomeVerdict::GoodFit)).collect();
        for (number, outcome) in told.iter().enumerate() {
            store.tell(number.to_string(), outcome.clone()).await.unwrap();
        }
        let (first, mark) = store.after(start, 3).await.unwrap();
        let (rest, end) = store.after(mark, 3).await.unwrap();
        assert_eq!([first, rest].concat(), told);
        assert_eq!(store.after(end, 3).await.unwrap(), (Vec::new(), end));
        assert_eq!(store.latest(1).await.unwrap().1, end);
    }
}
