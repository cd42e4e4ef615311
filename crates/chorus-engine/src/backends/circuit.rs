//! The breaker of one backend, which many calls ask at once.
//!
//! It knows no backend. **Invariant:** while nothing speaks against the backend, no call takes a lock.

use chorus_upstream::reliability::{Breaker, BreakerSettings, BreakerState};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A breaker, and whether it has anything to remember.
pub(crate) struct Circuit {
    breaker: Mutex<Breaker>,
    /// Set under the lock whenever the breaker changes. Where it is not, the breaker is closed and a success tells it
    /// nothing.
    blemished: AtomicBool,
}

impl Circuit {
    pub(crate) fn new(settings: BreakerSettings) -> Self {
        Self { breaker: Mutex::new(Breaker::new(settings)), blemished: AtomicBool::new(false) }
    }

    /// What it lets pass.
    pub(crate) fn state(&self, now: Instant) -> BreakerState {
        self.lock().state(now)
    }

    /// Whether a call may go through; nothing changes.
    pub(crate) fn admits(&self, now: Instant) -> bool {
        !self.is_blemished() || self.lock().admits(now)
    }

    /// A call goes through.
    pub(crate) fn called(&self, now: Instant) {
        if self.is_blemished() {
            self.tell(now, |breaker| breaker.called(now));
        }
    }

    /// A call succeeded.
    pub(crate) fn succeeded(&self) {
        if self.is_blemished() {
            self.tell(Instant::now(), Breaker::succeeded);
        }
    }

    /// A call was dropped, or says nothing of the backend.
    pub(crate) fn dropped(&self) {
        if self.is_blemished() {
            self.tell(Instant::now(), Breaker::dropped);
        }
    }

    /// A call failed through the backend's fault; whether the breaker opened by it.
    pub(crate) fn failed(&self, now: Instant) -> bool {
        self.tell(now, |breaker| breaker.failed(now))
    }

    /// The backend asks to be left alone for a while.
    pub(crate) fn pause(&self, now: Instant, pause: Duration) {
        self.tell(now, |breaker| breaker.pause(now, pause));
    }

    fn is_blemished(&self) -> bool {
        self.blemished.load(Ordering::Acquire)
    }

    fn lock(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell<T>(&self, now: Instant, news: impl FnOnce(&mut Breaker) -> T) -> T {
        let mut breaker = self.lock();
        let told = news(&mut breaker);
        self.blemished.store(!breaker.is_spotless(now), Ordering::Release);
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_speaks_against_a_backend_is_remembered_until_it_succeeds() {
        let second = Duration::from_secs(1);
        let circuit = Circuit::new(BreakerSettings { failures: 2, open_for: second });
        let now = Instant::now();
        assert!(!circuit.failed(now));
        assert!(circuit.failed(now), "the second in a row");
        assert!(!circuit.admits(now));
        circuit.called(now + second);
        assert!(!circuit.admits(now + second), "one probe is under way");
        circuit.succeeded();
        assert!(!circuit.is_blemished() && circuit.admits(now));
        assert!(!circuit.failed(now));
        circuit.succeeded();
        assert!(!circuit.failed(now), "they were not in a row");
    }

    #[test]
    fn a_pause_that_is_over_is_forgotten() {
        let circuit = Circuit::new(BreakerSettings::default());
        let now = Instant::now();
        circuit.pause(now, Duration::from_secs(5));
        circuit.succeeded();
        assert!(!circuit.admits(now), "a success of a call that began before it does not end it");
        let later = now + Duration::from_secs(5);
        circuit.called(later);
        assert!(circuit.admits(later) && !circuit.is_blemished());
    }
}
