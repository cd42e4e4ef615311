//! A request whose model somebody else calls: a gateway asks for the decision and forwards the request itself.
//!
//! It is lived like every other one up to the plan, under the same budget. What a gateway cannot do is not forwarded and
//! goes on here: loopers, given answers, models of this process or of another dialect, and policy that needs the answer.
//!
//! **Invariant:** a request is decided once, whoever calls its model, and has one record, whatever becomes of it.

use crate::budget::{Budget, Rates};
use crate::choosing;
use crate::deliver::left;
use crate::fault::{Code, Fault};
use crate::forward::{Forward, Passed};
use crate::ledger::{AttemptEnd, Entry, Opening};
use crate::life::Life;
use crate::plan::{Work, WorkKind};
use crate::route::Routed;
use crate::run::{Part, RouteHead, Run};
use crate::{calls, tailor};
use chorus_collab::{CallRole, FaultKind};
use chorus_spec::{BudgetSettings, Endpoint, Model, Plugin};
use chorus_wire::ChatRequest;
use std::time::Instant;
use tokio::sync::oneshot;

/// The backend's name of a call that a gateway makes.
const GATEWAY: &str = "gateway";

/// A request on its way to its model. Dropping it says that nobody knows how it ended.
#[derive(Debug)]
pub struct Dispatched {
    run: Run,
    forward: Forward,
}

impl Dispatched {
    /// The run that is to be forwarded so.
    #[must_use]
    pub fn new(run: Run, forward: Forward) -> Self {
        Self { run, forward }
    }

    /// The id of its run record.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.run.id
    }

    /// What the model is to get.
    #[must_use]
    pub fn forward(&self) -> &Forward {
        &self.forward
    }

    /// What was decided.
    #[must_use]
    pub fn route(&self) -> Option<&RouteHead> {
        self.run.route()
    }

    /// The gateway's call is over; returns when its record has been handed over.
    pub async fn passed(mut self, passed: Passed) {
        let _ = self.forward.passed.send(passed);
        while self.run.next().await.is_some() {}
    }
}

impl Life {
    /// Hands the one call to the requester, and waits for what came of it; `None` where the request goes on here.
    pub(crate) async fn forward(
        &self,
        routed: &Routed,
        work: &Work,
        own: &BudgetSettings,
    ) -> Option<Result<(), Fault>> {
        let model = self.forwardable(routed, work)?;
        let mut request = work.request.clone();
        let entry = self.entered(model, &mut request, work, own)?;
        tailor::for_model(&self.mom, model, &work.candidates, &mut request);
        // Whatever the gateway's call comes to, the conversation was sent there.
        choosing::answered(&self.mom, routed, model.id.as_str());
        let (passed, told) = oneshot::channel();
        let (model, headers, started) = (model.id.to_string(), work.headers.clone(), Instant::now());
        let part = Part::Forward(Box::new(Forward { model, request, headers, passed }));
        if self.parts.send(part).await.is_err() {
            return Some(Err(left()));
        }
        Some(match told.await {
            Ok(passed) => settled(&entry, passed, started),
            Err(_) => Err(left()),
        })
    }

    /// The call's place in the ledger, where the budget has room for it: where not, it is refused in the way of every call.
    fn entered(
        &self,
        model: &Model,
        request: &mut ChatRequest,
        work: &Work,
        own: &BudgetSettings,
    ) -> Option<Entry> {
        let opening = Opening {
            role: CallRole::Direct,
            model: model.id.as_str(),
            backend: GATEWAY,
            cause: None,
            prompt_tokens: calls::prompt_tokens(request),
            cap: request.max_output_tokens(),
            rates: Rates { pricing: model.pricing, energy: model.energy },
        };
        let limits = self.mom.limits.lowered_by(&work.budget).lowered_by(own);
        let admitted = Budget::new(limits, self.started).admit(&self.ledger, opening, self.started).ok()?;
        if let Some(cap) = admitted.cap.filter(|cap| opening.cap != Some(*cap)) {
            calls::cap_output(request, cap);
        }
        Some(admitted.entry)
    }

    /// The model, if all that is left to do is to call it.
    fn forwardable(&self, routed: &Routed, work: &Work) -> Option<&Model> {
        // A contract of an operating point speaks of the answer too.
        if self.guard.is_some() || self.mom.artifact.point(work.request.model()).is_some() {
            return None;
        }
        let WorkKind::One(id) = &work.kind else { return None };
        let model = self.mom.spec.models.get(id)?;
        let remote = model.backends.iter().all(|backend| matches!(backend.endpoint, Endpoint::Http { .. }));
        let plugins =
            routed.decision(&self.mom).map(|decision| decision.plugins.as_slice()).unwrap_or_default();
        let edits_only = plugins.iter().all(|plugin| {
            matches!(
                plugin,
                Plugin::SystemPrompt(_)
                    | Plugin::HeaderMutation(_)
                    | Plugin::RequestParams(_)
                    | Plugin::Tools(_)
            )
        });
        (remote && edits_only && work.output_contract.is_none() && work.form.is_none()).then_some(model)
    }
}

/// The call's end in the ledger, and the run's.
fn settled(entry: &Entry, passed: Passed, started: Instant) -> Result<(), Fault> {
    let Passed { status, usage } = passed;
    let ok = (200..300).contains(&status);
    let text = format!("the model answered with status {status}");
    let end = if ok { AttemptEnd::Answered } else { AttemptEnd::Failed(FaultKind::Status, text.clone()) };
    entry.close(end, usage, started.elapsed());
    if ok { Ok(()) } else { Err(Fault::new(Code::UpstreamFailed, text)) }
}
