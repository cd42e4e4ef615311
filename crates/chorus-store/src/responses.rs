//! Responses of the Responses protocol that wait to be asked for again: kept for a while, in memory, in one
//! file, or in a server that replicas share.
//!
//! It knows a response as JSON text, and not what is in it. The texts are conversations; a file can be read by its owner
//! only. **Invariant:** a response that was settled is never settled again, whoever comes second (a cancel and an answer
//! may race).

mod memory;
mod redis;
mod sqlite;

pub use self::redis::RedisResponses;
pub use memory::MemoryResponses;
pub use sqlite::SqliteResponses;

use crate::database::Unusable;
use futures_util::future::BoxFuture;
use std::time::Duration;

/// Bounds of what is kept, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct ResponseLimits {
    /// Most responses (`max_responses`, default 1,000); the oldest makes room. Source: contract §4.1.
    pub max_responses: usize,
    /// How long one is kept (`response_ttl`, default 24 h). Source: contract §4.1.
    pub ttl: Duration,
    /// Longest one, input and object together (`max_response_bytes`, default 8 MiB).
    pub max_response_bytes: usize,
}

impl Default for ResponseLimits {
    fn default() -> Self {
        Self { max_responses: 1000, ttl: Duration::from_secs(86_400), max_response_bytes: 8 << 20 }
    }
}

/// One response as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptResponse {
    /// Its name.
    pub id: String,
    /// Whose it is, where somebody vouched for a caller; others do not find it.
    pub owner: Option<String>,
    /// Seconds since 1970.
    pub created_at: u64,
    /// Whether it is as it will be.
    pub settled: bool,
    /// All input items of the conversation up to it, as a JSON list.
    pub input: String,
    /// The object, as JSON.
    pub object: String,
}

impl KeptResponse {
    fn bytes(&self) -> usize {
        self.input.len().saturating_add(self.object.len())
    }

    fn check(&self, limits: &ResponseLimits) -> Result<(), ResponseFault> {
        let (bytes, limit) = (self.bytes(), limits.max_response_bytes);
        if bytes > limit { Err(ResponseFault::TooLarge { bytes, limit }) } else { Ok(()) }
    }

    fn is_fresh(&self, limits: &ResponseLimits, now: u64) -> bool {
        now.saturating_sub(self.created_at) < limits.ttl.as_secs()
    }
}

/// Why a response is not kept, or not found.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResponseFault {
    /// Too long to be kept.
    #[error("the response has {bytes} bytes; {limit} are the most that are kept (max_response_bytes)")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The bound.
        limit: usize,
    },
    /// The store cannot be used.
    #[error("the store of responses cannot be used: {0}")]
    Io(String),
}

impl From<Unusable> for ResponseFault {
    fn from(Unusable(why): Unusable) -> Self {
        Self::Io(why)
    }
}

impl From<rusqlite::Error> for ResponseFault {
    fn from(error: rusqlite::Error) -> Self {
        Unusable::from(error).into()
    }
}

/// Keeps responses.
pub trait ResponseStore: Send + Sync {
    /// Keeps one; an earlier one of that name is replaced.
    fn put(&self, response: KeptResponse) -> BoxFuture<'_, Result<(), ResponseFault>>;

    /// One that is there and not too old.
    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<KeptResponse>, ResponseFault>>;

    /// Gives an unsettled one its last object; whether it was there and unsettled.
    fn settle<'a>(&'a self, id: &'a str, object: String) -> BoxFuture<'a, Result<bool, ResponseFault>>;

    /// Forgets one; whether it was there.
    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, ResponseFault>>;
}

/// Seconds since 1970.
fn now() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response(n: u64, created_at: u64) -> KeptResponse {
        KeptResponse {
            id: format!("resp_{n}"),
            owner: Some("ada".to_owned()),
            created_at,
            settled: false,
            input: "[]".to_owned(),
            object: r#"{"status":"in_progress"}"#.to_owned(),
        }
    }

    fn stores(limits: ResponseLimits) -> Vec<Box<dyn ResponseStore>> {
        let file = SqliteResponses::in_memory(limits).unwrap();
        vec![Box::new(MemoryResponses::new(limits)), Box::new(file)]
    }

    #[tokio::test]
    async fn a_response_is_settled_once() {
        for store in stores(ResponseLimits::default()) {
            let kept = response(1, now());
            store.put(kept.clone()).await.unwrap();
            assert_eq!(store.get("resp_1").await.unwrap(), Some(kept));
            assert!(store.settle("resp_1", "{1}".to_owned()).await.unwrap());
            assert!(
                !store.settle("resp_1", "{2}".to_owned()).await.unwrap(),
                "who comes second changes nothing"
            );
            let kept = store.get("resp_1").await.unwrap().unwrap();
            assert_eq!((kept.settled, kept.object.as_str()), (true, "{1}"));
            assert!(store.delete("resp_1").await.unwrap());
            assert!(!store.delete("resp_1").await.unwrap());
            assert!(!store.settle("resp_1", "{3}".to_owned()).await.unwrap());
            assert_eq!(store.get("resp_1").await.unwrap(), None);
        }
    }

    #[tokio::test]
    async fn i02_every_bound_is_held() {
        let limits =
            ResponseLimits { max_responses: 3, ttl: Duration::from_secs(60), max_response_bytes: 64 };
        for store in stores(limits) {
            for n in 0..6 {
                store.put(response(n, now() - 10 + n)).await.unwrap();
            }
            assert_eq!(store.get("resp_2").await.unwrap(), None, "the oldest made room");
            assert!(store.get("resp_3").await.unwrap().is_some());
            store.put(response(9, now() - 61)).await.unwrap();
            assert_eq!(store.get("resp_9").await.unwrap(), None, "too old");
            let long = KeptResponse { input: "x".repeat(65), ..response(7, now()) };
            assert!(matches!(store.put(long).await, Err(ResponseFault::TooLarge { .. })));
            let settled = store.settle("resp_5", "x".repeat(65)).await;
            assert!(matches!(settled, Err(ResponseFault::TooLarge { .. })));
        }
    }

    #[tokio::test]
    async fn a_file_keeps_them_over_a_restart() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/responses.sqlite");
        let kept = response(1, now());
        SqliteResponses::open(&path, ResponseLimits::default()).unwrap().put(kept.clone()).await.unwrap();
        let again = SqliteResponses::open(&path, ResponseLimits::default()).unwrap();
        assert_eq!(again.get("resp_1").await.unwrap(), Some(kept));
        std::fs::write(folder.path().join("other"), "no database at all, but long enough to be looked at")
            .unwrap();
        assert!(SqliteResponses::open(&folder.path().join("other"), ResponseLimits::default()).is_err());
    }
}
