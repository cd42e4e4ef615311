//! The strategies that are compared beside the learned cascades, and what they learn from the training half.

use super::prices::Prices;
use super::record::{self, ALTERNATIVES, Row};
use super::score;
use super::score::StrategyRow;
use crate::fault::LabFault;
use chorus_collab::poll::{PollPlan, PollPlanFault, PollPolicy, VoteWeights};
use std::collections::BTreeMap;
use std::path::Path;

/// The plain rule: if these two agree, they answer; else the arbiter does.
const AGREEING: [&str; 2] = ["gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct"];
const ARBITER: &str = "gemini-1.5-pro-002";

/// A strategy with its name.
pub(super) type Strategy = (String, PollPolicy);

/// What the training half taught.
pub(super) struct Learned {
    pub(super) best_fixed: String,
    /// All models, and the share of questions that each one answers rightly.
    pub(super) strengths: Vec<(String, f64)>,
}

impl Learned {
    /// # Errors
    /// When the record is empty.
    pub(super) fn from(training: &[&Row], prices: &Prices) -> Result<Self, LabFault> {
        let mut strengths = Vec::new();
        for model in record::models(training) {
            let alone = score::run(&fixed(&model)?, training, prices)?;
            let right = alone.iter().filter(|scored| scored.right).count();
            strengths.push((model, right as f64 / training.len().max(1) as f64));
        }
        let best = strengths.iter().max_by(|one, other| one.1.total_cmp(&other.1));
        let best_fixed =
            best.map(|(model, _)| model.clone()).ok_or_else(|| unusable(&"no model answered"))?;
        Ok(Self { best_fixed, strengths })
    }

    /// The best fixed model and the plain rule.
    pub(super) fn plain(&self) -> Result<Vec<Strategy>, LabFault> {
        let rule = PollPlan::agreement(&AGREEING, ARBITER, ALTERNATIVES);
        Ok(vec![
            (format!("best fixed: {}", self.best_fixed), fixed(&self.best_fixed)?),
            ("flash and 70B agree, else pro".to_owned(), policy(rule)?),
        ])
    }

    /// Votes of all models at once.
    pub(super) fn votes(&self) -> Result<Vec<Strategy>, LabFault> {
        let models: Vec<&str> = self.strengths.iter().map(|(model, _)| &**model).collect();
        let equal = VoteWeights::even(models.iter().map(|model| (*model, 1.0)));
        let rated =
            VoteWeights::even(self.strengths.iter().map(|(model, right)| (&**model, log_odds(*right))));
        let count = models.len();
        Ok(vec![
            (format!("majority vote of {count}"), policy(PollPlan::vote(&models, equal, ALTERNATIVES))?),
            (
                format!("rating-weighted vote of {count}"),
                policy(PollPlan::vote(&models, rated, ALTERNATIVES))?,
            ),
        ])
    }

    /// Every strategy beside the first one, over those questions.
    pub(super) fn compare(
        &self,
        strategies: &[Strategy],
        rows: &[&Row],
        prices: &Prices,
    ) -> Result<Vec<StrategyRow>, LabFault> {
        let alone = score::run(&fixed(&self.best_fixed)?, rows, prices)?;
        let row =
            |(name, policy): &Strategy| Ok(score::row(name, &score::run(policy, rows, prices)?, &alone));
        strategies.iter().map(row).collect()
    }
}

/// One model alone.
fn fixed(model: &str) -> Result<PollPolicy, LabFault> {
    policy(PollPlan::vote(&[model], VoteWeights::even([(model, 1.0)]), ALTERNATIVES))
}

/// One plan for every topic.
fn policy(plan: Result<PollPlan, PollPlanFault>) -> Result<PollPolicy, LabFault> {
    let plan = plan.map_err(|fault| unusable(&fault))?;
    let otherwise = plan.steps().to_vec();
    Ok(PollPolicy { alternatives: ALTERNATIVES, topics: BTreeMap::new(), otherwise })
}

/// The log-odds of a voter against a uniform choice among the other answers.
pub(super) fn log_odds(right: f64) -> f64 {
    let right = right.clamp(0.001, 0.999);
    (right * (ALTERNATIVES - 1) as f64 / (1.0 - right)).ln()
}

pub(super) fn unusable(problem: &dyn std::fmt::Display) -> LabFault {
    LabFault::content(Path::new("outcomes/mmlu_pro.jsonl.gz"), 1, problem)
}
