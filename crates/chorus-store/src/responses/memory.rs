//! Responses in this process: gone when it stops.

use super::{KeptResponse, ResponseFault, ResponseLimits, ResponseStore, now};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Responses in memory.
#[derive(Debug, Default)]
pub struct MemoryResponses {
    limits: ResponseLimits,
    kept: Mutex<BTreeMap<String, KeptResponse>>,
}

impl MemoryResponses {
    /// An empty store.
    #[must_use]
    pub fn new(limits: ResponseLimits) -> Self {
        Self { limits, kept: Mutex::default() }
    }

    fn with<T>(&self, act: impl FnOnce(&mut BTreeMap<String, KeptResponse>) -> T) -> T {
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put_now(&self, response: KeptResponse) -> Result<(), ResponseFault> {
        response.check(&self.limits)?;
        let now = now();
        self.with(|kept| {
            kept.retain(|_, it| it.is_fresh(&self.limits, now));
            kept.insert(response.id.clone(), response);
            while kept.len() > self.limits.max_responses {
                let oldest = kept.values().min_by_key(|it| it.created_at).map(|it| it.id.clone());
                oldest.and_then(|id| kept.remove(&id));
            }
        });
        Ok(())
    }

    fn settle_now(&self, id: &str, object: String) -> Result<bool, ResponseFault> {
        self.with(|kept| {
            let Some(found) = kept.get_mut(id).filter(|it| !it.settled) else {
                return Ok(false);
            };
            let next = KeptResponse { settled: true, object, ..found.clone() };
            next.check(&self.limits)?;
            *found = next;
            Ok(true)
        })
    }
}

impl ResponseStore for MemoryResponses {
    fn put(&self, response: KeptResponse) -> BoxFuture<'_, Result<(), ResponseFault>> {
        let put = self.put_now(response);
        async { put }.boxed()
    }

    fn get<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<KeptResponse>, ResponseFault>> {
        let found = self.with(|kept| kept.get(id).cloned());
        let found = found.filter(|it| it.is_fresh(&self.limits, now()));
        async { Ok(found) }.boxed()
    }

    fn settle<'a>(&'a self, id: &'a str, object: String) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let settled = self.settle_now(id, object);
        async { settled }.boxed()
    }

    fn delete<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<bool, ResponseFault>> {
        let deleted = self.with(|kept| kept.remove(id)).is_some();
        async move { Ok(deleted) }.boxed()
    }
}
