//! What is tried next when an attempt at a call gave no answer: another backend, the same one after a pause, another
//! model, or nothing.
//!
//! It makes no call and reads no clock of its own. **Invariant:** every further attempt is allowed by the model's
//! `reliability` and paid for by its retry budget, and none is made once the call's time is over.

use crate::backends::{Line, Missed, Why, word_of};
use chorus_collab::CallRole;
use chorus_spec::ModelId;
use chorus_upstream::UpstreamFault;
use chorus_upstream::reliability::Wait;
use chorus_upstream::reliability::retry::pause;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// The model.
    pub(crate) model: ModelId,
    /// Its backends that are not to be called.
    pub(crate) avoid: Vec<usize>,
    /// Why, where it is not the first attempt.
    pub(crate) cause: Option<String>,
    /// How long to wait first.
    pub(crate) after: Duration,
}

/// The attempts at one call.
#[derive(Debug)]
pub(crate) struct Course {
    step: Step,
    retries: u32,
    /// Models that may still answer instead.
    fallbacks: VecDeque<ModelId>,
}

impl Course {
    /// The first step is the model itself; `fallbacks` are those that can serve the call.
    pub(crate) fn new(model: ModelId, fallbacks: impl IntoIterator<Item = ModelId>) -> Self {
        let step = Step { model, avoid: Vec::new(), cause: None, after: Duration::ZERO };
        Self { step, retries: 0, fallbacks: fallbacks.into_iter().collect() }
    }

    /// The attempt to make.
    pub(crate) fn step(&self) -> &Step {
        &self.step
    }

    /// The attempt at the backend `tried` of the current model failed; whether another one is to be made.
    ///
    /// `random` is in 0..1.
    pub(crate) fn go_on(
        &mut self,
        line: &Line,
        tried: Option<usize>,
        missed: &Missed,
        now: Instant,
        random: f64,
    ) -> bool {
        if let (Some(tried), Why::Upstream(fault)) = (tried, &missed.why)
            && let Some(step) = self.retry(line, tried, fault, now, random)
        {
            self.retries += 1;
            self.step = step;
            return true;
        }
        if !line.falls_back(&missed.why) {
            return false;
        }
        let Some(model) = self.fallbacks.pop_front() else { return false };
        let cause = format!("fallback from {}: {}", self.step.model, missed.why.word());
        self.retries = 0;
        self.step = Step { model, avoid: Vec::new(), cause: Some(cause), after: Duration::ZERO };
        true
    }

    fn retry(
        &self,
        line: &Line,
        tried: usize,
        fault: &UpstreamFault,
        now: Instant,
        random: f64,
    ) -> Option<Step> {
        if !line.retries(fault, self.retries) {
            return None;
        }
        let mut avoid = self.step.avoid.clone();
        avoid.push(tried);
        let after = if line.has_another(&avoid, now) {
            Duration::ZERO
        } else if line.repeats(fault) {
            avoid.clear();
            match pause(self.retries, fault.retry_after(), random) {
                Wait::For(pause) => pause,
                Wait::TooLong => return None,
            }
        } else {
            return None;
        };
        let word = word_of(fault);
        let paid = line.may_retry(now);
        paid.then(|| Step {
            model: self.step.model.clone(),
            avoid,
            cause: Some(format!("retry: {word}")),
            after,
        })
    }
}

