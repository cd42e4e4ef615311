//! Every attempt at a model call of one request: who, for what, how it ended, what it took.
//!
//! **Invariant:** usage and cost never say less than what was spent. An attempt is entered before it starts, so one
//! that is dropped half-way still counts, with an estimate marked as one (DESIGN.md §5.7).

use crate::limits::{self, Limits, Rates, Spending, Spent};
use crate::tape::deck::Deck;
use chorus_collab::{CallFault, CallRole, FaultKind};
use chorus_spec::{MicroUsd, Pricing};
use chorus_wire::Usage;
use smol_str::SmolStr;
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
    pub model: SmolStr,
    /// The backend's name.
    pub backend: SmolStr,
    /// Why it was made, where it is not the first of its call: a retry, a fallback, a hedge.
    pub cause: Option<String>,
    /// How it ended.
    pub end: AttemptEnd,
    /// What it took.
    pub usage: Usage,
    /// What it cost.
    pub cost: MicroUsd,
    /// What energy it took, by the model's energy profile; 0 where it has none.
    pub joules: f64,
    /// When it began, since the request did.
    pub began: Duration,
    /// From the call to its end.
    pub latency: Duration,
    /// From the call to its first output, where it streamed.
    pub first_output: Option<Duration>,
}

/// The attempts of one request, in the order they started. Cloning shares it.
#[derive(Debug, Clone, Default)]
pub struct Ledger {
    rows: Arc<Mutex<Vec<Row>>>,
    /// What records the attempts, or plays recorded ones in their place.
    deck: Option<Deck>,
    /// How long the backend asks to be left alone for whose sake the latest call was given up.
    asked_wait: Arc<Mutex<Option<Duration>>>,
}

/// The longest wait of a backend that a client is told of.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// An attempt, and what is held for it while it runs.
#[derive(Debug)]
struct Row {
    attempt: Attempt,
    rates: Rates,
    /// The most that it may take; `None` once it has ended, or where nothing is bounded.
    reserved: Option<Usage>,
}

/// An attempt that is about to start.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    /// What it is for.
    pub role: CallRole,
    /// The logical model.
    pub model: &'a str,
    /// The backend's name.
    pub backend: &'a str,
    /// Why it is made, where it is not the first of its call.
    pub cause: Option<&'a str>,
    /// Estimated tokens of its prompt.
    pub prompt_tokens: u64,
    /// The most that it may write, where it says.
    pub cap: Option<u64>,
    /// What its tokens take.
    pub rates: Rates,
}

/// An attempt's place in its ledger. Dropping it ends the attempt, and gives back what was reserved for it.
#[derive(Debug)]
pub struct Entry {
    ledger: Ledger,
    row: usize,
}

impl Ledger {
    /// A ledger of attempts that are recorded, or played.
    pub(crate) fn on(deck: Option<Deck>) -> Self {
        Self { deck, ..Self::default() }
    }

    /// What records or plays its attempts, if anything does.
    pub(crate) fn deck(&self) -> Option<&Deck> {
        self.deck.as_ref()
    }

    /// Enters an attempt that is about to start, if the limits allow it beside what is spent and reserved; also gives
    /// the most that it may write. Asking and entering are one step, so two attempts cannot both take the last of it.
    ///
    /// # Errors
    /// What is spent.
    pub fn open(&self, opening: Opening<'_>, limits: &Limits) -> Result<(Entry, Option<u64>), Spent> {
        let Opening { role, model, backend, cause, prompt_tokens, cap, rates } = opening;
        let mut rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        let cap = limits::grant(limits, &spending(&rows), prompt_tokens, cap, rates)?;
        let estimate = |completion_tokens| Usage {
            prompt_tokens,
            completion_tokens,
            total_tokens: prompt_tokens + completion_tokens,
            estimated: true,
        };
        let usage = estimate(0);
        let attempt = Attempt {
            role,
            model: model.into(),
            backend: backend.into(),
            cause: cause.map(str::to_owned),
            end: AttemptEnd::Open,
            usage,
            cost: cost_of(usage, rates.pricing),
            joules: joules_of(usage, rates),
            began: Duration::ZERO,
            latency: Duration::ZERO,
            first_output: None,
        };
        rows.push(Row { attempt, rates, reserved: cap.map(estimate) });
        Ok((Entry { ledger: self.clone(), row: rows.len() - 1 }, cap))
    }

    /// A call was given up, and its last backend asks to be left alone for so long, if it says.
    pub(crate) fn gave_up(&self, wait: Option<Duration>) {
        *self.asked_wait.lock().unwrap_or_else(PoisonError::into_inner) =
            wait.map(|wait| wait.min(LONGEST_WAIT));
    }

