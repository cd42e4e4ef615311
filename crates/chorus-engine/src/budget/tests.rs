//! The budget holds, whatever the order of events.

use super::*;
use crate::ledger::AttemptEnd;
use crate::limits::DEFAULT_OUTPUT_TOKENS;
use chorus_collab::CallRole;
use chorus_spec::{BudgetSettings, MicroUsd};
use chorus_spec::{Energy, Pricing};
use chorus_wire::Usage;
use proptest::prelude::*;

fn opening(prompt_tokens: u64, cap: Option<u64>, rates: Rates) -> Opening<'static> {
    Opening { role: CallRole::Panel, model: "m", backend: "b", cause: None, prompt_tokens, cap, rates }
}

fn free(prompt_tokens: u64, cap: Option<u64>) -> Opening<'static> {
    opening(prompt_tokens, cap, Rates::default())
}

fn usage(prompt: u64, completion: u64) -> Usage {
    Usage {
        prompt_tokens: prompt,
        completion_tokens: completion,
        total_tokens: prompt + completion,
        estimated: false,
    }
}

fn priced() -> Rates {
    Rates {
        pricing: Pricing {
            prompt_micro_usd_per_1m: 1_500_000,
            completion_micro_usd_per_1m: 3_700_000,
            cached_input_micro_usd_per_1m: None,
        },
        energy: Energy { joules_per_1k_prompt: 20.0, joules_per_1k_completion: 300.0 },
    }
}

#[test]
fn the_call_after_the_last_is_refused() {
    let now = Instant::now();
    let (budget, ledger) =
        (Budget::new(Limits { max_calls: 2, ..Limits::default() }, now), Ledger::default());
    for _ in 0..2 {
        assert!(budget.admit(&ledger, free(10, None), now).is_ok());
    }
    for _ in 0..2 {
        assert_eq!(budget.admit(&ledger, free(10, None), now).unwrap_err(), Spent::Calls(2));
    }
    assert_eq!(budget.spent(now), Some(Spent::Calls(2)));
}

#[test]
fn a_call_gets_no_more_time_than_is_left() {
    let start = Instant::now();
    let limits = Limits { max_time: Duration::from_secs(10), ..Limits::default() };
    let (budget, ledger) = (Budget::new(limits, start), Ledger::default());
    let admitted = budget.admit(&ledger, free(1, None), start + Duration::from_secs(4)).unwrap();
    assert_eq!(admitted.time, Duration::from_secs(6));
    let late = budget.admit(&ledger, free(1, None), start + Duration::from_secs(11));
    assert_eq!(late.unwrap_err(), Spent::Time(Duration::from_secs(10)));
}

#[test]
fn a_call_without_a_cap_gets_one_only_where_tokens_count() {
    let now = Instant::now();
    let ledger = Ledger::default();
    let free_budget = Budget::new(Limits::default(), now);
    assert_eq!(free_budget.admit(&ledger, free(10, None), now).unwrap().cap, None);
    let limits = Limits { max_tokens: Some(3000), ..Limits::default() };
    let (budget, ledger) = (Budget::new(limits, now), Ledger::default());
    let first = budget.admit(&ledger, free(100, None), now).unwrap();
    assert_eq!(first.cap, Some(DEFAULT_OUTPUT_TOKENS));
    // 3000 less 2148 reserved, less the second prompt.
    let second = budget.admit(&ledger, free(100, Some(4000)), now).unwrap();
    assert_eq!(second.cap, Some(752));
    assert_eq!(budget.admit(&ledger, free(100, None), now).unwrap_err(), Spent::Tokens(3000));
    // The truth of the first gives back what it did not need.
    first.entry.close(AttemptEnd::Answered, Some(usage(100, 52)), Duration::ZERO);
    assert_eq!(budget.admit(&ledger, free(0, None), now).unwrap().cap, Some(1996));
}

