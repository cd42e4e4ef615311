//! Workflows that wait for a client's tools, kept in this process.
//!
//! **Invariant:** a state is taken once, and forgotten after [`KEPT_FOR`]; there are never more than [`MOST_STATES`].

use chorus_collab::workflows::{StateFault, WorkflowStates};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a run waits for its tools. Source: contract §2.6 (`ttl_seconds`).
const KEPT_FOR: Duration = Duration::from_secs(1800);

/// Most runs that wait; the one that has waited longest makes room.
const MOST_STATES: usize = 4096;

/// The runs that wait, by id.
#[derive(Debug, Default)]
pub struct MemoryStates(Mutex<BTreeMap<String, (Instant, String)>>);

impl MemoryStates {
    fn keep(&self, id: &str, state: String, now: Instant) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, (since, _)| now.duration_since(*since) < KEPT_FOR);
        if all.len() >= MOST_STATES {
            let oldest = all.iter().min_by_key(|(_, (since, _))| *since).map(|(id, _)| id.clone());
            oldest.and_then(|id| all.remove(&id));
        }
        all.insert(id.to_owned(), (now, state));
    }

    fn hand_out(&self, id: &str, now: Instant) -> Option<String> {
        let taken = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
        taken.filter(|(since, _)| now.duration_since(*since) < KEPT_FOR).map(|(_, state)| state)
    }
}

impl WorkflowStates for MemoryStates {
    fn put<'a>(&'a self, id: &'a str, state: String) -> BoxFuture<'a, Result<(), StateFault>> {
        self.keep(id, state, Instant::now());
        std::future::ready(Ok(())).boxed()
    }

    fn take<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Option<String>, StateFault>> {
        std::future::ready(Ok(self.hand_out(id, Instant::now()))).boxed()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_taken_once_and_in_time() {
        let (states, now) = (MemoryStates::default(), Instant::now());
        states.keep("a", "one".to_owned(), now);
        states.keep("b", "two".to_owned(), now);
        assert_eq!(states.hand_out("a", now).as_deref(), Some("one"));
        assert_eq!(states.hand_out("a", now), None);
        assert_eq!(states.hand_out("b", now + KEPT_FOR), None);
    }

    #[test]
    fn the_one_that_has_waited_longest_makes_room() {
        let (states, now) = (MemoryStates::default(), Instant::now());
        for at in 0..=MOST_STATES {
            states.keep(&at.to_string(), String::new(), now + Duration::from_millis(at as u64));
        }
        let later = now + Duration::from_secs(10);
        assert_eq!(states.hand_out("0", later), None);
        assert!(states.hand_out("1", later).is_some());
    }
}
