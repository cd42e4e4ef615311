//! Whether a failed call is worth another, and after what pause.
//!
//! **Invariant:** over a long time retries are at most the budget's share of calls, so that a backend which fails under
//! load gets less of it, not more. Source: Finagle's retry budget; AWS Architecture Blog, "Exponential Backoff And
//! Jitter" (full jitter).

use crate::{Retry, UpstreamFault};
use std::time::{Duration, Instant};

/// The first pause is at most so long; each further one at most twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause of our own.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Longest wait that a backend may ask for (`Retry-After`): where it asks for more, it is not waited for.
pub const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// How long to wait before calling the same backend again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// So long.
    For(Duration),
    /// It asks for more time than anybody waits.
    TooLong,
}

/// The pause before the `nth` retry (from 0) of the same backend, with full jitter: `random` in 0..1.
///
/// A backend's own wish (`Retry-After`) is kept to the full, up to [`LONGEST_WAIT`].
#[must_use]
pub fn pause(nth: u32, wish: Option<Duration>, random: f64) -> Wait {
    match wish {
        Some(wish) if wish > LONGEST_WAIT => Wait::TooLong,
        Some(wish) => Wait::For(wish + FIRST_PAUSE.mul_f64(random.clamp(0.0, 1.0))),
        None => {
            let most = FIRST_PAUSE.saturating_mul(2u32.saturating_pow(nth)).min(LONGEST_PAUSE);
            Wait::For(most.mul_f64(random.clamp(0.0, 1.0)))
        }
    }
}

/// What a failure must be for another call to be made: the words of `retry_on` and `fallback_on`.
///
/// Source: contract §1.2 (`retry_on`), whose words are those of Envoy's `x-envoy-retry-on`; statuses, `timeout` and
/// `rate-limited` are ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryOn {
    /// Whatever may go better next time ([`UpstreamFault::retry`] is not `Never`).
    Any,
    /// `5xx`: a status from 500 on, or no answer at all.
    ServerError,
    /// `gateway-error`: 502, 503 or 504.
    GatewayError,
    /// `connect-failure`.
    ConnectFailure,
    /// `reset`, `refused-stream`: the connection broke, before or amid the answer.
    Reset,
    /// `retriable-4xx`: 409.
    Conflict,
    /// `rate-limited`: 429.
    RateLimited,
    /// `timeout`: a time limit ran out.
    Timeout,
    /// `unreadable`: an answer that cannot be read, or is too long.
    Unreadable,
    /// This status.
    Status(u16),
}

impl RetryOn {
    /// The words, with what they mean.
    pub const WORDS: [(&'static str, Self); 10] = [
        ("any", Self::Any),
        ("5xx", Self::ServerError),
        ("gateway-error", Self::GatewayError),
        ("connect-failure", Self::ConnectFailure),
        ("reset", Self::Reset),
        ("refused-stream", Self::Reset),
        ("retriable-4xx", Self::Conflict),
        ("rate-limited", Self::RateLimited),
        ("timeout", Self::Timeout),
        ("unreadable", Self::Unreadable),
    ];

    /// Reads a word or a status in 400..=599.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        let known = Self::WORDS.iter().find(|(name, _)| *name == word).map(|(_, it)| *it);
        let status = || word.parse().ok().filter(|code| (400..=599).contains(code)).map(Self::Status);
        known.or_else(status)
    }

    /// Whether a failure is of this kind.
    #[must_use]
    pub fn covers(self, fault: &UpstreamFault) -> bool {
        let silent = matches!(
            fault,
            UpstreamFault::Connect { .. }
                | UpstreamFault::Transport { .. }
                | UpstreamFault::Truncated { .. }
                | UpstreamFault::Timeout { .. }
        );
        let status = fault.status();
        match self {
            Self::Any => fault.retry() != Retry::Never,
            Self::ServerError => {
                silent || status.map_or(matches!(fault, UpstreamFault::InBand { .. }), |status| status >= 500)
            }
            Self::GatewayError => matches!(status, Some(502..=504)),
            Self::ConnectFailure => matches!(fault, UpstreamFault::Connect { .. }),
            Self::Reset => {
                matches!(fault, UpstreamFault::Transport { .. } | UpstreamFault::Truncated { .. })
            }
            Self::Conflict => status == Some(409),
            Self::RateLimited => status == Some(429),
            Self::Timeout => matches!(fault, UpstreamFault::Timeout { .. }) || status == Some(408),
            Self::Unreadable => {
                matches!(fault, UpstreamFault::Malformed { .. } | UpstreamFault::TooLarge { .. })
            }
            Self::Status(code) => status == Some(code),
        }
    }
}

