//! A Fusion panel between two turns: what it said waits for the results of the tools that the answer calls, and the next
//! turn goes on with it (case G25). And what can be told of a Fusion only once its answer is whole.
//!
//! It knows the store of waiting runs, not what is in it. **Invariant:** a store that fails costs a panel's calls, never
//! an answer.

use super::Shown;
use crate::record::Draft;
use chorus_collab::WorkflowStates;
use chorus_collab::fusion::{FusionPlan, FusionTrace, KeptPanel, answered_calls, panel_key};
use chorus_wire::ChatRequest;
use serde_json::json;
use std::sync::Arc;

/// One turn of a question under a Fusion.
#[derive(Clone)]
pub(super) struct Turn<'a> {
    pub(super) plan: &'a FusionPlan,
    pub(super) ask: &'a ChatRequest,
    pub(super) decision: String,
    pub(super) states: Arc<dyn WorkflowStates>,
}

impl Turn<'_> {
    /// What the panel said in the turn whose tool results this one brings; `None` where it is to be asked.
    pub(super) async fn take_up(&self) -> Option<KeptPanel> {
        let calls = answered_calls(self.ask);
        let key = panel_key(self.plan, &self.decision, self.ask, &calls)?;
        match self.states.take(&key).await {
            Ok(text) => KeptPanel::read(&text?),
            Err(fault) => {
                tracing::warn!(%fault, "what a panel said could not be looked up; it is asked again");
                None
            }
        }
    }

    /// Keeps what the panel said for the turn that brings the results of those calls.
    pub(super) async fn keep(&self, trace: &FusionTrace, calls: &[String]) {
        let Some(key) = panel_key(self.plan, &self.decision, self.ask, calls) else { return };
        let Some(text) = KeptPanel::of(trace).and_then(|kept| kept.to_text()) else { return };
        if let Err(fault) = self.states.put(&key, text).await {
            tracing::warn!(%fault, "what a panel said could not be kept; it will be asked again");
        }
    }
}

/// What is left to do once a streamed Fusion's answer is whole.
pub(crate) struct After<'a> {
    pub(super) turn: Turn<'a>,
    pub(super) trace: FusionTrace,
}

impl After<'_> {
    /// Keeps the panel for the calls that the answer made, writes into the record what the answer did about the panel's
    /// disagreements, and returns what the client may see of that.
    pub(crate) async fn end(&mut self, answer: &str, calls: &[String], draft: &mut Draft) -> Option<Shown> {
        self.turn.keep(&self.trace, calls).await;
        self.trace.resolve(answer);
        draft.looped("fusion", serde_json::to_value(self.trace.bare()).ok(), Vec::new());
        let resolution = self.trace.resolution.as_ref().filter(|_| self.turn.plan.include_analysis)?;
        Some(("fusion", json!({ "resolution": resolution })))
    }
}
