//! The account of a budget in the record: its bounds, who spent what, and whether it was enough.

use crate::budget::{Budget, Limits, Spent};
use crate::ledger::Attempt;
use chorus_collab::CallRole;
use chorus_spec::WhenSpent;
use serde_json::{Value, json};
use std::time::Instant;

/// How the run went with its budget.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Ended {
    /// Within it.
    Within,
    /// It was spent, and this was done.
    Spent(Spent, WhenSpent),
}

impl Ended {
    /// How a run without a looper went: a refused call was its last.
    #[must_use]
    pub(crate) fn of(budget: &Budget) -> Self {
        budget.spent(Instant::now()).map_or(Self::Within, |spent| Self::Spent(spent, WhenSpent::Abstain))
    }

    /// The word of a run that was cut short.
    #[must_use]
    pub(crate) fn word(self) -> Option<String> {
        match self {
            Self::Within => None,
            Self::Spent(spent, _) => Some(format!("budget_spent: {}", spent.bound())),
        }
    }
}

/// The account for the record: bounds, what was spent by whom, what was refused.
#[must_use]
pub(crate) fn account(budget: &Budget, attempts: &[Attempt], ended: Ended) -> Value {
    let (bound, done) = match ended {
        Ended::Within => (None, None),
        Ended::Spent(spent, when) => (Some(spent.bound()), Some(word(when))),
    };
    Value::from_iter([
        ("limits", limits(budget.limits())),
        ("spent", Value::from(bound)),
        ("when_spent", Value::from(done)),
        ("by", Value::from(by(attempts))),
    ])
}

fn limits(limits: &Limits) -> Value {
    let all = [
        ("max_calls", Some(Value::from(limits.max_calls))),
        ("max_joules", limits.max_joules.map(Value::from)),
        ("max_micro_usd", limits.max_cost.map(|cost| Value::from(cost.0))),
        ("max_time_seconds", Some(Value::from(limits.max_time.as_secs_f64()))),
        ("max_tokens", limits.max_tokens.map(Value::from)),
        ("when_spent", Some(Value::from(word(limits.when_spent)))),
    ];
    Value::from_iter(all.into_iter().filter_map(|(name, value)| Some((name, value?))))
}

/// Who spent what: one row a model and role, in the order of first call.
fn by(attempts: &[Attempt]) -> Vec<Value> {
    let mut rows: Vec<(&str, CallRole, u64, u64, u64, f64)> = Vec::new();
    for it in attempts {
        let at = rows.iter().position(|row| row.0 == it.model && row.1 == it.role).unwrap_or_else(|| {
            rows.push((&it.model, it.role, 0, 0, 0, 0.0));
            rows.len() - 1
        });
        if let Some((_, _, calls, tokens, cost, joules)) = rows.get_mut(at) {
            *calls += 1;
            *tokens += it.usage.total_tokens;
            *cost += it.cost.0;
            *joules += it.joules;
        }
    }
    let row = |(model, role, calls, tokens, micro_usd, joules): (&str, CallRole, u64, u64, u64, f64)| {
        Value::from_iter([
            ("model", Value::from(model)),
            ("role", json!(role)),
            ("calls", Value::from(calls)),
            ("tokens", Value::from(tokens)),
            ("micro_usd", Value::from(micro_usd)),
            ("joules", Value::from(joules)),
        ])
    };
    rows.into_iter().map(row).collect()
}

fn word(when: WhenSpent) -> &'static str {
    match when {
        WhenSpent::Answer => "answer",
        WhenSpent::Fallback => "fallback",
        WhenSpent::Abstain => "abstain",
    }
}
