//! What live calls of every deployment have shown, shared by all configurations of a process.
//!
//! It knows no request. **Invariant:** only calls of live requests come here, once each (case D24).

use crate::ledger::{Attempt, AttemptEnd};
use chorus_collab::FaultKind;
use chorus_select::live::{Deployment, Ended};
use chorus_select::{LiveFigures, Needs};
use chorus_store::{CallRecord, CallStatus, RunRecord};
use smol_str::SmolStr;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Most deployments that are remembered; names of a configuration are few.
const DEPLOYMENTS_MOST: usize = 1_024;

/// The statistics of a process.
#[derive(Debug, Default)]
pub(crate) struct Board {
    /// By model and backend.
    deployments: Mutex<BTreeMap<(SmolStr, SmolStr), Deployment>>,
    seeds: AtomicU64,
}

impl Board {
    /// Takes what the attempts of a request have shown.
    pub(crate) fn settle(&self, attempts: &[Attempt]) {
        let mut all = self.deployments.lock().unwrap_or_else(PoisonError::into_inner);
        for attempt in attempts {
            let Some(ended) = ended(attempt) else { continue };
            let key = (attempt.model.clone(), attempt.backend.clone());
            if all.len() >= DEPLOYMENTS_MOST && !all.contains_key(&key) {
                continue;
            }
            let deployment = all.entry(key).or_default();
            deployment.start();
            deployment.end(ended);
        }
    }

    /// What a selector is shown of a model; `in_flight` calls of it are under way.
    pub(crate) fn figures(&self, model: &str, needs: Needs, in_flight: u32) -> LiveFigures {
        let mut all = self.deployments.lock().unwrap_or_else(PoisonError::into_inner);
        let own = all.iter_mut().filter(|((name, _), _)| name == model);
        let mut own: Vec<&mut Deployment> = own.map(|(_, it)| it).collect();
        LiveFigures { in_flight, ..Deployment::figures(&mut own, needs) }
    }

    /// A seed that no other request of this process has.
    pub(crate) fn seed(&self) -> u64 {
        self.seeds.fetch_add(1, Ordering::Relaxed).wrapping_add(1)
    }

    /// Takes what earlier runs of the process have shown, from their records.
    pub(crate) fn recall(&self, runs: &[RunRecord]) {
        let mut all = self.deployments.lock().unwrap_or_else(PoisonError::into_inner);
        // Latest come first in a list, and last in a memory.
        for call in runs.iter().rev().flat_map(|run| &run.calls) {
            let Some(ended) = recorded(call) else { continue };
            let key = (call.model.clone(), call.backend.clone().unwrap_or_default());
            if all.len() < DEPLOYMENTS_MOST || all.contains_key(&key) {
                let deployment = all.entry(key).or_default();
                deployment.start();
                deployment.end(ended);
            }
        }
    }
}

/// What one attempt has shown; nothing where nobody waited for it.
fn ended(attempt: &Attempt) -> Option<Ended> {
    match &attempt.end {
        AttemptEnd::Open | AttemptEnd::Failed(FaultKind::Cancelled, _) => return None,
        AttemptEnd::Failed(..) => return Some(Ended { failed: true, ..Ended::default() }),
        AttemptEnd::Answered => {}
    }
    let millis = |it: std::time::Duration| it.as_secs_f64() * 1_000.0;
    let first = attempt.first_output.map(millis);
    Some(answered(millis(attempt.latency), first, attempt.usage.completion_tokens))
}

/// What one call of a record has shown.
fn recorded(call: &CallRecord) -> Option<Ended> {
    match call.status {
        CallStatus::Ok => {
            let first = call.first_token_ms.map(|it| it as f64);
            Some(answered(call.latency_ms as f64, first, call.usage.completion_tokens))
        }
        CallStatus::Failed => Some(Ended { failed: true, ..Ended::default() }),
        CallStatus::Cancelled => None,
    }
}

