//! The account of a budget in the record: its bounds, who spent what, and whether it was enough.

use crate::budget::{Budget, Limits, Spent};
use crate::ledger::Ledger;
use chorus_collab::CallRole;
use chorus_spec::WhenSpent;
use serde_json::{Value, json};
use std::collections::BTreeMap;
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
pub(crate) fn account(budget: &Budget, ledger: &Ledger, ended: Ended) -> Value {
    let (bound, done) = match ended {
        Ended::Within => (None, None),
        Ended::Spent(spent, when) => (Some(spent.bound()), Some(word(when))),
    };
    json!({
        "limits": limits(budget.limits()),
        "spent": bound,
        "when_spent": done,
        "by": by(ledger),
    })
}

fn limits(limits: &Limits) -> Value {
    let mut all = BTreeMap::from([
        ("max_calls", json!(limits.max_calls)),
        ("max_time_seconds", json!(limits.max_time.as_secs_f64())),
        ("when_spent", json!(word(limits.when_spent))),
    ]);
    all.extend(limits.max_tokens.map(|n| ("max_tokens", json!(n))));
    all.extend(limits.max_cost.map(|n| ("max_micro_usd", json!(n.0))));
    all.extend(limits.max_joules.map(|n| ("max_joules", json!(n))));
    json!(all)
}

/// Who spent what: one row a model and role, in the order of first call.
fn by(ledger: &Ledger) -> Vec<Value> {
    let mut rows: Vec<(String, CallRole, u64, u64, u64, f64)> = Vec::new();
    for it in ledger.attempts() {
        let at = rows.iter().position(|row| row.0 == it.model && row.1 == it.role).unwrap_or_else(|| {
            rows.push((it.model.clone(), it.role, 0, 0, 0, 0.0));
            rows.len() - 1
        });
        if let Some((_, _, calls, tokens, cost, joules)) = rows.get_mut(at) {
            *calls += 1;
            *tokens += it.usage.total_tokens;
            *cost += it.cost.0;
            *joules += it.joules;
        }
    }
    let row = |(model, role, calls, tokens, micro_usd, joules): (String, CallRole, u64, u64, u64, f64)| json!({"model": model, "role": role, "calls": calls, "tokens": tokens, "micro_usd": micro_usd, "joules": joules});
    rows.into_iter().map(row).collect()
}

fn word(when: WhenSpent) -> &'static str {
    match when {
        WhenSpent::Answer => "answer",
        WhenSpent::Fallback => "fallback",
        WhenSpent::Abstain => "abstain",
    }
}
