//! `budget` of an algorithm: what one request of a decision may spend.
//!
//! It knows no price and no clock. **Invariant:** a bound that is written is kept; one that is not written is none.

use super::cursor::Cursor;
use crate::{BudgetSettings, WhenSpent};
use std::time::Duration;

const WHEN_SPENT: [(&str, WhenSpent); 3] =
    [("answer", WhenSpent::Answer), ("fallback", WhenSpent::Fallback), ("abstain", WhenSpent::Abstain)];

/// Reads the `budget` below a looper's block. A written 0 allows nothing, so it is refused as a slip.
pub(super) fn read(looper: &Cursor<'_>) -> BudgetSettings {
    let Some(at) = looper.get("budget") else {
        return BudgetSettings::default();
    };
    let whole = |key: &str| at.integer_in(key, 1, i64::MAX).and_then(|n| u64::try_from(n).ok());
    let calls = at.integer_in("max_calls", 1, i64::from(u32::MAX));
    BudgetSettings {
        max_calls: calls.and_then(|n| u32::try_from(n).ok()),
        max_tokens: whole("max_tokens"),
        max_micro_usd: whole("max_micro_usd"),
        max_time: at.positive("max_time_seconds").and_then(|s| Duration::try_from_secs_f64(s).ok()),
        max_joules: at.positive("max_joules"),
        when_spent: at.word("when_spent", &WHEN_SPENT),
    }
}
