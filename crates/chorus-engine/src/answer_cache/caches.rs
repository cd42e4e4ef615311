//! Which cache a configuration has: the process's own, or the server that it names.
//!
//! It knows stores by how they are opened. **Invariant:** configurations that name the same store share one cache; and what must
//! not touch what is served has one of its own, in this process.

use super::AnswerCache;
use crate::env::Env;
use crate::qdrant_link::{Link, QdrantPlaceFault};
use crate::states::{self, StatesFault};
use chorus_spec::{CacheBackend, CacheStore};
use chorus_store::{QdrantAnswers, RedisAnswers, SharedAnswers};
use chorus_upstream::Upstream;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a configuration's cache cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("the response cache: {0}")]
pub enum CachePlaceFault {
    /// A Redis or Valkey server cannot be asked.
    Redis(#[from] StatesFault),
    /// A Qdrant server cannot be asked.
    Qdrant(#[from] QdrantPlaceFault),
}

/// The process's own, and the latest server's.
#[derive(Default)]
pub(crate) struct Caches {
    here: Arc<AnswerCache>,
    server: Mutex<Option<(CacheBackend, Arc<AnswerCache>)>>,
    apart: bool,
}

impl Caches {
    /// For what must not touch what is served.
    pub(crate) fn apart() -> Self {
        Self { apart: true, ..Self::default() }
    }

    /// The cache of a configuration. Nothing is sent to a server yet.
    ///
    /// # Errors
    /// [`CachePlaceFault`].
    pub(crate) fn of(
        &self,
        store: &CacheStore,
        env: &Env,
        upstream: &Upstream,
    ) -> Result<Arc<AnswerCache>, CachePlaceFault> {
        if self.apart || store.backend == CacheBackend::Memory {
            return Ok(Arc::clone(&self.here));
        }
        let mut open = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cache)) = open.as_ref().filter(|(of, _)| *of == store.backend) {
            return Ok(Arc::clone(cache));
        }
        let answers: Arc<dyn SharedAnswers> = match &store.backend {
            CacheBackend::Memory => return Ok(Arc::clone(&self.here)),
            CacheBackend::Server(wanted) => {
                let place = states::place(&wanted.place, env)?;
                Arc::new(RedisAnswers::new(&place, wanted.timeout).map_err(StatesFault::from)?)
            }
            CacheBackend::Qdrant(place) => {
                let link = Arc::new(Link::to(place, env, upstream.clone())?);
                Arc::new(QdrantAnswers::new(link, &place.collection))
            }
        };
        let cache = Arc::new(AnswerCache::shared(answers));
        *open = Some((store.backend.clone(), Arc::clone(&cache)));
        Ok(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::{CacheServer, CacheServerKind, QdrantPlace, RedisServer};
    use std::time::Duration;

    fn server(prefix: &str) -> CacheStore {
        let place = RedisServer { key_prefix: prefix.to_owned(), ..RedisServer::default() };
        let server = CacheServer { speaks: CacheServerKind::Redis, place, timeout: Duration::from_secs(1) };
        CacheStore { backend: CacheBackend::Server(Box::new(server)), ..CacheStore::default() }
    }

    #[test]
    fn configurations_of_one_store_share_a_cache() {
        let (caches, env) = (Caches::default(), Env::having(&[]));
        let upstream = Upstream::new(&Default::default()).unwrap();
        let of = |caches: &Caches, store: &CacheStore| caches.of(store, &env, &upstream).unwrap();
        let here = of(&caches, &CacheStore::default());
        let first = of(&caches, &server("a:"));
        assert!(Arc::ptr_eq(&first, &of(&caches, &server("a:"))) && !Arc::ptr_eq(&first, &here));
        assert!(!Arc::ptr_eq(&first, &of(&caches, &server("b:"))));
        let place = QdrantPlace {
            host: "localhost".to_owned(),
            port: 6333,
            api_key: None,
            tls: false,
            timeout: Duration::from_secs(1),
            collection: "c".to_owned(),
        };
        let qdrant = CacheStore { backend: CacheBackend::Qdrant(Box::new(place)), ..CacheStore::default() };
        let third = of(&caches, &qdrant);
        assert!(Arc::ptr_eq(&third, &of(&caches, &qdrant)) && !Arc::ptr_eq(&third, &here));
        assert!(Arc::ptr_eq(&here, &of(&caches, &CacheStore::default())), "the process's own is there still");
        let apart = Caches::apart();
        assert!(Arc::ptr_eq(&of(&apart, &server("a:")), &of(&apart, &CacheStore::default())));
    }
}
