//! A circuit breaker: a backend that fails in a row is left alone for a while, then probed with one call.
//!
//! Closed, it counts failures in a row; at the bound it opens. Open, it lets nothing pass until its time is over; then it
//! is half open: one call goes through, and its outcome closes it or opens it for longer. A backend that asks for a
//! pause (429) is left alone for that pause without having failed.
//!
//! **Invariant:** half open, no more than one call is under way.
//! Source: Nygard, "Release It!", ch. 5; Envoy's outlier detection for the growing time and its cap.

use std::time::{Duration, Instant};

/// When a breaker opens, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Failures in a row that open it (`consecutive_5xx`, default 5); 0 never does.
    pub failures: u32,
    /// How long it stays open the first time (`base_ejection_time`, default 30 s); each further time in a row that much
    /// longer, up to [`LONGEST_FACTOR`] times.
    pub open_for: Duration,
}

/// Longest time that a breaker stays open, in multiples of its first one.
pub const LONGEST_FACTOR: u32 = 10;

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

/// What a breaker lets pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerState {
    /// Everything.
    Closed,
    /// Nothing.
    Open,
    /// One call, to see.
    HalfOpen,
}

impl BreakerState {
    /// The word of metrics and logs.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half_open",
        }
    }
}

/// The breaker of one backend.
#[derive(Debug, Clone)]
pub struct Breaker {
    settings: BreakerSettings,
    failures: u32,
    /// Times in a row that it opened.
    openings: u32,
    open_until: Option<Instant>,
    /// Since when the one call of a half-open breaker is under way.
    probing: Option<Instant>,
    /// The backend asked for a pause until then.
    paused_until: Option<Instant>,
}

/// A probe that nobody has heard of for so long was dropped; another may take its place.
const PROBE_PATIENCE: Duration = Duration::from_secs(60);

impl Breaker {
    /// A closed breaker.
    #[must_use]
    pub fn new(settings: BreakerSettings) -> Self {
        Self { settings, failures: 0, openings: 0, open_until: None, probing: None, paused_until: None }
    }

    /// What it lets pass at `now`.
    #[must_use]
    pub fn state(&self, now: Instant) -> BreakerState {
        if self.paused_until.is_some_and(|until| now < until) {
            return BreakerState::Open;
        }
        match self.open_until {
            None => BreakerState::Closed,
            Some(until) if now < until => BreakerState::Open,
            Some(_) => BreakerState::HalfOpen,
        }
    }

    /// Whether nothing speaks against the backend at `now`: it is closed, and has no failure or pause to remember.
    #[must_use]
    pub fn is_spotless(&self, now: Instant) -> bool {
        let paused = self.paused_until.is_some_and(|until| now < until);
        !paused
            && self.failures == 0
            && self.openings == 0
            && self.open_until.is_none()
            && self.probing.is_none()
    }

    /// Whether a call may go through at `now`; nothing changes.
    #[must_use]
    pub fn admits(&self, now: Instant) -> bool {
        match self.state(now) {
            BreakerState::Closed => true,
            BreakerState::Open => false,
            BreakerState::HalfOpen => {
                self.probing.is_none_or(|since| now.duration_since(since) >= PROBE_PATIENCE)
            }
        }
    }

    /// A call goes through.
    pub fn called(&mut self, now: Instant) {
        if self.state(now) == BreakerState::HalfOpen {
            self.probing = Some(now);
        }
    }

    /// A call that went through was dropped before its end: it says nothing.
    pub fn dropped(&mut self) {
        self.probing = None;
    }

    /// A call succeeded: the breaker closes.
    pub fn succeeded(&mut self) {
        *self = Self { paused_until: self.paused_until, ..Self::new(self.settings) };
    }

    /// A call failed through the backend's fault. Returns whether the breaker opened by it.
    pub fn failed(&mut self, now: Instant) -> bool {
        let was = self.state(now);
        self.probing = None;
        self.failures = self.failures.saturating_add(1);
        let bound = self.settings.failures;
        let opens = match was {
            BreakerState::Closed => bound > 0 && self.failures >= bound,
            BreakerState::HalfOpen => true,
            BreakerState::Open => false,
        };
        if opens {
            self.openings = self.openings.saturating_add(1).min(LONGEST_FACTOR);
            self.open_until = now.checked_add(self.settings.open_for.saturating_mul(self.openings));
        }
        opens
    }

    /// The backend asks to be left alone for a while.
    pub fn pause(&mut self, now: Instant, pause: Duration) {
        self.probing = None;
        self.paused_until = self.paused_until.max(now.checked_add(pause));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn breaker(failures: u32) -> Breaker {
        Breaker::new(BreakerSettings { failures, open_for: 10 * SECOND })
    }

    #[test]
    fn it_opens_after_failures_in_a_row_only() {
        let (mut it, now) = (breaker(3), Instant::now());
        assert!(!it.failed(now) && !it.failed(now));
        it.succeeded();
        assert!(!it.failed(now) && !it.failed(now));
        assert!(it.admits(now));
        assert!(it.failed(now));
        assert_eq!((it.state(now), it.admits(now)), (BreakerState::Open, false));
    }

    #[test]
    fn half_open_one_probe_goes_through() {
        let (mut it, start) = (breaker(1), Instant::now());
        it.failed(start);
        let later = start + 10 * SECOND;
        assert_eq!(it.state(later), BreakerState::HalfOpen);
        assert!(it.admits(later));
        it.called(later);
        assert!(!it.admits(later), "a second probe");
        it.succeeded();
        assert_eq!(it.state(later), BreakerState::Closed);
    }

    #[test]
    fn a_failed_probe_opens_it_for_longer_up_to_a_bound() {
        let (mut it, mut now) = (breaker(1), Instant::now());
        for round in 1..=15u32 {
            assert!(it.failed(now), "round {round}");
            let open_for = 10 * SECOND * round.min(LONGEST_FACTOR);
            assert!(!it.admits(now + open_for - SECOND));
            now += open_for;
            assert!(it.admits(now));
            it.called(now);
        }
    }

    #[test]
    fn a_dropped_probe_gives_its_place_back() {
        let (mut it, start) = (breaker(1), Instant::now());
        it.failed(start);
        let later = start + 10 * SECOND;
        it.called(later);
        it.dropped();
        assert!(it.admits(later));
        it.called(later);
        assert!(it.admits(later + PROBE_PATIENCE), "a probe that nobody heard of again");
    }

    #[test]
    fn c01_a_pause_is_no_failure_and_ends_by_itself() {
        let (mut it, now) = (breaker(1), Instant::now());
        it.pause(now, 5 * SECOND);
        assert_eq!(it.state(now), BreakerState::Open);
        assert_eq!(it.state(now + 5 * SECOND), BreakerState::Closed);
    }

    #[test]
    fn zero_failures_never_open_it() {
        let (mut it, now) = (breaker(0), Instant::now());
        assert!((0..100).all(|_| !it.failed(now)));
    }
}
