//! What a poll does: its steps, the weights of its voters, and when it ends. Learned elsewhere; this is its checked form.
//!
//! **Invariant:** a plan has a step, every step has voters, thresholds lie in 0..=1, and weights are finite.

use super::ballot::{Count, VoteWeights};
use crate::candidate::Candidate;
use chorus_spec::{OnError, PollSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// The weight of a voter whose word is final in [`PollPlan::agreement`]: more than any number of unit votes in use.
const FINAL_WORD: f64 = 100.0;

/// The likelihood from which on an answer is taken where a step names none.
const DEFAULT_ACCEPT: f64 = 0.9;

/// Why a poll ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PollStopped {
    /// An answer was likely enough.
    Accepted,
    /// The leading answer was so unlikely that others would fail too.
    Hopeless,
    /// Nobody was left to ask.
    LastStep,
    /// The budget refused a call.
    BudgetSpent,
}

/// One step: who is asked, at once, and when nobody is asked after them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollStep {
    /// The models that are asked in it.
    pub models: Vec<String>,
    /// The weights of all who were asked up to here: one that is sure of itself alone may weigh less beside others.
    pub weights: VoteWeights,
    /// The leading answer is taken from this likelihood on, in 0..=1.
    pub accept: f64,
    /// Below this likelihood nobody else is asked, because others fail on such questions too, in 0..=1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hopeless: Option<f64>,
}

impl PollStep {
    /// Why the poll ends after this step, if it does.
    pub(super) fn stops(&self, count: Option<&Count>, last: bool, spent: bool) -> Option<PollStopped> {
        let share = count.map(|count| count.share);
        match share {
            Some(share) if share >= self.accept => Some(PollStopped::Accepted),
            _ if spent => Some(PollStopped::BudgetSpent),
            _ if last => Some(PollStopped::LastStep),
            Some(share) if self.hopeless.is_some_and(|below| share < below) => Some(PollStopped::Hopeless),
            _ => None,
        }
    }
}

/// A checked plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PollPlan {
    steps: Vec<PollStep>,
    alternatives: usize,
    /// How long each call may take.
    pub step_timeout: Option<Duration>,
    /// What a failing voter does.
    pub on_error: OnError,
}

/// Why steps make no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PollPlanFault {
    /// No step, or a step that asks nobody.
    #[error("a poll needs at least one step, and each step at least one model")]
    NobodyAsked,
    /// Not a likelihood.
    #[error("the threshold {0} of a poll's step is not from 0 to 1")]
    Threshold(f64),
    /// Not a weight.
    #[error("a vote of `{0}` weighs no finite number")]
    Weight(String),
}

impl PollPlan {
    /// The plan of `settings` for those candidates; a voter that is not among them is left out, with its weights.
    ///
    /// # Errors
    /// [`PollPlanFault`].
    pub fn from_settings(settings: &PollSettings, candidates: &[Candidate]) -> Result<Self, PollPlanFault> {
        let is_there = |model: &str| candidates.iter().any(|candidate| candidate.model == model);
        let mut asked: Vec<String> = Vec::new();
        let mut steps = Vec::new();
        for written in &settings.steps {
            let models: Vec<String> =
                written.models.iter().map(ToString::to_string).filter(|model| is_there(model)).collect();
            if models.is_empty() {
                continue;
            }
            asked.extend(models.iter().cloned());
            let mut weights = VoteWeights::even(asked.iter().map(|model| (model.as_str(), 1.0)));
            for (model, own) in written.weights.iter().filter(|(model, _)| is_there(model.as_str())) {
                weights.set(model.as_str(), *own);
            }
            let accept = written.accept.unwrap_or(DEFAULT_ACCEPT);
            steps.push(PollStep { models, weights, accept, hopeless: written.hopeless });
        }
        if settings.steps.is_empty() {
            let names: Vec<&str> = candidates.iter().map(|candidate| &*candidate.model).collect();
            steps.extend(Self::vote(&names, VoteWeights::even(names.iter().map(|n| (*n, 1.0))), 2)?.steps);
        }
        let plan = Self::new(steps, settings.alternatives)?;
        Ok(Self { step_timeout: settings.step_timeout, on_error: settings.on_error, ..plan })
    }