#[test]
fn a_dropped_call_gives_back_what_it_did_not_write() {
    let now = Instant::now();
    let limits = Limits { max_tokens: Some(1000), ..Limits::default() };
    let (budget, ledger) = (Budget::new(limits, now), Ledger::default());
    let first = budget.admit(&ledger, free(100, Some(900)), now).unwrap();
    first.entry.output(&"word ".repeat(80), Duration::ZERO);
    drop(first);
    // 100 read and 100 written.
    assert_eq!(budget.admit(&ledger, free(0, Some(5000)), now).unwrap().cap, Some(800));
}

#[test]
fn after_a_refusal_that_ends_the_run_nothing_leaves() {
    let now = Instant::now();
    let limits = Limits { max_tokens: Some(100), when_spent: WhenSpent::Abstain, ..Limits::default() };
    let (budget, ledger) = (Budget::new(limits, now), Ledger::default());
    assert!(budget.admit(&ledger, free(200, None), now).is_err());
    assert!(budget.admit(&ledger, free(1, Some(1)), now).is_err());
    assert!(ledger.attempts().is_empty());
}

#[test]
fn a_budget_can_only_lower() {
    let budget = BudgetSettings {
        max_calls: Some(100),
        max_tokens: Some(500),
        max_micro_usd: Some(7),
        ..BudgetSettings::default()
    };
    let limits = Limits { max_cost: Some(MicroUsd(5)), ..Limits::default() }.lowered_by(&budget);
    assert_eq!((limits.max_calls, limits.max_tokens, limits.max_cost), (64, Some(500), Some(MicroUsd(5))));
}

/// What happens next.
#[derive(Debug, Clone)]
enum Event {
    Open {
        prompt: u64,
        cap: Option<u64>,
    },
    /// The running call at that place (modulo) ends, with that share of its cap written.
    End {
        which: usize,
        share: f64,
        reports: bool,
    },
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        (0_u64..400, proptest::option::of(1_u64..900)).prop_map(|(prompt, cap)| Event::Open { prompt, cap }),
        (0_usize..64, 0.0..=1.0_f64, any::<bool>()).prop_map(|(which, share, reports)| Event::End {
            which,
            share,
            reports
        }),
    ]
}

fn bounded() -> impl Strategy<Value = Limits> {
    let joules = proptest::option::of(1.0..2000.0_f64);
    (1_u32..20, proptest::option::of(1_u64..8000), proptest::option::of(1_u64..20_000), joules).prop_map(
        |(max_calls, max_tokens, cost, max_joules)| Limits {
            max_calls,
            max_tokens,
            max_cost: cost.map(MicroUsd),
            max_joules,
            ..Limits::default()
        },
    )
}

proptest! {
    /// Calls that keep to their estimate never pass a bound: not while they run, not once they are settled.
    #[test]
    fn no_interleaving_passes_a_bound(limits in bounded(), events in proptest::collection::vec(event(), 1..80)) {
        let now = Instant::now();
        let (budget, ledger) = (Budget::new(limits, now), Ledger::default());
        let mut running: Vec<(Admitted, u64)> = Vec::new();
        for event in events {
            match event {
                Event::Open { prompt, cap } => {
                    let admitted = budget.admit(&ledger, opening(prompt, cap, priced()), now);
                    running.extend(admitted.ok().map(|it| (it, prompt)));
                }
                Event::End { which, share, reports } if !running.is_empty() => {
                    let (ended, prompt) = running.swap_remove(which % running.len());
                    let written = (ended.cap.unwrap_or(0) as f64 * share) as u64;
                    let truth = usage(prompt, written);
                    if reports {
                        ended.entry.close(AttemptEnd::Answered, Some(truth), Duration::ZERO);
                    }
                }
                Event::End { .. } => {}
            }
            let spent = ledger.spending();
            prop_assert!(spent.calls <= limits.max_calls);
            prop_assert!(limits.max_tokens.is_none_or(|most| spent.tokens <= most), "{spent:?} {limits:?}");
            prop_assert!(limits.max_cost.is_none_or(|most| spent.cost.0 <= most.0), "{spent:?} {limits:?}");
            prop_assert!(limits.max_joules.is_none_or(|most| spent.joules <= most + 1e-6), "{spent:?} {limits:?}");
        }
    }
}
