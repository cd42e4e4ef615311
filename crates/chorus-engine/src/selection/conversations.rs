//! Where conversations are remembered: in this process, or in a Redis server that replicas share.
//!
//! What the server holds is the state as JSON. Every turn is remembered in this process too, so that a replica whose server is
//! away goes on with the turns that it has served itself. **Invariant:** a server that is away delays a turn and fails none; each
//! turn that was decided without it is counted.

use super::sessions::Sessions;
use crate::env::Env;
use crate::meters::Meters;
use crate::states::{self, StatesFault};
use chorus_select::session::SessionState;
use chorus_spec::SessionStore;
use chorus_store::RedisSessions;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The conversations.
#[derive(Clone)]
pub(crate) struct Conversations {
    here: Arc<Sessions>,
    shared: Option<(RedisSessions, Arc<Meters>)>,
}

impl Conversations {
    /// Those of the process.
    pub(crate) fn here(here: Arc<Sessions>) -> Self {
        Self { here, shared: None }
    }

    /// The same, shared by the server that the configuration names, if it names one.
    ///
    /// # Errors
    /// [`StatesFault`].
    pub(crate) fn shared_in(
        self,
        store: Option<&SessionStore>,
        env: &Env,
        meters: &Arc<Meters>,
    ) -> Result<Self, StatesFault> {
        let Some(store) = store else { return Ok(self) };
        let server = RedisSessions::new(&states::place(&store.place, env)?, store.ttl, store.timeout)?;
        Ok(Self { shared: Some((server, Arc::clone(meters))), ..self })
    }

    /// What is remembered of a conversation, and how long it was silent.
    pub(crate) async fn get(&self, key: &str, now: Instant) -> Option<(SessionState, Duration)> {
        let Some((server, meters)) = &self.shared else { return self.here.get(key, now) };
        match server.get(key).await {
            Ok(found) => {
                let (text, idle) = found?;
                // What another version wrote and this one cannot read is a conversation that is not known.
                Some((serde_json::from_str(&text).ok()?, idle))
            }
            Err(_) => {
                meters.session_alone();
                self.here.get(key, now)
            }
        }
    }

    /// Remembers it; of this process as [`Sessions::put`] says. The server is told by a task of its own: the answer has left, and
    /// whoever waits for nothing more must not cut it off.
    pub(crate) fn put(&self, key: String, state: SessionState, now: Instant, longest: Duration) {
        if let Some((server, _)) = &self.shared
            && let Ok(text) = serde_json::to_string(&state)
        {
            let (server, key) = (server.clone(), key.clone());
            // Its failure is in the log, and the next turn that misses it is counted.
            tokio::spawn(async move { server.put(&key, text).await });
        }
        self.here.put(key, state, now, longest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::RedisServer;

    #[tokio::test]
    async fn without_its_server_a_replica_knows_its_own_turns_and_counts_them() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        drop(listener);
        let place = RedisServer { address, retries: 0, ..RedisServer::default() };
        let store = SessionStore { place, ..SessionStore::default() };
        let (meters, env) = (Arc::<Meters>::default(), Env::having(&[]));
        let kept = Conversations::here(Arc::default()).shared_in(Some(&store), &env, &meters).unwrap();
        let (now, state) = (Instant::now(), chorus_select::session::after(None, "a", "d"));
        kept.put("k".to_owned(), state.clone(), now, Duration::from_secs(60));
        assert_eq!(kept.get("k", now).await, Some((state, Duration::ZERO)));
        assert_eq!(kept.get("other", now).await, None);
        let counted = meters.text(&[]);
        assert!(counted.contains("chorus_sessions_alone_total 2"), "{counted}");
    }
}
