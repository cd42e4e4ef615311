//! Verdicts on past runs: taken where the run is known, kept, and counted for later choices.
//!
//! **Invariant:** a verdict on a model names a model that the run called; what it is counted under is the run's own
//! decision, never the sender's word.

use crate::engine::Engine;
use crate::fault::{Code, Fault};
use chorus_store::{Outcome, OutcomeTarget, RunRecord, Told};
use std::time::{SystemTime, UNIX_EPOCH};

impl Engine {
    /// Takes a verdict on a run, under its sender's key. What is told again is not counted again.
    ///
    /// # Errors
    /// There is no such run, it called no such model, the key is another verdict's, or nothing can be kept.
    pub async fn tell(&self, key: String, mut outcome: Outcome) -> Result<Told, Fault> {
        let (Some(records), Some(verdicts)) = (self.records(), self.verdicts()) else {
            return Err(Fault::new(Code::NotSupported, "run records are not kept here"));
        };
        let store = |why: &dyn std::fmt::Display, is_shared: bool| {
            tracing::error!(%why, "an outcome could not be kept");
            let code = if is_shared { Code::StoreUnavailable } else { Code::Internal };
            Fault::new(code, "the outcome could not be kept; see the log")
        };
        let run = records.get(&outcome.run).await;
        let run = run.map_err(|why| store(&why, why.is_of_a_shared_place()))?;
        let text = format!("there is no run {}", outcome.run);
        let run = run.ok_or_else(|| Fault::new(Code::InvalidRequest, text).at("replay_id"))?;
        outcome.decision = run.decision.as_deref().map(str::to_owned);
        if outcome.target == OutcomeTarget::Model {
            outcome.target_ref = Some(model_of(&run, outcome.target_ref.take())?);
        }
        outcome.told_at_ms = now_ms();
        let told = verdicts.keep(key, outcome).await;
        let told = told.map_err(|why| store(&why, why.is_of_a_shared_place()))?;
        if told == Told::Other {
            let text =
                "another outcome was told under this Idempotency-Key, or of this run: it is judged once";
            return Err(Fault::new(Code::InvalidRequest, text).at("Idempotency-Key"));
        }
        Ok(told)
    }
}

/// The model that a verdict is about: the named one, or the only one of the run.
fn model_of(run: &RunRecord, named: Option<String>) -> Result<String, Fault> {
    let fault = |text: String| Fault::new(Code::InvalidRequest, text).at("target_ref");
    match (named, run.models.as_slice()) {
        (Some(name), models) if models.iter().any(|model| *model == name) => Ok(name),
        (Some(name), _) => Err(fault(format!("the run did not call the model `{name}`"))),
        (None, [only]) => Ok(only.to_string()),
        (None, models) => Err(fault(format!("the run called {} models: name one", models.len()))),
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