    /// The plan of those steps, for questions with about that many possible answers (at least 2).
    ///
    /// # Errors
    /// [`PollPlanFault`].
    pub fn new(steps: Vec<PollStep>, alternatives: usize) -> Result<Self, PollPlanFault> {
        if steps.is_empty() || steps.iter().any(|step| step.models.is_empty()) {
            return Err(PollPlanFault::NobodyAsked);
        }
        for step in &steps {
            let thresholds = [Some(step.accept), step.hopeless];
            if let Some(out) = thresholds.into_iter().flatten().find(|t| !(0.0..=1.0).contains(t)) {
                return Err(PollPlanFault::Threshold(out));
            }
            let odd = step.weights.0.iter().find(|(_, weights)| weights.iter().any(|w| !w.is_finite()));
            if let Some((model, _)) = odd {
                return Err(PollPlanFault::Weight(model.clone()));
            }
        }
        let alternatives = alternatives.max(2);
        Ok(Self { steps, alternatives, step_timeout: None, on_error: OnError::Skip })
    }

    /// All of them at once, each vote with its weight.
    ///
    /// # Errors
    /// [`PollPlanFault`].
    pub fn vote(models: &[&str], weights: VoteWeights, alternatives: usize) -> Result<Self, PollPlanFault> {
        let models = models.iter().map(|model| (*model).to_owned()).collect();
        Self::new(vec![PollStep { models, weights, accept: 0.0, hopeless: None }], alternatives)
    }

    /// All of `first` must agree; else `arbiter` answers alone.
    ///
    /// # Errors
    /// [`PollPlanFault`].
    pub fn agreement(first: &[&str], arbiter: &str, alternatives: usize) -> Result<Self, PollPlanFault> {
        let unit = first.iter().map(|model| (*model, 1.0));
        let agreed = (first.len() as f64).exp();
        let unanimous = agreed / (agreed + alternatives.max(2).saturating_sub(1) as f64);
        let steps = vec![
            PollStep {
                models: first.iter().map(|model| (*model).to_owned()).collect(),
                weights: VoteWeights::even(unit.clone()),
                accept: unanimous - 1e-9,
                hopeless: None,
            },
            PollStep {
                models: vec![arbiter.to_owned()],
                weights: VoteWeights::even(unit.chain([(arbiter, FINAL_WORD)])),
                accept: 0.0,
                hopeless: None,
            },
        ];
        Self::new(steps, alternatives)
    }

    /// The steps, in order.
    #[must_use]
    pub fn steps(&self) -> &[PollStep] {
        &self.steps
    }

    pub(super) fn alternatives(&self) -> usize {
        self.alternatives
    }
}

/// Learned polls, one a topic; an asset of a bundle.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PollPolicy {
    /// Possible answers of a question, about.
    pub alternatives: usize,
    /// Steps by topic.
    pub topics: BTreeMap<String, Vec<PollStep>>,
    /// Steps of any other topic.
    pub otherwise: Vec<PollStep>,
}

impl PollPolicy {
    /// The plan of a topic.
    ///
    /// # Errors
    /// [`PollPlanFault`].
    pub fn plan(&self, topic: Option<&str>) -> Result<PollPlan, PollPlanFault> {
        let steps = topic.and_then(|topic| self.topics.get(topic)).unwrap_or(&self.otherwise);
        PollPlan::new(steps.clone(), self.alternatives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_that_cannot_run_are_refused() {
        let step = |models: &[&str], accept| PollStep {
            models: models.iter().map(|m| (*m).to_owned()).collect(),
            weights: VoteWeights::even([("a", 1.0)]),
            accept,
            hopeless: None,
        };
        let mut odd = step(&["a"], 0.5);
        odd.weights.set("a", [0.0, f64::NAN, 0.0]);
        for (steps, want) in [
            (vec![], PollPlanFault::NobodyAsked),
            (vec![step(&[], 0.5)], PollPlanFault::NobodyAsked),
            (vec![step(&["a"], 1.5)], PollPlanFault::Threshold(1.5)),
            (vec![odd], PollPlanFault::Weight("a".to_owned())),
        ] {
            assert_eq!(PollPlan::new(steps, 4), Err(want));
        }
        assert!(PollPlan::new(vec![step(&["a"], 0.5)], 4).is_ok());
    }

    #[test]
    fn a_policy_reads_as_it_was_written() {
        let plan = PollPlan::agreement(&["a", "b"], "c", 10).unwrap();
        let steps = plan.steps().to_vec();
        let topics = BTreeMap::from([("law".to_owned(), steps[1..].to_vec())]);
        let policy = PollPolicy { alternatives: 10, topics, otherwise: steps };
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<PollPolicy>(&json).unwrap(), policy);
        assert_eq!(policy.plan(Some("law")).unwrap().steps().len(), 1);
        assert_eq!(policy.plan(Some("cooking")), policy.plan(None));
    }
}
