//! One call, attempt by attempt: another backend, the same one after a pause, another model, or two at once.
//!
//! It decides nothing itself: [`Course`] says what is next, and the caller of [`LiveCalls::persist`] makes the attempt.

use super::{LiveCalls, no_backend, prompt_tokens};
use crate::backends::{Line, Missed, Picked, Until};
use crate::constrain::{self, Needs};
use crate::course::{Course, Step, may_be_replaced};
use crate::plan;
use chorus_collab::{Call, CallFault};
use chorus_spec::{Model, ModelId, ModelRef};
use futures_util::future::{BoxFuture, Either, select};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// One attempt at a call: who is called, and why.
pub(super) struct Turn<'a> {
    pub(super) model: &'a Model,
    pub(super) line: &'a Arc<Line>,
    pub(super) picked: Picked,
    pub(super) cause: Option<String>,
    /// What is left of the call's own time.
    pub(super) left: Option<Duration>,
}

/// Where a call's attempts are made.
#[derive(Clone, Copy)]
struct Site<'a> {
    model: &'a Model,
    line: &'a Arc<Line>,
    left: Option<Duration>,
    call: &'a Call,
}

impl<'a> Site<'a> {
    fn turn(self, picked: Picked, cause: Option<String>) -> Turn<'a> {
        Turn { model: self.model, line: self.line, picked, cause, left: self.left }
    }
}

impl LiveCalls {
    /// One call, attempt by attempt, until one gives an answer or nothing is left to try.
    pub(super) async fn persist<'a, T>(
        &'a self,
        call: &'a Call,
        until: Until,
        once: impl Fn(Turn<'a>) -> BoxFuture<'a, Result<T, Missed>>,
    ) -> Result<T, CallFault> {
        let started = Instant::now();
        let model = self.model(&call.model)?;
        let mut course = Course::new(model.id.clone(), self.fallbacks(call, model));
        let mut last: Option<CallFault> = None;
        loop {
            let step = course.step();
            let left = call.timeout.map(|limit| limit.saturating_sub(started.elapsed()));
            if let Some(fault) = last.take_if(|_| left.is_some_and(|left| left <= step.after)) {
                return Err(fault);
            }
            if !step.after.is_zero() {
                tokio::time::sleep(step.after).await;
            }
            let model = self.model(step.model.as_str())?;
            let line = self.mom.backends.line(&model.id).ok_or_else(|| no_backend(model.id.as_str()))?;
            let left = left.map(|left| left.saturating_sub(step.after));
            let (tried, outcome) = self.attempt(Site { model, line, left, call }, step, until, &once).await;
            let missed = match outcome {
                Ok(answer) => return Ok(answer),
                Err(missed) => missed,
            };
            if !course.go_on(line, tried, &missed, Instant::now(), self.mom.backends.random()) {
                self.ledger.gave_up(missed.asked_wait());
                return Err(missed.fault);
            }
            last = Some(missed.fault);
        }
    }

    /// One attempt, or two at once where the first is slower than it should be; also which backend it was.
    async fn attempt<'a, T>(
        &'a self,
        site: Site<'a>,
        step: &Step,
        until: Until,
        once: &impl Fn(Turn<'a>) -> BoxFuture<'a, Result<T, Missed>>,
    ) -> (Option<usize>, Result<T, Missed>) {
        let line = site.line;
        if step.cause.is_none() {
            line.called();
        }
        let tokens = if line.counts_tokens() { prompt_tokens(&site.call.ask) } else { 0 };
        let recorded = self.ledger.deck().and_then(|deck| deck.backend_of(site.model.id.as_str()));
        let recorded = recorded.and_then(|name| self.mom.backends.named(line, &name));
        let pick = |avoid: &[usize]| match recorded.clone() {
            Some(picked) => Ok(picked),
            None => self.mom.backends.pick(line, avoid, tokens),
        };
        let picked = match pick(&step.avoid) {
            Ok(picked) => picked,
            Err(missed) => return (None, Err(missed)),
        };
        let index = picked.index;
        let mut first = once(site.turn(picked, step.cause.clone()));
        let Some(patience) = line.hedge_after(until).filter(|_| step.cause.is_none()) else {
            return (Some(index), first.await);
        };
        tokio::select! {
            biased;
            outcome = &mut first => return (Some(index), outcome),
            () = tokio::time::sleep(patience) => {}
        }
        let now = Instant::now();
        let another = line.has_another(&[index], now) && line.may_retry(now);
        let Some(Ok(other)) = another.then(|| pick(&[index])) else {
            return (Some(index), first.await);
        };
        let other_index = other.index;
        let second =
            once(site.turn(other, Some(format!("hedge: no answer after {} ms", patience.as_millis()))));
        match select(first, second).await {
            Either::Left((Err(_), second)) => (Some(other_index), second.await),
            Either::Right((Err(_), first)) => (Some(index), first.await),
            Either::Left((answer, _)) => (Some(index), answer),
            Either::Right((answer, _)) => (Some(other_index), answer),
        }
    }

    /// The models that may answer a call instead of its own, in the order of its `reliability`; each can serve it
    /// (case C07).
    fn fallbacks(&self, call: &Call, model: &Model) -> Vec<ModelId> {
        let declared = &model.reliability.fallback;
        if declared.is_empty() || !may_be_replaced(call.role) {
            return Vec::new();
        }
        let all: Vec<ModelRef> =
            std::iter::once(&model.id).chain(declared).map(|id| plan::bare(id.clone())).collect();
        let (kept, _) = constrain::constrain(&self.mom.spec, &all, Needs::of(&call.ask));
        kept.into_iter().map(|candidate| candidate.model).filter(|id| *id != model.id).collect()
    }
}
