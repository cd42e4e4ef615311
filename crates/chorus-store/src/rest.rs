//! A pause after a failure, so that requests do not wait for a server one after the other.
//!
//! It knows no server. **Invariant:** a server that answers is never at rest.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// How long a server that failed is left alone.
const REST: Duration = Duration::from_secs(1);

/// Since when a server rests, and of what kind its failure was.
#[derive(Default)]
pub(crate) struct Rest(Mutex<Option<(Instant, &'static str)>>);

impl Rest {
    /// The kind of the failure after which it rests now.
    pub(crate) fn now(&self) -> Option<&'static str> {
        self.last().filter(|(since, _)| since.elapsed() < REST).map(|(_, kind)| kind)
    }

    /// It has answered, or failed and rests from now on; whether it failed and had answered since it failed before.
    pub(crate) fn saw(&self, failure: Option<&'static str>) -> bool {
        let before = self.set(failure.map(|kind| (Instant::now(), kind)));
        failure.is_some() && before.is_none()
    }

    fn last(&self) -> Option<(Instant, &'static str)> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: Option<(Instant, &'static str)>) -> Option<(Instant, &'static str)> {
        std::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_rests_for_a_moment_and_is_news_once() {
        let rest = Rest::default();
        assert_eq!((rest.saw(Some("away")), rest.now()), (true, Some("away")));
        assert_eq!((rest.saw(Some("late")), rest.now()), (false, Some("late")));
        tokio::time::advance(REST).await;
        assert_eq!(rest.now(), None);
        assert_eq!((rest.saw(None), rest.saw(Some("away"))), (false, true), "it had answered in between");
        assert_eq!((rest.saw(None), rest.now()), (false, None));
    }
}