/// Whether another model may answer in this role: a panel member, a rater or a step of a cascade is that model or nobody,
/// because its voice is counted as its own.
pub(crate) fn may_be_replaced(role: CallRole) -> bool {
    match role {
        CallRole::Direct
        | CallRole::Planner
        | CallRole::Worker
        | CallRole::Judge
        | CallRole::Synthesis
        | CallRole::Repair
        | CallRole::Signal => true,
        CallRole::Attempt | CallRole::Verifier | CallRole::Rater | CallRole::Panel | CallRole::Vectors => {
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chorus_spec::Spec;
    use std::sync::Arc;

    fn spec(reliability: &str, backends: usize) -> Spec {
        let backends: Vec<String> = (0..backends).map(|n| format!("{{ endpoint: 'h:{}' }}", n + 1)).collect();
        let text = format!(
            "version: v0.3\nproviders:\n  models:\n    - name: m\n      reliability: {{ {reliability} }}\n      backend_refs: [{}]\n    - {{ name: spare, backend_refs: [{{ endpoint: 'h:9' }}] }}\n",
            backends.join(", ")
        );
        let checked = chorus_spec::read(&text);
        checked.spec.unwrap_or_else(|| panic!("{:?}", checked.diagnostics))
    }

    fn line(spec: &Spec) -> Arc<Line> {
        Arc::new(Line::new(&spec.models[&ModelId::new("m")], Instant::now()))
    }

    fn course(spec: &Spec) -> Course {
        Course::new(ModelId::new("m"), spec.models[&ModelId::new("m")].reliability.fallback.clone())
    }

    fn status(status: u16) -> Missed {
        UpstreamFault::Status { status, body: None, retry_after: None }.into()
    }

    fn asked_to_wait(seconds: u64) -> Missed {
        let retry_after = Some(Duration::from_secs(seconds));
        UpstreamFault::Status { status: 429, body: None, retry_after }.into()
    }

    /// The steps that follow while every attempt at the first backend that may be called fails like this.
    fn steps(spec: &Spec, missed: &Missed) -> Vec<(String, Vec<usize>, u128)> {
        let (line, mut course, mut steps) = (line(spec), course(spec), Vec::new());
        for _ in 0..10 {
            let tried = line.choose(&course.step().avoid, 0, Instant::now()).ok();
            if !course.go_on(&line, tried, missed, Instant::now(), 1.0) {
                return steps;
            }
            let step = course.step();
            steps.push((step.model.to_string(), step.avoid.clone(), step.after.as_millis()));
        }
        panic!("no end: {steps:?}");
    }

    #[test]
    fn undeclared_a_failure_goes_to_another_backend_and_never_twice_to_one() {
        assert_eq!(steps(&spec("", 1), &status(503)), []);
        let other = steps(&spec("", 2), &status(503));
        assert_eq!((other.len(), other[0].2), (1, 0));
    }

    #[test]
    fn declared_the_same_backend_is_called_again_after_a_growing_pause() {
        let spec = spec("retry_count: 3, retry_on: 5xx", 1);
        let pauses: Vec<u128> = steps(&spec, &status(503)).into_iter().map(|step| step.2).collect();
        assert_eq!(pauses, [100, 200, 400]);
        assert_eq!(steps(&spec, &status(429)), [], "the list is law");
    }

    #[test]
    fn a_backend_s_wish_is_kept_within_bounds() {
        let spec = spec("retry_count: 1, retry_on: rate-limited", 1);
        assert_eq!(steps(&spec, &asked_to_wait(2))[0].2, 2100);
        assert_eq!(steps(&spec, &asked_to_wait(60)), []);
    }

    #[test]
    fn c03_the_fallback_is_that_of_the_model_that_failed() {
        let spec = spec("fallback: [spare]", 1);
        let (line, mut course) = (line(&spec), course(&spec));
        assert!(course.go_on(&line, Some(0), &status(503), Instant::now(), 0.5));
        assert_eq!(course.step().model.as_str(), "spare");
        assert_eq!(course.step().cause.as_deref(), Some("fallback from m: upstream_status 503"));
    }

    #[test]
    fn c04_the_list_of_statuses_is_law_for_fallbacks() {
        let both = spec("fallback: [spare], fallback_on: [401, 429]", 1);
        assert_eq!(steps(&both, &status(401)).len(), 1);
        let one = spec("fallback: [spare], fallback_on: [429]", 1);
        assert_eq!(steps(&one, &status(401)), []);
        assert_eq!(steps(&spec("fallback: [spare]", 1), &status(400)), [], "a bad request is bad everywhere");
    }

    #[test]
    fn our_own_faults_are_not_tried_elsewhere() {
        let spec = spec("retry_count: 3, retry_on: any, fallback: [spare]", 2);
        let public = "spent".to_owned();
        let own = chorus_collab::CallFault { kind: chorus_collab::FaultKind::Budget, public, status: None };
        assert_eq!(steps(&spec, &own.into()), []);
    }

    #[test]
    fn retries_stop_when_the_budget_is_spent() {
        let spec = spec("retry_count: 5, retry_on: 5xx, retry_budget_percent: 0", 1);
        assert_eq!(steps(&spec, &status(503)), []);
    }
}