/// Times of an answer. A whole one shows one time only: it stands for its tokens.
fn answered(whole_ms: f64, first_ms: Option<f64>, tokens: u64) -> Ended {
    let first = first_ms.filter(|first| *first < whole_ms);
    let further = match first {
        Some(first) => (tokens > 1).then(|| (whole_ms - first) / (tokens - 1) as f64),
        None => (tokens > 0).then(|| whole_ms / tokens as f64),
    };
    Ended { ttft_ms: first, tpot_ms: further, failed: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_collab::CallRole;
    use chorus_spec::MicroUsd;
    use chorus_wire::Usage;
    use std::time::Duration;

    fn attempt(end: AttemptEnd, first_ms: u64, whole_ms: u64, tokens: u64) -> Attempt {
        Attempt {
            role: CallRole::Direct,
            model: "m".into(),
            backend: "b".into(),
            cause: None,
            end,
            usage: Usage { completion_tokens: tokens, ..Usage::default() },
            cost: MicroUsd(0),
            joules: 0.0,
            began: Duration::ZERO,
            latency: Duration::from_millis(whole_ms),
            first_output: Some(Duration::from_millis(first_ms)),
        }
    }

    #[test]
    fn d24_only_calls_that_ended_are_counted_and_each_once() {
        let board = Board::default();
        let failed = AttemptEnd::Failed(FaultKind::Timeout, String::new());
        let dropped = AttemptEnd::Failed(FaultKind::Cancelled, String::new());
        board.settle(&[
            attempt(AttemptEnd::Answered, 100, 1_100, 101),
            attempt(AttemptEnd::Open, 1, 1, 1),
            attempt(dropped, 1, 1, 1),
            attempt(failed, 1, 1, 1),
        ]);
        let needs = Needs { ttft_percentile: Some(50), tpot_percentile: Some(50), ..Needs::default() };
        let figures = board.figures("m", needs, 3);
        assert_eq!((figures.ended, figures.in_flight), (2, 3));
        assert!(
            (figures.ttft_ms.unwrap() - 100.0).abs() < 2.0 && (figures.tpot_ms.unwrap() - 10.0).abs() < 0.2
        );
        assert_eq!(board.figures("other", needs, 0).ended, 0);
    }

    #[test]
    fn a_whole_answer_stands_for_its_tokens() {
        let board = Board::default();
        board.settle(&[attempt(AttemptEnd::Answered, 1_000, 1_000, 100)]);
        let needs = Needs { ttft_percentile: Some(50), tpot_percentile: Some(50), ..Needs::default() };
        let figures = board.figures("m", needs, 0);
        assert_eq!(figures.ttft_ms, None);
        assert!((figures.tpot_ms.unwrap() - 10.0).abs() < 0.2);
    }

    #[test]
    fn what_earlier_runs_have_shown_is_recalled_latest_last() {
        let call = |first_token_ms, latency_ms, status| CallRecord {
            role: "direct".into(),
            model: "m".into(),
            backend: Some("b".into()),
            status,
            usage: Usage { completion_tokens: 11, ..Usage::default() },
            latency_ms,
            first_token_ms: Some(first_token_ms),
            ..CallRecord::default()
        };
        let run = |calls| RunRecord { calls, ..RunRecord::default() };
        let latest = run(vec![call(200, 300, CallStatus::Ok), call(1, 1, CallStatus::Cancelled)]);
        let board = Board::default();
        board.recall(&[latest, run(vec![call(100, 200, CallStatus::Ok)])]);
        let needs = Needs { ttft_percentile: Some(100), tpot_percentile: Some(50), ..Needs::default() };
        let figures = board.figures("m", needs, 0);
        assert_eq!(figures.ended, 2);
        assert!(
            (figures.ttft_ms.unwrap() - 200.0).abs() < 4.0 && (figures.tpot_ms.unwrap() - 10.0).abs() < 0.2
        );
    }
}
