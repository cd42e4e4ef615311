//! The arithmetic of a budget: bounds, what is spent of them, and how much a call may still write.
//!
//! It knows no call and no ledger. **Invariant:** what [`grant`] allows, added to what is spent, passes no bound.

use chorus_spec::{BudgetSettings, MicroUsd, WhenSpent};
use std::time::Duration;

/// Output tokens reserved for a call that names no cap, where the budget counts them.
pub(crate) const DEFAULT_OUTPUT_TOKENS: u64 = 2048;

/// A call that could write fewer tokens than this is refused rather than cut so short.
pub(crate) const LEAST_OUTPUT_TOKENS: u64 = 16;

/// Bounds of one request, each with a name and a default.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most model calls (`max_calls`, default 64).
    pub max_calls: u32,
    /// Longest time from the first byte read to the last byte written (`max_time`, default 20 min).
    pub max_time: Duration,
    /// Most tokens, read and written, over all calls (`max_tokens`); unbounded by default.
    pub max_tokens: Option<u64>,
    /// Most money (`max_micro_usd`), by the price table; unbounded by default.
    pub max_cost: Option<MicroUsd>,
    /// Most energy (`max_joules`), by the models' energy profiles; unbounded by default.
    pub max_joules: Option<f64>,
    /// What happens once a bound is reached.
    pub when_spent: WhenSpent,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_calls: 64,
            max_time: Duration::from_secs(1200),
            max_tokens: None,
            max_cost: None,
            max_joules: None,
            when_spent: WhenSpent::Answer,
        }
    }
}

impl Limits {
    /// These limits and a budget's bounds, the smaller of each. What a spent budget does is the budget's word, if it
    /// has one.
    #[must_use]
    pub fn lowered_by(self, budget: &BudgetSettings) -> Self {
        Self {
            max_calls: budget.max_calls.map_or(self.max_calls, |n| n.min(self.max_calls)),
            max_time: budget.max_time.map_or(self.max_time, |t| t.min(self.max_time)),
            max_tokens: smaller(self.max_tokens, budget.max_tokens),
            max_cost: smaller(self.max_cost, budget.max_micro_usd.map(MicroUsd)),
            max_joules: smaller(self.max_joules, budget.max_joules),
            when_spent: budget.when_spent.unwrap_or(self.when_spent),
        }
    }
}

fn smaller<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if b < a { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// What has been spent or is reserved.
#[derive(Debug, Default, Clone, Copy, PartialEq)]
pub struct Spending {
    /// Calls.
    pub calls: u32,
    /// Tokens, read and written.
    pub tokens: u64,
    /// Money.
    pub cost: MicroUsd,
    /// Energy.
    pub joules: f64,
}

/// What a model's tokens take.
#[derive(Debug, Default, Clone, Copy)]
pub struct Rates {
    /// Money.
    pub pricing: chorus_spec::Pricing,
    /// Energy.
    pub energy: chorus_spec::Energy,
}

/// Why a call was refused.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub enum Spent {
    /// Too many calls.
    #[error("the request has used its {0} model calls (max_calls)")]
    Calls(u32),
    /// Out of time.
    #[error("the request has used its time of {} s (max_time)", .0.as_secs_f32())]
    Time(Duration),
    /// Too few tokens are left.
    #[error("what is left of the request's {0} tokens is too little for another call (max_tokens)")]
    Tokens(u64),
    /// Too little money is left.
    #[error("what is left of the request's {} micro-dollars is too little for another call (max_micro_usd)", .0.0)]
    Cost(MicroUsd),
    /// Too little energy is left.
    #[error("what is left of the request's {0} J is too little for another call (max_joules)")]
    Joules(f64),
}

impl Spent {
    /// The word of the bound, as in the run record.
    #[must_use]
    pub fn bound(&self) -> &'static str {
        match self {
            Self::Calls(_) => "max_calls",
            Self::Time(_) => "max_time",
            Self::Tokens(_) => "max_tokens",
            Self::Cost(_) => "max_micro_usd",
            Self::Joules(_) => "max_joules",
        }
    }
}

/// How much a call may write beside what is already spent; `None` is as much as it likes.
///
/// # Errors
/// What does not suffice.
pub(crate) fn grant(
    limits: &Limits,
    spent: &Spending,
    prompt_tokens: u64,
    cap: Option<u64>,
    rates: Rates,
) -> Result<Option<u64>, Spent> {
    if spent.calls >= limits.max_calls {
        return Err(Spent::Calls(limits.max_calls));
    }
    let rooms = [
        limits.max_tokens.map(|most| {
            let room = most.checked_sub(spent.tokens).and_then(|left| left.checked_sub(prompt_tokens));
            (room, Spent::Tokens(most))
        }),
        limits.max_cost.map(|most| {
            let left = most.0.checked_sub(spent.cost.0);
            (left.and_then(|left| rates.writable_for(MicroUsd(left), prompt_tokens)), Spent::Cost(most))
        }),
        limits
            .max_joules
            .map(|most| (rates.writable_with(most - spent.joules, prompt_tokens), Spent::Joules(most))),
    ];
    // A model whose tokens take nothing of a bound may write as much as it likes.
    let bounding = rooms.into_iter().flatten().filter(|(room, _)| *room != Some(u64::MAX));
    let Some((room, bound)) = bounding.min_by_key(|(room, _)| *room) else {
        return Ok(cap);
    };
    let wanted = cap.unwrap_or(DEFAULT_OUTPUT_TOKENS);
    let granted = room.unwrap_or(0).min(wanted);
    if room.is_none() || granted < wanted.min(LEAST_OUTPUT_TOKENS) { Err(bound) } else { Ok(Some(granted)) }
}

impl Rates {
    /// Tokens that may be written for that money after the prompt is paid; `None` when the prompt alone is too dear.
    fn writable_for(self, left: MicroUsd, prompt_tokens: u64) -> Option<u64> {
        /// Prices are for a million tokens.
        const PER: u128 = 1_000_000;
        let prompt = u128::from(prompt_tokens) * u128::from(self.pricing.prompt_micro_usd_per_1m);
        let rest = (u128::from(left.0) * PER).checked_sub(prompt)?;
        let tokens = rest.checked_div(u128::from(self.pricing.completion_micro_usd_per_1m));
        Some(tokens.and_then(|n| u64::try_from(n).ok()).unwrap_or(u64::MAX))
    }

    /// Tokens that may be written with that energy after the prompt is read; `None` when the prompt alone needs more.
    fn writable_with(self, left: f64, prompt_tokens: u64) -> Option<u64> {
        let rest = left - self.energy.joules(prompt_tokens, 0);
        if rest < 0.0 {
            return None;
        }
        let per_token = self.energy.joules(0, 1);
        if per_token <= 0.0 {
            return Some(u64::MAX);
        }
        // A float that is too large for the integer becomes its greatest value.
        Some((rest / per_token) as u64)
    }
}
