//! Verdicts on past runs, counted by decision and model, shared by all configurations of a process.
//!
//! It knows no store and no request. **Invariant:** a verdict is counted once, and only one on a model counts.

use chorus_select::adaptation::Verdicts;
use chorus_store::{Outcome, OutcomeTarget, OutcomeVerdict};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Most pairs of a decision and a model that are remembered; names of a configuration are few.
const PAIRS_MOST: usize = 4_096;

/// The verdicts of a process.
#[derive(Debug, Default)]
pub(crate) struct Experience(Mutex<BTreeMap<(String, String), Verdicts>>);

impl Experience {
    /// Counts a verdict on a model.
    pub(crate) fn count(&self, outcome: &Outcome) {
        let (OutcomeTarget::Model, Some(decision), Some(model)) =
            (outcome.target, &outcome.decision, &outcome.target_ref)
        else {
            return;
        };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (decision.clone(), model.clone());
        if all.len() >= PAIRS_MOST && !all.contains_key(&key) {
            return;
        }
        let verdicts = all.entry(key).or_default();
        let count = match outcome.verdict {
            OutcomeVerdict::GoodFit => &mut verdicts.good_fit,
            OutcomeVerdict::Underpowered => &mut verdicts.underpowered,
            OutcomeVerdict::Overprovisioned => &mut verdicts.overprovisioned,
            OutcomeVerdict::Failed => &mut verdicts.failed,
        };
        *count += 1;
    }

    /// The verdicts on these models, over some decisions together.
    pub(crate) fn of<'a>(&self, decisions: &[&str], models: impl Iterator<Item = &'a str>) -> Vec<Verdicts> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let on = |decision: &str, model: &str| {
            all.get(&(decision.to_owned(), model.to_owned())).copied().unwrap_or_default()
        };
        models.map(|model| decisions.iter().map(|it| on(it, model)).sum()).collect()
    }
}
