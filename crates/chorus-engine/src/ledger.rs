//! Every attempt at a model call of one request: who, for what, how it ended, what it took.
//!
//! **Invariant:** usage and cost never say less than what was spent. An attempt is entered before it starts, so one
//! that is dropped half-way still counts, with an estimate marked as one (DESIGN.md §5.7).

use chorus_collab::{CallFault, CallRole, FaultKind};
use chorus_spec::{MicroUsd, Pricing};
use chorus_wire::Usage;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptEnd {
    /// Nobody has heard of it again: it was dropped, or the request ended first.
    Open,
    /// A whole answer.
    Answered,
    /// No answer, or half of one.
    Failed(FaultKind, String),
}

/// One attempt at one model call.
#[derive(Debug, Clone)]
pub struct Attempt {
    /// What it was for.
    pub role: CallRole,
    /// The logical model.
    pub model: String,
    /// The backend's name.
    pub backend: String,
    /// How it ended.
    pub end: AttemptEnd,
    /// What it took.
    pub usage: Usage,
    /// What it cost.
    pub cost: MicroUsd,
    /// From the call to its end.
    pub latency: Duration,
    /// From the call to its first output, where it streamed.
    pub first_output: Option<Duration>,
}

/// The attempts of one request, in the order they started. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<Vec<(Attempt, Pricing)>>>,
}

/// An attempt's place in its ledger.
#[derive(Debug, Clone)]
pub struct Entry {
    ledger: Ledger,
    row: usize,
}

impl Ledger {
    /// Enters an attempt that is about to start; `prompt_tokens` is an estimate.
    #[must_use]
    pub fn open(
        &self,
        role: CallRole,
        model: &str,
        backend: &str,
        prompt_tokens: u64,
        pricing: Pricing,
    ) -> Entry {
        let usage =
            Usage { prompt_tokens, completion_tokens: 0, total_tokens: prompt_tokens, estimated: true };
        let attempt = Attempt {
            role,
            model: model.to_owned(),
            backend: backend.to_owned(),
            end: AttemptEnd::Open,
            usage,
            cost: cost_of(usage, pricing),
            latency: Duration::ZERO,
            first_output: None,
        };
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.push((attempt, pricing));
        Entry { ledger: self.clone(), row: rows.len() - 1 }
    }

    /// All attempts so far.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|(attempt, _)| attempt.clone()).collect()
    }

    /// The sum over all attempts.
    #[must_use]
    pub fn total(&self) -> (Usage, MicroUsd) {
        let mut usage = Usage::default();
        let mut cost = 0;
        for attempt in self.attempts() {
            usage += attempt.usage;
            cost += attempt.cost.0;
        }
        (usage, MicroUsd(cost))
    }
}

impl Entry {
    fn update(&self, change: impl FnOnce(&mut Attempt)) {
        let mut rows = self.ledger.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((attempt, pricing)) = rows.get_mut(self.row) {
            change(attempt);
            attempt.cost = cost_of(attempt.usage, *pricing);
        }
    }

    /// Output is arriving: `text` more of it, `elapsed` since the call.
    pub fn output(&self, text: &str, elapsed: Duration) {
        self.update(|attempt| {
            attempt.first_output.get_or_insert(elapsed);
            attempt.latency = elapsed;
            attempt.usage.completion_tokens += chorus_wire::tokens::of_text(text);
            attempt.usage.total_tokens = attempt.usage.prompt_tokens + attempt.usage.completion_tokens;
        });
    }

    /// The attempt is over. A reported usage replaces the estimate; one that reports nothing for a text does not
    /// (case I05).
    pub fn close(&self, end: AttemptEnd, reported: Option<Usage>, elapsed: Duration) {
        self.update(|attempt| {
            attempt.end = end;
            attempt.latency = elapsed;
            if let Some(usage) = reported.filter(|u| u.total_tokens > 0) {
                attempt.usage = usage;
            }
        });
    }

    /// [`close`](Self::close) with a fault.
    pub fn fail(&self, fault: &CallFault, elapsed: Duration) {
        self.close(AttemptEnd::Failed(fault.kind, fault.public.clone()), None, elapsed);
    }

    /// What the attempt took so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let rows = self.ledger.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.get(self.row).map(|(attempt, _)| attempt.usage).unwrap_or_default()
    }
}

/// Rounds half up, per call. Source: contract §1.2 (`pricing`, per million tokens).
fn cost_of(usage: Usage, pricing: Pricing) -> MicroUsd {
    // Tokens that a provider counts beyond prompt and completion (reasoning) are billed as output (case J02).
    let output = usage.total_tokens.saturating_sub(usage.prompt_tokens).max(usage.completion_tokens);
    let price = |tokens: u64, per_million: u64| u128::from(tokens) * u128::from(per_million);
    let micro = price(usage.prompt_tokens, pricing.prompt_micro_usd_per_1m)
        + price(output, pricing.completion_micro_usd_per_1m);
    MicroUsd(u64::try_from((micro + 500_000) / 1_000_000).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pricing() -> Pricing {
        Pricing {
            prompt_micro_usd_per_1m: 1_000_000,
            completion_micro_usd_per_1m: 2_000_000,
            cached_input_micro_usd_per_1m: None,
        }
    }

    fn usage(prompt: u64, completion: u64, total: u64) -> Usage {
        Usage { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total, estimated: false }
    }

    #[test]
    fn a17_a_dropped_stream_counts_what_it_had_written() {
        let ledger = Ledger::default();
        let entry = ledger.open(CallRole::Direct, "m", "b", 10, pricing());
        entry.output(&"word ".repeat(100), Duration::from_millis(5));
        let [attempt] = ledger.attempts().try_into().unwrap();
        assert_eq!(attempt.end, AttemptEnd::Open);
        assert_eq!(attempt.usage, Usage { estimated: true, ..usage(10, 125, 135) });
        assert_eq!(ledger.total().1, MicroUsd(10 + 250));
    }

    #[test]
    fn i05_a_report_of_zero_does_not_replace_an_estimate() {
        let ledger = Ledger::default();
        let entry = ledger.open(CallRole::Direct, "m", "b", 10, pricing());
        entry.output("some text", Duration::ZERO);
        entry.close(AttemptEnd::Answered, Some(usage(0, 0, 0)), Duration::ZERO);
        assert!(entry.usage().estimated && entry.usage().completion_tokens > 0);
        entry.close(AttemptEnd::Answered, Some(usage(7, 3, 10)), Duration::ZERO);
        assert_eq!(entry.usage(), usage(7, 3, 10));
    }

    #[test]
    fn j02_reasoning_tokens_outside_the_completion_are_billed() {
        assert_eq!(cost_of(usage(10, 20, 90), pricing()), MicroUsd(10 + 160));
    }

    #[test]
    fn g17_the_total_is_the_sum_of_all_attempts() {
        let ledger = Ledger::default();
        for (prompt, completion) in [(10, 5), (10, 5), (10, 5), (60, 20)] {
            let entry = ledger.open(CallRole::Panel, "m", "b", 1, pricing());
            entry.close(
                AttemptEnd::Answered,
                Some(usage(prompt, completion, prompt + completion)),
                Duration::ZERO,
            );
        }
        let failed = ledger.open(CallRole::Panel, "m", "b", 10, pricing());
        failed.close(AttemptEnd::Failed(FaultKind::Status, "x".into()), None, Duration::ZERO);
        let (total, _) = ledger.total();
        assert_eq!((total.prompt_tokens, total.completion_tokens, total.estimated), (100, 35, true));
    }
}
