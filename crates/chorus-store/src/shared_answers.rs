//! Answers to earlier requests, in a server that replicas share.
//!
//! What an answer fits is told by keys and vectors that others make; here it is kept for its time, counted, and taken out. It
//! knows no request and no encoder. **Invariants:** an answer is given under the very key that it was stored under; one that
//! was stored under an earlier epoch is never given, whichever replica began the new one; and no fault repeats an address, a
//! password or a word of an answer.

mod qdrant;
mod redis;
mod scripts;

pub use self::qdrant::QdrantAnswers;
pub use self::redis::RedisAnswers;

use chorus_cache::{Bounds, Filter, Labels, Listed, NewAnswer, Tally, Worded};
use futures_util::FutureExt as _;
use futures_util::future::{self, BoxFuture};

/// Why the server did not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server of cached answers failed ({0})")]
pub struct AnswersFault(
    /// What kind of failure.
    pub &'static str,
);

/// An answer that the server has.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedAnswer {
    /// Its name.
    pub id: String,
    /// Where it came from.
    pub labels: Labels,
    /// The answer.
    pub body: Vec<u8>,
    /// How long ago it was stored, in milliseconds of the server's clock.
    pub age_ms: u64,
}

/// What a key led to.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyLook {
    /// The server's epoch.
    pub epoch: u64,
    /// The answer.
    pub answer: Option<SharedAnswer>,
}

/// What a lookup of a key says besides the key.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyWish {
    /// Oldest answer that will do, in milliseconds.
    pub max_age_ms: Option<u64>,
    /// Whether an answer that is given again stays longer.
    pub touch: bool,
}

/// A row of a partition: what a question of like meaning is compared with.
#[derive(Debug, Clone, PartialEq)]
pub struct SharedRow {
    /// The key under which the answer is.
    pub exact: String,
    /// Its name.
    pub id: String,
    /// The last message of its request.
    pub text: String,
    /// The message's unit vector.
    pub vector: Vec<f32>,
}

/// Rows with their cosines, nearest first.
pub type Near = Vec<(SharedRow, f64)>;

/// Rows of a partition that are later than a place, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedRows {
    /// The server's epoch.
    pub epoch: u64,
    /// Rows of the whole partition.
    pub stored: usize,
    /// Those that are new.
    pub rows: Vec<SharedRow>,
    /// The place of the last of them.
    pub after: u64,
    /// Whether there are more.
    pub more: bool,
}

/// What became of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedPut {
    /// It is kept.
    Stored,
    /// Another epoch has begun since its request was looked up.
    OfAnEarlierEpoch,
    /// It is larger than all may be.
    TooLarge,
}

/// Answers that replicas share.
pub trait SharedAnswers: Send + Sync {
    /// The epoch.
    fn epoch(&self) -> BoxFuture<'_, Result<u64, AnswersFault>>;

    /// The answer under that key.
    fn exact<'a>(&'a self, key: &'a str, wish: KeyWish) -> BoxFuture<'a, Result<KeyLook, AnswersFault>>;

    /// Rows of a partition that are later than that place; none where the server itself looks for what is [`near`](Self::near).
    fn rows<'a>(
        &'a self,
        _partition: &'a str,
        _after: u64,
    ) -> BoxFuture<'a, Result<SharedRows, AnswersFault>> {
        future::ready(Ok(SharedRows::default())).boxed()
    }

    /// The rows of a partition that are nearest to a message, nearest first, with their cosines and without their vectors; `None`
    /// where the server does not look for them, and its [`rows`](Self::rows) are compared here.
    fn near<'a>(
        &'a self,
        _asked: &'a Worded,
        _most: usize,
    ) -> BoxFuture<'a, Result<Option<Near>, AnswersFault>> {
        future::ready(Ok(None)).boxed()
    }

    /// Keeps an answer whose request was looked up in that epoch, in place of the one under the same key.
    fn put(
        &self,
        new: NewAnswer,
        epoch: u64,
        bounds: Bounds,
    ) -> BoxFuture<'_, Result<SharedPut, AnswersFault>>;

    /// The answers that a filter names, latest first, at most so many.
    fn list<'a>(
        &'a self,
        filter: &'a Filter,
        most: usize,
    ) -> BoxFuture<'a, Result<Vec<Listed>, AnswersFault>>;

    /// Takes out the answers that a filter names, for all replicas; a dry run only counts them.
    fn invalidate<'a>(
        &'a self,
        filter: &'a Filter,
        dry_run: bool,
    ) -> BoxFuture<'a, Result<usize, AnswersFault>>;

    /// Begins another epoch, for all replicas; how many answers there were.
    fn flush(&self) -> BoxFuture<'_, Result<usize, AnswersFault>>;

    /// The epoch, and what is counted over all replicas.
    fn tally(&self) -> BoxFuture<'_, Result<(u64, Tally), AnswersFault>>;
}
