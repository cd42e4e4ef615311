//! The strategies that are compared, and what they learn from the training half.

use super::prices::Prices;
use super::record::{self, ALTERNATIVES, Row};
use super::score::StrategyRow;
use super::{fit, score, tune};
use crate::fault::LabFault;
use chorus_collab::poll::{PollPlan, PollPlanFault, PollPolicy, PollStep, VoteWeights};
use std::collections::BTreeMap;
use std::path::Path;

/// The plain rule: if these two agree, they answer; else the arbiter does.
const AGREEING: [&str; 2] = ["gemini-1.5-flash-002", "Meta-Llama-3_1-70B-Instruct"];
const ARBITER: &str = "gemini-1.5-pro-002";

/// Cascades that are tried on the training half: cheap models of different houses first, the arbiter last.
const SHAPES: [Shape; 4] = [
    [&AGREEING, &["DeepSeek-Coder-V2"], &[ARBITER]],
    [&AGREEING, &["Meta-Llama-3-70B"], &[ARBITER]],
    [&AGREEING, &["Mixtral-8x7B-Instruct-v0.1"], &[ARBITER]],
    [&["gemini-1.5-flash-002"], &["Meta-Llama-3_1-70B-Instruct"], &[ARBITER]],
];

type Shape = [&'static [&'static str]; 3];

/// A cascade and what votes weigh after each of its steps.
struct Cascade {
    shape: Shape,
    weights: Vec<fit::Fitted>,
}

/// A strategy with its name.
pub(super) type Strategy = (String, PollPolicy);

/// What the training half taught.
pub(super) struct Learned {
    pub(super) best_fixed: String,
    /// All models, and the share of questions that each one answers rightly.
    strengths: Vec<(String, f64)>,
    cascades: Vec<Cascade>,
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
        let cascades = SHAPES.into_iter().map(|shape| Cascade::fitted(shape, training)).collect();
        Ok(Self { best_fixed, strengths, cascades })
    }

    /// The best fixed model and the plain rule.
    pub(super) fn plain(&self) -> Result<Vec<Strategy>, LabFault> {
        let rule = PollPlan::agreement(&AGREEING, ARBITER, ALTERNATIVES);
        Ok(vec![
            (format!("best fixed: {}", self.best_fixed), fixed(&self.best_fixed)?),
            ("flash and 70B agree, else pro".to_owned(), policy(rule)?),
        ])
    }

    /// Votes of all models at once, and of those of the cascade.
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
            ("learned vote of the first cascade's".to_owned(), self.vote_of_a_cascade()?),
        ])
    }

    /// All models of the first cascade at once, with the weights of its last step.
    fn vote_of_a_cascade(&self) -> Result<PollPolicy, LabFault> {
        let cascade = self.cascades.first().ok_or_else(|| unusable(&"there is no cascade"))?;
        let models: Vec<String> =
            cascade.shape.iter().flat_map(|step| step.iter().map(ToString::to_string)).collect();
        let mut at_once = cascade.policy(&[0.0; 3]);
        for steps in at_once.topics.values_mut().chain([&mut at_once.otherwise]) {
            let last = steps.pop();
            steps.clear();
            steps.extend(last.map(|last| PollStep { models: models.clone(), ..last }));
        }
        Ok(at_once)
    }

    /// The learned cascade that is right most often on the training half, and costs there at most that share of the
    /// best fixed model.
    pub(super) fn cascade(
        &self,
        training: &[&Row],
        prices: &Prices,
        cap: f64,
    ) -> Result<PollPolicy, LabFault> {
        let cap = cap * prices.of(&self.best_fixed);
        let tuned = self.cascades.iter().map(|cascade| cascade.tuned(training, prices, cap));
        let tuned = tuned.collect::<Result<Vec<_>, LabFault>>()?;
        let best = tuned.into_iter().max_by_key(|(right, _)| *right);
        best.map(|(_, policy)| policy).ok_or_else(|| unusable(&"there is no cascade"))
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

impl Cascade {
    fn fitted(shape: Shape, training: &[&Row]) -> Self {
        let asked =
            |steps| shape.iter().take(steps).flat_map(|step| step.iter().copied()).collect::<Vec<_>>();
        let weights = (1..=shape.len()).map(|steps| fit::weights(&asked(steps), training)).collect();
        Self { shape, weights }
    }

    /// With the best thresholds below that cost, and how often it is then right.
    fn tuned(&self, training: &[&Row], prices: &Prices, cap: f64) -> Result<(usize, PollPolicy), LabFault> {
        // Nothing reaches the threshold of 1 but an answer without any doubt: every step is taken and seen.
        let scored = score::run(&self.policy(&[1.0; 3]), training, prices)?;
        let step_prices: Vec<f64> =
            self.shape.iter().map(|step| step.iter().map(|model| prices.of(model)).sum()).collect();
        let paths: Vec<tune::Path> = scored
            .iter()
            .zip(training)
            .map(|(scored, row)| tune::path(scored, &step_prices, |letter| row.is_right(letter)))
            .collect();
        let ([first, second], right) = tune::thresholds(&paths, cap);
        Ok((right, self.policy(&[first, second, 0.0])))
    }

    fn policy(&self, accept: &[f64; 3]) -> PollPolicy {
        let topics = self.weights.first().into_iter().flat_map(|fitted| fitted.topics.keys());
        PollPolicy {
            alternatives: ALTERNATIVES,
            topics: topics.map(|topic| (topic.clone(), self.steps(accept, Some(topic)))).collect(),
            otherwise: self.steps(accept, None),
        }
    }

    fn steps(&self, accept: &[f64; 3], topic: Option<&str>) -> Vec<PollStep> {
        let steps = self.shape.iter().zip(&self.weights).zip(accept);
        steps
            .map(|((models, fitted), accept)| PollStep {
                models: models.iter().map(|model| (*model).to_owned()).collect(),
                weights: fitted.of(topic).clone(),
                accept: *accept,
                hopeless: None,
            })
            .collect()
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
fn log_odds(right: f64) -> f64 {
    let right = right.clamp(0.001, 0.999);
    (right * (ALTERNATIVES - 1) as f64 / (1.0 - right)).ln()
}

fn unusable(problem: &dyn std::fmt::Display) -> LabFault {
    LabFault::content(Path::new("outcomes/mmlu_pro.jsonl.gz"), 1, problem)
}
