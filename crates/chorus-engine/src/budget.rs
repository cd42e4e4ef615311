//! What one request may spend. Asked before every call.
//!
//! **Invariant:** no call leaves the process without the budget's consent (DESIGN.md §5.4).

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Bounds of one request, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most model calls (`max_calls`, default 64).
    pub max_calls: u32,
    /// Longest time from the first byte read to the last byte written (`max_time`, default 20 min).
    pub max_time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_calls: 64, max_time: Duration::from_secs(1200) }
    }
}

/// The running account of one request.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    started: Instant,
    calls: AtomicU32,
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Spent {
    /// Too many calls.
    #[error("the request has used its {0} model calls (max_calls)")]
    Calls(u32),
    /// Out of time.
    #[error("the request has used its time of {} s (max_time)", .0.as_secs())]
    Time(Duration),
}

impl Budget {
    /// A fresh account, running from `started`.
    #[must_use]
    pub fn new(limits: Limits, started: Instant) -> Self {
        Self { limits, started, calls: AtomicU32::new(0) }
    }

    /// Consent to one more call, and how long it may take at most.
    ///
    /// # Errors
    /// What is spent.
    pub fn consent(&self, now: Instant) -> Result<Duration, Spent> {
        let left = self.limits.max_time.saturating_sub(now.duration_since(self.started));
        if left.is_zero() {
            return Err(Spent::Time(self.limits.max_time));
        }
        let taken = self.calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| {
            (n < self.limits.max_calls).then_some(n + 1)
        });
        taken.map(|_| left).map_err(|_| Spent::Calls(self.limits.max_calls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_call_after_the_last_is_refused() {
        let now = Instant::now();
        let budget = Budget::new(Limits { max_calls: 2, ..Limits::default() }, now);
        assert!(budget.consent(now).is_ok());
        assert!(budget.consent(now).is_ok());
        assert_eq!(budget.consent(now), Err(Spent::Calls(2)));
        assert_eq!(budget.consent(now), Err(Spent::Calls(2)));
    }

    #[test]
    fn a_call_gets_no_more_time_than_is_left() {
        let start = Instant::now();
        let budget = Budget::new(Limits { max_time: Duration::from_secs(10), ..Limits::default() }, start);
        assert_eq!(budget.consent(start + Duration::from_secs(4)), Ok(Duration::from_secs(6)));
        assert_eq!(
            budget.consent(start + Duration::from_secs(11)),
            Err(Spent::Time(Duration::from_secs(10)))
        );
    }
}