    /// How long to wait before the same is asked again, where a backend said.
    pub(crate) fn asked_wait(&self) -> Option<Duration> {
        *self.asked_wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is spent and reserved so far.
    #[must_use]
    pub fn spending(&self) -> Spending {
        spending(&self.rows.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// All attempts so far.
    #[must_use]
    pub fn attempts(&self) -> Vec<Attempt> {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.iter().map(|row| row.attempt.clone()).collect()
    }

    /// The models of all attempts, in the order of the first of each; and how many attempts there are.
    #[must_use]
    pub(crate) fn models(&self) -> (Vec<SmolStr>, usize) {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        (models_of(rows.iter().map(|row| &row.attempt)), rows.len())
    }

    /// The sum over all attempts.
    #[must_use]
    pub fn total(&self) -> (Usage, MicroUsd) {
        let rows = self.rows.lock().unwrap_or_else(PoisonError::into_inner);
        total_of(rows.iter().map(|row| &row.attempt))
    }
}

impl Entry {
    fn update(&self, change: impl FnOnce(&mut Attempt)) {
        let mut rows = self.ledger.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(Row { attempt, rates, .. }) = rows.get_mut(self.row) {
            change(attempt);
            attempt.cost = cost_of(attempt.usage, rates.pricing);
            attempt.joules = joules_of(attempt.usage, *rates);
        }
    }

    /// It begins so long after the request did.
    pub(crate) fn begin(&self, since: Duration) {
        self.update(|attempt| attempt.began = since);
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
        self.release();
    }

    fn release(&self) {
        let mut rows = self.ledger.rows.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(row) = rows.get_mut(self.row) {
            row.reserved = None;
        }
    }

    /// [`close`](Self::close) with a fault.
    pub fn fail(&self, fault: &CallFault, elapsed: Duration) {
        self.close(AttemptEnd::Failed(fault.kind, fault.public.clone()), None, elapsed);
    }

    /// Its number among the attempts of the request, from 0.
    #[must_use]
    pub fn number(&self) -> usize {
        self.row
    }

    /// What the attempt took so far.
    #[must_use]
    pub fn usage(&self) -> Usage {
        let rows = self.ledger.rows.lock().unwrap_or_else(PoisonError::into_inner);
        rows.get(self.row).map(|row| row.attempt.usage).unwrap_or_default()
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.release();
    }
}

/// The models of these attempts, in the order of the first of each.
pub(crate) fn models_of<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> Vec<SmolStr> {
    let mut models: Vec<SmolStr> = Vec::with_capacity(1);
    for attempt in attempts {
        if !models.contains(&attempt.model) {
            models.push(attempt.model.clone());
        }
    }
    models
}

/// What these attempts took together.
pub(crate) fn total_of<'a>(attempts: impl Iterator<Item = &'a Attempt>) -> (Usage, MicroUsd) {
    attempts.fold((Usage::default(), MicroUsd(0)), |(mut usage, cost), attempt| {
        usage += attempt.usage;
        (usage, MicroUsd(cost.0 + attempt.cost.0))
    })
}

/// A running attempt counts with what is reserved for it, or with what it took where that is more.
fn spending(rows: &[Row]) -> Spending {
    let mut sum = Spending { calls: u32::try_from(rows.len()).unwrap_or(u32::MAX), ..Spending::default() };
    for Row { attempt, rates, reserved } in rows {
        let reserved = reserved.unwrap_or_default();
        sum.tokens += attempt.usage.total_tokens.max(reserved.total_tokens);
        sum.cost.0 += attempt.cost.0.max(cost_of(reserved, rates.pricing).0);
        sum.joules += attempt.joules.max(joules_of(reserved, *rates));
    }
    sum
}

fn joules_of(usage: Usage, rates: Rates) -> f64 {
    rates.energy.joules(usage.prompt_tokens, written(usage))
}

/// Tokens that a provider counts beyond prompt and completion (reasoning) were written too (case J02).
fn written(usage: Usage) -> u64 {
    usage.total_tokens.saturating_sub(usage.prompt_tokens).max(usage.completion_tokens)
}

/// Rounds half up, per call. Source: contract §1.2 (`pricing`, per million tokens).
fn cost_of(usage: Usage, pricing: Pricing) -> MicroUsd {
    let price = |tokens: u64, per_million: u64| u128::from(tokens) * u128::from(per_million);
    let micro = price(usage.prompt_tokens, pricing.prompt_micro_usd_per_1m)
        + price(written(usage), pricing.completion_micro_usd_per_1m)
        + 500_000;
    // Each chunk comes here, and a division of 128 bits is a slow one.
    let whole = u64::try_from(micro).map(|micro| micro / 1_000_000);
    MicroUsd(whole.unwrap_or_else(|_| u64::try_from(micro / 1_000_000).unwrap_or(u64::MAX)))
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

    fn opened(ledger: &Ledger, role: CallRole, prompt_tokens: u64) -> Entry {
        let rates = Rates { pricing: pricing(), ..Rates::default() };
        let opening =
            Opening { role, model: "m", backend: "b", cause: None, prompt_tokens, cap: None, rates };
        ledger.open(opening, &Limits::default()).unwrap().0
    }

    fn usage(prompt: u64, completion: u64, total: u64) -> Usage {
        Usage { prompt_tokens: prompt, completion_tokens: completion, total_tokens: total, estimated: false }
    }

    #[test]
    fn a17_a_dropped_stream_counts_what_it_had_written() {
        let ledger = Ledger::default();
        let entry = opened(&ledger, CallRole::Direct, 10);
        entry.output(&"word ".repeat(100), Duration::from_millis(5));
        let [attempt] = ledger.attempts().try_into().unwrap();
        assert_eq!(attempt.end, AttemptEnd::Open);
        assert_eq!(attempt.usage, Usage { estimated: true, ..usage(10, 125, 135) });
        assert_eq!(ledger.total().1, MicroUsd(10 + 250));
    }

    #[test]
    fn i05_a_report_of_zero_does_not_replace_an_estimate() {
        let ledger = Ledger::default();
        let entry = opened(&ledger, CallRole::Direct, 10);
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
            let entry = opened(&ledger, CallRole::Panel, 1);
            entry.close(
                AttemptEnd::Answered,
                Some(usage(prompt, completion, prompt + completion)),
                Duration::ZERO,
            );
        }
        let failed = opened(&ledger, CallRole::Panel, 10);
        failed.close(AttemptEnd::Failed(FaultKind::Status, "x".into()), None, Duration::ZERO);
        let (total, _) = ledger.total();
        assert_eq!((total.prompt_tokens, total.completion_tokens, total.estimated), (100, 35, true));
    }
}
