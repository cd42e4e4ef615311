//! What users have stated, with the vectors by which it is found: each memory belongs to one user.
//!
//! It knows texts and vectors, not what they mean nor where they come from; times and rules are arguments. Where they are kept
//! is behind [`MemoryStore`]: a file of this process, or a Qdrant server that replicas share.
//! **Invariant:** no question reaches a memory of another user than the one that it names.

mod cached;
mod qdrant;
mod redis;
mod sqlite;

pub use self::cached::CachedMemories;
pub use self::qdrant::QdrantMemories;
pub(crate) use sqlite::SCHEMA;
pub use sqlite::SqliteMemories;

use crate::recall_fault::RecallFault;
use chorus_recall::reflect::strength;
use futures_util::future::BoxFuture;

/// A memory.
#[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Memory {
    /// Its name.
    pub id: String,
    /// Whose it is.
    pub user: String,
    /// What was stated.
    pub text: String,
    /// When it was stated last, in seconds since 1970.
    pub stated_at: u64,
    /// When it was shown to a model last, in seconds since 1970.
    pub read_at: u64,
    /// How often it was shown to a model.
    pub reads: u64,
    /// The run in which it was stated last.
    pub run: Option<String>,
    /// Its vector, of unit length.
    #[serde(skip)]
    pub vector: Vec<f32>,
}

/// A statement to be remembered.
#[derive(Debug, Clone)]
pub struct Statement {
    /// Whose it is.
    pub user: String,
    /// What was stated.
    pub text: String,
    /// Digest of the encoder that made the vector.
    pub encoder: String,
    /// Its vector, of unit length.
    pub vector: Vec<f32>,
    /// Now, in seconds since 1970.
    pub at: u64,
    /// The run in which it was stated.
    pub run: Option<String>,
}

/// When a statement is new, and what makes room for it.
#[derive(Debug, Clone, Copy)]
pub struct KeepRule {
    /// Cosine from which two statements say the same.
    pub same_cosine: f64,
    /// Most memories of one user; the weakest make room.
    pub most: usize,
    /// Days that a memory nobody reads is strong for (`initial_strength_days`).
    pub initial_days: f64,
    /// Strength below which a memory is forgotten; 0 forgets none.
    pub least_strength: f64,
}

/// What became of a statement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It is a new memory.
    New(String),
    /// This memory says the same, and is as fresh as if it had been stated now.
    Known(String),
}

impl Memory {
    /// How strong it is at that time, in 0..=1.
    fn power(&self, now: u64, rule: KeepRule) -> f64 {
        strength(now.saturating_sub(self.stated_at.max(self.read_at)), self.reads, rule.initial_days)
    }
}

impl KeepRule {
    /// Of all memories of a user, the ids of those that are too weak, and of the weakest that are too many.
    fn weak(self, mut all: Vec<Memory>, now: u64) -> Vec<String> {
        all.sort_by(|a, b| b.power(now, self).total_cmp(&a.power(now, self)));
        let is_weak =
            |(place, it): &(usize, Memory)| *place >= self.most || it.power(now, self) < self.least_strength;
        all.into_iter().enumerate().filter(is_weak).map(|(_, it)| it.id).collect()
    }
}

/// Where memories are kept.
pub trait MemoryStore: std::fmt::Debug + Send + Sync {
    /// Remembers a statement.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn keep(&self, it: Statement, rule: KeepRule) -> BoxFuture<'_, Result<Kept, RecallFault>>;

    /// All memories of a user that this encoder made, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn of<'a>(&'a self, user: &'a str, encoder: &'a str) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>>;

    /// Whether [`near`](Self::near) spares reading all memories of a user.
    fn finds_by_vector(&self) -> bool;

    /// The memories of a user, made by this encoder, that are nearest to a vector: so many, or all.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn near<'a>(
        &'a self,
        user: &'a str,
        encoder: &'a str,
        vector: &'a [f32],
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>>;

    /// Notes that memories of a user were shown to a model.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn read<'a>(&'a self, user: &'a str, ids: Vec<String>, at: u64)
    -> BoxFuture<'a, Result<(), RecallFault>>;

    /// Memories of a user, or of all where none is named, latest first.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn list<'a>(
        &'a self,
        user: Option<&'a str>,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Memory>, RecallFault>>;

    /// One memory, of that user where one is named.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn get<'a>(
        &'a self,
        user: Option<&'a str>,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<Memory>, RecallFault>>;

    /// Forgets one memory, of that user where one is named; whether it was there.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn forget<'a>(&'a self, user: Option<&'a str>, id: &'a str) -> BoxFuture<'a, Result<bool, RecallFault>>;

    /// Forgets all memories of a user; how many there were.
    ///
    /// # Errors
    /// [`RecallFault::Io`].
    fn forget_all<'a>(&'a self, user: &'a str) -> BoxFuture<'a, Result<usize, RecallFault>>;
}

#[cfg(test)]
mod tests;
