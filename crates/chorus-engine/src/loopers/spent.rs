//! What a spent budget does, and the account of it in the record.
//!
//! **Invariant:** a run whose budget refused a call ends in the way that the budget declares, never in another.

use crate::budget::{Budget, Limits, Spent};
use crate::calls::LiveCalls;
use crate::fault::{Code, Fault};
use crate::ledger::Ledger;
use chorus_collab::{Answer, Call, CallRole, ModelCalls};
use chorus_spec::WhenSpent;
use chorus_wire::ChatRequest;
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

/// The answer of the looper, or what the budget declares where it is spent.
pub(super) async fn settle(
    outcome: Result<Answer, Fault>,
    request: &ChatRequest,
    calls: &LiveCalls,
) -> (Result<Answer, Fault>, Ended) {
    let Some(spent) = calls.budget.spent(Instant::now()) else {
        return (outcome, Ended::Within);
    };
    let when = calls.budget.limits().when_spent;
    let answer = match when {
        WhenSpent::Answer => outcome.or_else(|fault| calls.best_so_far().ok_or(fault)),
        WhenSpent::Fallback => {
            drop(outcome);
            fall_back(request, calls).await
        }
        WhenSpent::Abstain => Err(Fault::new(Code::BudgetExceeded, spent.to_string())),
    };
    (answer, Ended::Spent(spent, when))
}

/// The first candidate answers, outside the declared budget.
async fn fall_back(request: &ChatRequest, calls: &LiveCalls) -> Result<Answer, Fault> {
    let outside = calls.outside_the_budget();
    let first = outside.candidates.first().map(|candidate| candidate.model.to_string());
    let model = first.ok_or_else(|| {
        Fault::new(Code::BudgetExceeded, "the budget is spent, and no candidate is there to answer instead")
    })?;
    let call = Call { model, role: CallRole::Direct, ask: request.clone(), timeout: None };
    if request.stream() {
        return Ok(Answer::Live(outside.stream(call).await?));
    }
    Ok(Answer::Finished(Box::new(outside.complete(call).await?)))
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
