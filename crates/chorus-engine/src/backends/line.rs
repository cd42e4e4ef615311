//! The backends of one model together: which is called next, and what its failures and latencies say.
//!
//! It knows no request and no other model. **Invariant:** a backend that is out (circuit open, check failed, limits used
//! up) is not chosen, except that no more than `max_ejection_percent` of them are ever out for their failures.

use super::deployment::{Deployment, lock};
use super::missed::{Missed, Why};
use chorus_collab::{CallFault, FaultKind};
use chorus_spec::{LoadBalance, Model};
use chorus_upstream::reliability::{Balance, Latencies, Place, RetryBudget, RetryOn};
use chorus_upstream::{Retry, UpstreamFault};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The backends of one model.
pub(crate) struct Line {
    pub(crate) deployments: Vec<Arc<Deployment>>,
    rules: Rules,
    turns: AtomicU64,
    budget: Mutex<RetryBudget>,
    whole: Mutex<Latencies>,
    begun: Mutex<Latencies>,
}

/// What `reliability` says, ready to be asked.
struct Rules {
    balance: Balance,
    retry_count: Option<u32>,
    retry_on: Vec<RetryOn>,
    fallback_on: Vec<RetryOn>,
    most_out: usize,
    hedge_after: Option<f64>,
}

/// What latency is spoken of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Until {
    /// The whole answer.
    Whole,
    /// Its first output.
    Begun,
}

impl Line {
    pub(crate) fn new(model: &Model, now: Instant) -> Self {
        let rules = &model.reliability;
        let words = |list: &[String]| list.iter().filter_map(|word| RetryOn::parse(word)).collect();
        let count = model.backends.len();
        let share = usize::try_from(rules.max_ejection_percent).unwrap_or(100).min(100);
        // A lone backend may be out where somebody else can answer.
        let alone = usize::from(count == 1 && !rules.fallback.is_empty());
        Self {
            deployments: model
                .backends
                .iter()
                .map(|backend| Arc::new(Deployment::new(backend, rules, now)))
                .collect(),
            rules: Rules {
                balance: match rules.balance {
                    LoadBalance::RoundRobin => Balance::RoundRobin,
                    LoadBalance::LeastRequest => Balance::LeastRequest,
                },
                retry_count: rules.retry_count,
                retry_on: words(&rules.retry_on),
                fallback_on: words(&rules.fallback_on),
                most_out: (count * share / 100).max(alone),
                hedge_after: rules.hedge_after_percentile,
            },
            turns: AtomicU64::new(0),
            budget: Mutex::new(RetryBudget::new(rules.retry_budget_percent, now)),
            whole: Mutex::default(),
            begun: Mutex::default(),
        }
    }

