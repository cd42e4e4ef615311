//! What one request may spend: calls, tokens, money, time, energy. Asked before every call.
//!
//! A call is admitted with an estimate (its prompt and the most that it may write), which stays reserved while the call
//! runs; then what it really took counts. A call that names no cap gets one where the budget counts what is written.
//! It knows no model and no clock: rates and the time are arguments.
//!
//! **Invariant:** no call leaves the process without the budget's consent (DESIGN.md §5.4), and what is spent and
//! reserved together never passes a bound, however calls interleave.

mod declared;

use crate::ledger::{Entry, Ledger, Opening};
use chorus_spec::WhenSpent;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

pub use crate::limits::{Limits, Rates, Spending, Spent};
pub use declared::{BudgetFault, parse};

/// A call that may leave.
#[derive(Debug)]
pub struct Admitted {
    /// Its row in the ledger.
    pub entry: Entry,
    /// How long it may take at most.
    pub time: Duration,
    /// The most that it may write; `None` where neither the call nor the budget says.
    pub cap: Option<u64>,
}

/// The budget of one request.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    started: Instant,
    refused: OnceLock<Spent>,
}

impl Budget {
    /// A fresh budget, running from `started`.
    #[must_use]
    pub fn new(limits: Limits, started: Instant) -> Self {
        Self { limits, started, refused: OnceLock::new() }
    }

    /// Its bounds.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// When the request started.
    #[must_use]
    pub fn started(&self) -> Instant {
        self.started
    }

    /// The first refusal, or the time when it has run out by `now`.
    #[must_use]
    pub fn spent(&self, now: Instant) -> Option<Spent> {
        self.refused.get().copied().or_else(|| self.left(now).err())
    }

    /// Consent to one more call, which is entered in the ledger with it.
    ///
    /// Once a call was refused and the answer will come from elsewhere (`fallback`, `abstain`), every later one is too.
    ///
    /// # Errors
    /// What is spent.
    pub fn admit(&self, ledger: &Ledger, opening: Opening<'_>, now: Instant) -> Result<Admitted, Spent> {
        let admitted = self.closed().and_then(|()| self.left(now)).and_then(|time| {
            let (entry, cap) = ledger.open(opening, &self.limits)?;
            entry.begin(now.saturating_duration_since(self.started));
            Ok(Admitted { entry, time, cap })
        });
        admitted.inspect_err(|spent| {
            let _ = self.refused.set(*spent);
        })
    }

    fn closed(&self) -> Result<(), Spent> {
        match self.refused.get() {
            Some(spent) if self.limits.when_spent != WhenSpent::Answer => Err(*spent),
            _ => Ok(()),
        }
    }

    fn left(&self, now: Instant) -> Result<Duration, Spent> {
        let left = self.limits.max_time.saturating_sub(now.duration_since(self.started));
        if left.is_zero() { Err(Spent::Time(self.limits.max_time)) } else { Ok(left) }
    }
}

#[cfg(test)]
mod tests;