/// How many retries the calls so far have earned.
#[derive(Debug, Clone)]
pub struct RetryBudget {
    /// Retries that a call earns.
    share: f64,
    earned: f64,
    /// A few retries come back with time, so that a model with little traffic has some.
    spare: f64,
    at: Instant,
}

/// Earned retries that are kept at most.
const MOST_EARNED: f64 = 100.0;
/// Spare retries that are kept at most, and at the start; one comes back a second.
const MOST_SPARE: f64 = 10.0;

impl RetryBudget {
    /// A budget of `percent` retries for a hundred calls (default 20).
    #[must_use]
    pub fn new(percent: f64, now: Instant) -> Self {
        let share = (percent / 100.0).clamp(0.0, 1.0);
        let spare = if share > 0.0 { MOST_SPARE } else { 0.0 };
        Self { share, earned: 0.0, spare, at: now }
    }

    /// A call that is no retry was made.
    pub fn called(&mut self) {
        self.earned = (self.earned + self.share).min(MOST_EARNED);
    }

    /// Takes one retry, where there is one.
    pub fn take(&mut self, now: Instant) -> bool {
        if self.share <= 0.0 {
            return false;
        }
        self.spare = (self.spare + now.saturating_duration_since(self.at).as_secs_f64()).min(MOST_SPARE);
        self.at = now;
        if self.earned >= 1.0 {
            self.earned -= 1.0;
        } else if self.spare >= 1.0 {
            self.spare -= 1.0;
        } else {
            return false;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Stage;

    fn status(status: u16) -> UpstreamFault {
        UpstreamFault::Status { status, body: None, retry_after: None }
    }

    #[test]
    fn pauses_grow_have_full_jitter_and_a_bound() {
        let ms = |nth, random| match pause(nth, None, random) {
            Wait::For(pause) => pause.as_millis(),
            Wait::TooLong => unreachable!(),
        };
        assert_eq!([ms(0, 1.0), ms(1, 1.0), ms(3, 1.0), ms(30, 1.0)], [100, 200, 800, 5000]);
        assert_eq!([ms(0, 0.0), ms(3, 0.5)], [0, 400]);
    }

    #[test]
    fn a_wish_is_kept_within_its_bound() {
        let wish = Duration::from_secs(3);
        assert_eq!(pause(0, Some(wish), 0.0), Wait::For(wish));
        assert_eq!(pause(0, Some(Duration::from_secs(11)), 0.0), Wait::TooLong);
    }

    #[test]
    fn c04_a_list_of_statuses_is_law() {
        let list: Vec<_> = ["401", "429"].iter().filter_map(|word| RetryOn::parse(word)).collect();
        let covered = |fault: &UpstreamFault| list.iter().any(|on| on.covers(fault));
        assert!(covered(&status(401)) && covered(&status(429)));
        assert!(!covered(&status(500)) && !covered(&status(400)));
    }

    #[test]
    fn words_cover_what_they_say() {
        let timeout = UpstreamFault::Timeout { stage: Stage::FirstByte, limit: Duration::ZERO };
        let connect = UpstreamFault::Connect { detail: String::new() };
        let rows: [(&str, &[&UpstreamFault], &[&UpstreamFault]); 7] = [
            ("any", &[&status(500), &status(401), &connect], &[&status(400)]),
            ("5xx", &[&status(500), &status(503), &connect, &timeout], &[&status(429)]),
            ("gateway-error", &[&status(502), &status(504)], &[&status(500), &connect]),
            ("connect-failure", &[&connect], &[&timeout]),
            ("timeout", &[&timeout, &status(408)], &[&connect]),
            ("rate-limited", &[&status(429)], &[&status(503)]),
            ("retriable-4xx", &[&status(409)], &[&status(404)]),
        ];
        for (word, yes, no) in rows {
            let on = RetryOn::parse(word).unwrap();
            assert!(yes.iter().all(|fault| on.covers(fault)), "{word}");
            assert!(!no.iter().any(|fault| on.covers(fault)), "{word}");
        }
        assert_eq!(RetryOn::parse("200"), None);
        assert_eq!(RetryOn::parse("sometimes"), None);
    }

    #[test]
    fn retries_are_at_most_their_share_of_calls() {
        let now = Instant::now();
        let mut budget = RetryBudget::new(20.0, now);
        let mut retries = 0;
        for _ in 0..1000 {
            budget.called();
            retries += u32::from(budget.take(now));
        }
        assert!((200..=211).contains(&retries), "{retries}");
        assert!(budget.take(now + Duration::from_secs(5)), "a few come back with time");
    }

    #[test]
    fn a_budget_of_nothing_gives_nothing() {
        let now = Instant::now();
        let mut budget = RetryBudget::new(0.0, now);
        budget.called();
        assert!(!budget.take(now + Duration::from_secs(100)));
    }
}
