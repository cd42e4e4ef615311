//! What is known of conversations, in a Redis server that replicas share.
//!
//! One key a conversation, with its own time to live; how long it was silent is what has gone of that, on the server's clock. It
//! knows no model: what is kept is a text of whoever keeps it. **Invariant:** while the server is away nobody waits for it but
//! one question a second; and no fault repeats an address or a password.

use crate::redis_line::{self, RedisLine, RedisPlace, RedisPlaceFault};
use crate::rest::Rest;
use redis::RedisError;
use std::sync::Arc;
use std::time::Duration;

/// How long a connection may take: a request waits for it.
const CONNECT_TIME: Duration = Duration::from_secs(1);

/// Why it cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the Redis server of conversations failed ({0})")]
pub struct SessionsFault(&'static str);

/// The conversations. Cloning shares the connection.
#[derive(Clone)]
pub struct RedisSessions(Arc<Shared>);

struct Shared {
    line: RedisLine,
    prefix: String,
    ttl: Duration,
    rest: Rest,
}

impl std::fmt::Debug for RedisSessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RedisSessions")
    }
}

impl RedisSessions {
    /// The conversations at that place, each forgotten after `ttl` of silence; a question may take `timeout`. Nothing is sent
    /// yet.
    ///
    /// # Errors
    /// [`RedisPlaceFault`].
    pub fn new(place: &RedisPlace, ttl: Duration, timeout: Duration) -> Result<Self, RedisPlaceFault> {
        let line = RedisLine::new(place, CONNECT_TIME, timeout)?;
        Ok(Self(Arc::new(Shared { line, prefix: place.key_prefix.clone(), ttl, rest: Rest::default() })))
    }

    /// What is kept of a conversation, and how long it was silent.
    ///
    /// # Errors
    /// [`SessionsFault`].
    pub async fn get(&self, key: &str) -> Result<Option<(String, Duration)>, SessionsFault> {
        self.unless_away()?;
        self.told(self.found(key).await)
    }

    async fn found(&self, key: &str) -> Result<Option<(String, Duration)>, RedisError> {
        let name = format!("{}{key}", self.0.prefix);
        let mut connection = self.0.line.connection().await?;
        let mut both = redis::pipe();
        both.cmd("GET").arg(&name).cmd("PTTL").arg(&name);
        let (text, left): (Option<String>, i64) = both.query_async(&mut connection).await?;
        let left = Duration::from_millis(u64::try_from(left).unwrap_or(0));
        Ok(text.map(|text| (text, self.0.ttl.saturating_sub(left))))
    }

    /// Keeps a text of a conversation that has just gone on.
    ///
    /// # Errors
    /// [`SessionsFault`].
    pub async fn put(&self, key: &str, text: String) -> Result<(), SessionsFault> {
        self.unless_away()?;
        let kept = async {
            let mut connection = self.0.line.connection().await?;
            let millis = u64::try_from(self.0.ttl.as_millis()).unwrap_or(u64::MAX).max(1);
            let mut set = redis::cmd("SET");
            set.arg(format!("{}{key}", self.0.prefix)).arg(text).arg("PX").arg(millis);
            set.query_async(&mut connection).await
        };
        self.told(kept.await)
    }

    /// A server that failed a moment ago is not asked again.
    fn unless_away(&self) -> Result<(), SessionsFault> {
        self.0.rest.now().map_or(Ok(()), |kind| Err(SessionsFault(kind)))
    }

    fn told<T>(&self, answer: Result<T, RedisError>) -> Result<T, SessionsFault> {
        let answer = answer.map_err(|fault| redis_line::kind(&fault));
        let failure = answer.as_ref().err().copied();
        if self.0.rest.saw(failure) {
            tracing::warn!(kind = failure, "the Redis server of conversations failed");
        }
        answer.map_err(SessionsFault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_that_is_away_is_left_alone_for_a_moment() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let place = RedisPlace {
            address: listener.local_addr().unwrap().to_string(),
            database: 0,
            password: None,
            tls: false,
            tls_any_certificate: false,
            retries: 0,
            key_prefix: "p:".to_owned(),
        };
        drop(listener);
        let sessions =
            RedisSessions::new(&place, Duration::from_secs(60), Duration::from_millis(100)).unwrap();
        let fault = sessions.get("a").await.unwrap_err();
        assert!(!fault.to_string().contains("127.0.0.1"), "{fault}");
        // Whoever listens there now is not asked yet.
        let asked = tokio::net::TcpListener::bind(&place.address).await.unwrap();
        assert_eq!(sessions.put("a", "x".to_owned()).await, Err(fault));
        let waits = tokio::time::timeout(Duration::from_millis(20), asked.accept()).await;
        assert!(waits.is_err(), "no connection");
    }
}
