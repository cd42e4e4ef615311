//! A backend's own limits on requests and tokens a minute, kept on our side of the wire.
//!
//! Two buckets, each with its unit in its name (case C13). A bucket refills evenly, and holds one minute's worth; tokens
//! are taken by estimate before a call and corrected after it, so that a bucket may be in debt.
//!
//! **Invariant:** over any minute no more than twice the limit goes through, and over an hour no more than 61 times it.

use std::time::{Duration, Instant};

const MINUTE: Duration = Duration::from_secs(60);

/// Which limit is reached, and when it no longer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PaceFault {
    /// `requests_per_minute`.
    #[error("its {limit} requests a minute are used up (requests_per_minute)")]
    Requests {
        /// The limit.
        limit: u64,
        /// Until the next one.
        wait: Duration,
    },
    /// `tokens_per_minute`.
    #[error("its {limit} tokens a minute are used up (tokens_per_minute)")]
    Tokens {
        /// The limit.
        limit: u64,
        /// Until there are enough.
        wait: Duration,
    },
}

impl PaceFault {
    /// How long to wait.
    #[must_use]
    pub fn wait(self) -> Duration {
        match self {
            Self::Requests { wait, .. } | Self::Tokens { wait, .. } => wait,
        }
    }
}

/// The limits of one backend, and what is left of them.
#[derive(Debug, Clone)]
pub struct Pace {
    requests: Option<Bucket>,
    tokens: Option<Bucket>,
}

impl Pace {
    /// Full buckets; `None` is no limit.
    #[must_use]
    pub fn new(requests_per_minute: Option<u64>, tokens_per_minute: Option<u64>, now: Instant) -> Self {
        let bucket = |limit: u64| Bucket { limit, left: limit as f64, at: now };
        Self { requests: requests_per_minute.map(bucket), tokens: tokens_per_minute.map(bucket) }
    }

    /// Whether one more request of about so many tokens may go; nothing changes.
    ///
    /// # Errors
    /// Which limit is reached.
    pub fn check(&self, tokens: u64, now: Instant) -> Result<(), PaceFault> {
        if let Some(bucket) = &self.requests
            && let Some(wait) = bucket.wait(1, now)
        {
            return Err(PaceFault::Requests { limit: bucket.limit, wait });
        }
        if let Some(bucket) = &self.tokens
            && let Some(wait) = bucket.wait(tokens, now)
        {
            return Err(PaceFault::Tokens { limit: bucket.limit, wait });
        }
        Ok(())
    }

    /// One request of about so many tokens goes.
    pub fn take(&mut self, tokens: u64, now: Instant) {
        if let Some(bucket) = &mut self.requests {
            bucket.take(1.0, now);
        }
        if let Some(bucket) = &mut self.tokens {
            bucket.take(tokens as f64, now);
        }
    }

    /// A request that was thought to take `thought` tokens took `took`.
    pub fn correct(&mut self, thought: u64, took: u64, now: Instant) {
        if let Some(bucket) = &mut self.tokens {
            bucket.take(took as f64 - thought as f64, now);
        }
    }
}

#[derive(Debug, Clone)]
struct Bucket {
    limit: u64,
    left: f64,
    at: Instant,
}

impl Bucket {
    fn left(&self, now: Instant) -> f64 {
        let refill = now.saturating_duration_since(self.at).as_secs_f64() / MINUTE.as_secs_f64();
        (self.left + refill * self.limit as f64).min(self.limit as f64)
    }

    /// Until `need` can be taken; `None` when it can now. More than the whole bucket needs a full one.
    fn wait(&self, need: u64, now: Instant) -> Option<Duration> {
        let lacking = (need.min(self.limit) as f64).max(1.0) - self.left(now);
        if lacking <= 1e-9 {
            return None;
        }
        let share = lacking / (self.limit as f64).max(1e-9);
        Some(Duration::try_from_secs_f64(MINUTE.as_secs_f64() * share).unwrap_or(MINUTE))
    }

    fn take(&mut self, amount: f64, now: Instant) {
        self.left = (self.left(now) - amount).min(self.limit as f64);
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c13_tokens_and_requests_are_counted_apart() {
        let now = Instant::now();
        let mut pace = Pace::new(Some(100), Some(1000), now);
        for _ in 0..6 {
            pace.check(150, now).unwrap();
            pace.take(150, now);
        }
        let fault = pace.check(150, now).unwrap_err();
        assert_eq!(fault, PaceFault::Tokens { limit: 1000, wait: Duration::from_secs(3) });
        assert!(fault.to_string().contains("tokens_per_minute"), "{fault}");
        pace.check(150, now + Duration::from_secs(3)).unwrap();
    }

    #[test]
    fn requests_run_out_and_come_back() {
        let now = Instant::now();
        let mut pace = Pace::new(Some(2), None, now);
        pace.take(9999, now);
        pace.take(9999, now);
        assert_eq!(pace.check(1, now).unwrap_err().wait(), Duration::from_secs(30));
        pace.check(1, now + Duration::from_secs(30)).unwrap();
    }

    #[test]
    fn what_was_taken_is_corrected_by_what_it_took() {
        let now = Instant::now();
        let mut pace = Pace::new(None, Some(100), now);
        pace.take(10, now);
        pace.correct(10, 190, now);
        assert!(pace.check(1, now + Duration::from_secs(50)).is_err(), "in debt");
        pace.check(1, now + Duration::from_secs(60)).unwrap();
        pace.correct(500, 0, now);
        assert!(pace.check(100, now + MINUTE).is_ok(), "never more than a full bucket");
    }

    #[test]
    fn a_request_larger_than_the_limit_needs_a_full_bucket() {
        let now = Instant::now();
        let mut pace = Pace::new(None, Some(100), now);
        pace.check(5000, now).unwrap();
        pace.take(5000, now);
        assert!(pace.check(1, now + MINUTE).is_err());
    }
}