    /// Whether a call's tokens must be known before a backend is chosen.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.deployments.iter().any(|it| it.counts_tokens())
    }

    /// The backend for a call of so many tokens, none of those to avoid.
    ///
    /// # Errors
    /// Why none may be called now.
    pub(crate) fn choose(&self, avoid: &[usize], tokens: u64, now: Instant) -> Result<usize, Missed> {
        if let [only] = self.deployments.as_slice() {
            return self.choose_only(only, avoid, tokens, now);
        }
        let mut open = self.open(avoid, now);
        if open.is_empty() {
            return Err(unavailable());
        }
        open.retain(|(_, deployment)| deployment.has_room(tokens, now));
        if open.is_empty() {
            return Err(used_up());
        }
        if open.iter().any(|(_, deployment)| deployment.is_free()) {
            open.retain(|(_, deployment)| deployment.is_free());
        }
        let place = |(index, deployment): &(usize, &Arc<Deployment>)| Place {
            index: *index,
            weight: deployment.backend.weight,
            in_flight: deployment.in_flight(),
        };
        let places: Vec<Place> = open.iter().map(place).collect();
        let turn = self.turns.fetch_add(1, Ordering::Relaxed);
        self.rules.balance.choose(&places, turn).ok_or_else(unavailable)
    }

    /// The same where there is one backend.
    fn choose_only(
        &self,
        only: &Deployment,
        avoid: &[usize],
        tokens: u64,
        now: Instant,
    ) -> Result<usize, Missed> {
        let is_out = self.rules.most_out > 0 && !only.admits(now);
        if is_out || avoid.contains(&0) {
            return Err(unavailable());
        }
        if only.has_room(tokens, now) { Ok(0) } else { Err(used_up()) }
    }

    /// Whether there is a backend beside those to avoid.
    pub(crate) fn has_another(&self, avoid: &[usize], now: Instant) -> bool {
        !self.open(avoid, now).is_empty()
    }

    /// The backends that neither their failures nor `avoid` rule out.
    fn open(&self, avoid: &[usize], now: Instant) -> Vec<(usize, &Arc<Deployment>)> {
        let mut out = 0;
        let all = self.deployments.iter().enumerate();
        all.filter(|(index, deployment)| {
            if !deployment.admits(now) && out < self.rules.most_out {
                out += 1;
                return false;
            }
            !avoid.contains(index)
        })
        .collect()
    }

    /// A call that is no retry begins.
    pub(crate) fn called(&self) {
        lock(&self.budget).called();
    }

    /// Takes one retry from the budget.
    pub(crate) fn may_retry(&self, now: Instant) -> bool {
        lock(&self.budget).take(now)
    }

    /// Whether a failure is to be retried here after so many retries.
    pub(crate) fn retries(&self, fault: &UpstreamFault, so_far: u32) -> bool {
        let others = u32::try_from(self.deployments.len().saturating_sub(1)).unwrap_or(u32::MAX);
        so_far < self.rules.retry_count.unwrap_or(others) && covered(&self.rules.retry_on, fault)
    }

    /// Whether the same backend may be called twice for one call: only where retries are declared.
    pub(crate) fn repeats(&self, fault: &UpstreamFault) -> bool {
        self.rules.retry_count.is_some() && fault.retry() == Retry::Same
    }

    /// Whether a failure leads to the model's fallback.
    pub(crate) fn falls_back(&self, why: &Why) -> bool {
        match why {
            Why::Upstream(fault) => covered(&self.rules.fallback_on, fault),
            Why::Unavailable(_) => true,
            Why::Ours => false,
        }
    }

    /// How long a first call may take before a second one is worth it.
    pub(crate) fn hedge_after(&self, until: Until) -> Option<Duration> {
        let percent = self.rules.hedge_after.filter(|_| self.deployments.len() > 1)?;
        lock(self.latencies(until)).percentile(percent)
    }

    /// Remembers how long an answer took.
    pub(crate) fn took(&self, until: Until, latency: Duration) {
        if self.rules.hedge_after.is_some() {
            lock(self.latencies(until)).push(latency);
        }
    }

    fn latencies(&self, until: Until) -> &Mutex<Latencies> {
        match until {
            Until::Whole => &self.whole,
            Until::Begun => &self.begun,
        }
    }
}

/// An empty list stands for whatever may go better next time.
fn covered(list: &[RetryOn], fault: &UpstreamFault) -> bool {
    if list.is_empty() { RetryOn::Any.covers(fault) } else { list.iter().any(|on| on.covers(fault)) }
}

fn unavailable() -> Missed {
    let public = "every backend of the model has been failing and is left alone for a while";
    let fault = CallFault { kind: FaultKind::Transport, public: public.to_owned(), status: None };
    Missed { fault, why: Why::Unavailable("circuit_open") }
}

fn used_up() -> Missed {
    let public = "every backend of the model has used up its requests or tokens for this minute";
    let fault = CallFault { kind: FaultKind::Status, public: public.to_owned(), status: Some(429) };
    Missed { fault, why: Why::Unavailable("backend_limit") }
}
