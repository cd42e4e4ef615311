//! Which cache a configuration has: the process's own, or the server that it names.
//!
//! It knows stores by how they are opened. **Invariant:** configurations that name the same store share one cache; and what must
//! not touch what is served has one of its own, in this process.

use super::AnswerCache;
use crate::env::Env;
use crate::states::{self, StatesFault};
use chorus_spec::{CacheBackend, CacheServer, CacheStore};
use chorus_store::RedisAnswers;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a configuration's cache cannot be used at all.
#[derive(Debug, thiserror::Error)]
#[error("the response cache: {0}")]
pub struct CachePlaceFault(#[from] StatesFault);

/// The process's own, and the latest server's.
#[derive(Default)]
pub(crate) struct Caches {
    here: Arc<AnswerCache>,
    server: Mutex<Option<(CacheServer, Arc<AnswerCache>)>>,
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
    pub(crate) fn of(&self, store: &CacheStore, env: &Env) -> Result<Arc<AnswerCache>, CachePlaceFault> {
        let CacheBackend::Server(wanted) = &store.backend else { return Ok(Arc::clone(&self.here)) };
        if self.apart {
            return Ok(Arc::clone(&self.here));
        }
        let mut open = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, cache)) = open.as_ref().filter(|(of, _)| of == &**wanted) {
            return Ok(Arc::clone(cache));
        }
        let place = states::place(&wanted.place, env)?;
        let answers = RedisAnswers::new(&place, wanted.timeout).map_err(StatesFault::from)?;
        let cache = Arc::new(AnswerCache::shared(Arc::new(answers)));
        *open = Some((CacheServer::clone(wanted), Arc::clone(&cache)));
        Ok(cache)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::{CacheServerKind, RedisServer};
    use std::time::Duration;

    fn server(prefix: &str) -> CacheStore {
        let place = RedisServer { key_prefix: prefix.to_owned(), ..RedisServer::default() };
        let server = CacheServer { speaks: CacheServerKind::Redis, place, timeout: Duration::from_secs(1) };
        CacheStore { backend: CacheBackend::Server(Box::new(server)), ..CacheStore::default() }
    }

    #[test]
    fn configurations_of_one_store_share_a_cache() {
        let (caches, env) = (Caches::default(), Env::having(&[]));
        let of = |caches: &Caches, store: &CacheStore| caches.of(store, &env).unwrap();
        let here = of(&caches, &CacheStore::default());
        let first = of(&caches, &server("a:"));
        assert!(Arc::ptr_eq(&first, &of(&caches, &server("a:"))) && !Arc::ptr_eq(&first, &here));
        assert!(!Arc::ptr_eq(&first, &of(&caches, &server("b:"))));
        assert!(Arc::ptr_eq(&here, &of(&caches, &CacheStore::default())), "the process's own is there still");
        let apart = Caches::apart();
        assert!(Arc::ptr_eq(&of(&apart, &server("a:")), &of(&apart, &CacheStore::default())));
    }
}
