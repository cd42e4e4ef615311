//! A request whose model somebody else calls: a gateway asks for the decision and forwards the request itself.
//!
//! Same code as a live request up to the plan, and the same budget for its one call. What a gateway cannot do is not
//! dispatched, and its asker has it lived here: loopers, given answers, models of this process or of another dialect, and
//! policy that needs the answer.
//!
//! **Invariant:** every dispatched request has a record, whatever becomes of it.

use crate::budget::{Budget, Rates};
use crate::choosing;
use crate::fault::Code;
use crate::ledger::{AttemptEnd, Entry, Opening};
use crate::life::{Decided, Life};
use crate::mom::Mom;
use crate::plan::{Work, WorkKind};
use crate::record::{Draft, Ending};
use crate::route::Routed;
use crate::run::{Inbound, RouteHead};
use crate::{calls, tailor};
use chorus_collab::{CallRole, FaultKind};
use chorus_spec::{Endpoint, Model, Plugin};
use chorus_store::{RunRecord, RunStore};
use chorus_wire::{ChatRequest, Usage};
use std::sync::Arc;
use tokio_util::task::TaskTracker;

/// The backend's name of a call that a gateway makes.
const GATEWAY: &str = "gateway";

/// A request on its way to its model. Dropping it says that nobody knows how it ended.
pub struct Dispatched {
    model: String,
    request: ChatRequest,
    headers: Vec<(String, String)>,
    route: RouteHead,
    /// Taken when the record is written.
    open: Option<Open>,
}

/// What its record is made of.
struct Open {
    life: Life,
    draft: Draft,
    entry: Entry,
    keeper: Keeper,
}

/// Where a record goes, in a task of its own that a stop waits for.
pub(crate) struct Keeper {
    pub(crate) records: Option<Arc<dyn RunStore>>,
    pub(crate) alive: TaskTracker,
}

impl Keeper {
    fn keep(self, record: RunRecord) {
        let Some(records) = self.records else { return };
        self.alive.spawn(async move {
            if let Err(fault) = records.append(record).await {
                tracing::error!(%fault, "a run record could not be kept");
            }
        });
    }
}

/// How the gateway's call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed {
    /// The HTTP status that the model answered with.
    pub status: u16,
    /// What the answer said that it took.
    pub usage: Option<Usage>,
}

impl Dispatched {
    /// The id of its run record.
    #[must_use]
    pub fn id(&self) -> &str {
        self.open.as_ref().map(|open| open.life.id.as_str()).unwrap_or_default()
    }

    /// The model, by its name in the configuration.
    #[must_use]
    pub fn model(&self) -> &str {
        &self.model
    }

    /// The request as the model is to get it.
    #[must_use]
    pub fn request(&self) -> &ChatRequest {
        &self.request
    }

    /// Headers that policy adds for the model.
    #[must_use]
    pub fn headers(&self) -> &[(String, String)] {
        &self.headers
    }

    /// What was decided.
    #[must_use]
    pub fn route(&self) -> &RouteHead {
        &self.route
    }

    /// The gateway's call is over.
    pub fn passed(mut self, passed: Passed) {
        let Passed { status, usage } = passed;
        if (200..300).contains(&status) {
            self.keep(AttemptEnd::Answered, usage, Ending::Answered);
        } else {
            let text = format!("the model answered with status {status}");
            self.keep(
                AttemptEnd::Failed(FaultKind::Status, text),
                usage,
                Ending::Failed(Code::UpstreamFailed),
            );
        }
    }

    fn keep(&mut self, end: AttemptEnd, usage: Option<Usage>, ending: Ending) {
        let Some(Open { life, draft, entry, keeper }) = self.open.take() else { return };
        let elapsed = life.started.elapsed();
        entry.close(end, usage, elapsed);
        keeper.keep(life.recorded(draft, ending, elapsed));
    }
}

impl Drop for Dispatched {
    fn drop(&mut self) {
        self.keep(AttemptEnd::Open, None, Ending::Cancelled);
    }
}

/// The request with its decision, where a gateway can do the rest; `None` where it has to be lived here, which is also
/// where its faults are told.
pub(crate) async fn dispatch(life: Life, inbound: Inbound, keeper: Keeper) -> Option<Dispatched> {
    // A contract of an operating point speaks of the answer too.
    if life.guard.is_some() || life.mom.artifact.point(inbound.request.model()).is_some() {
        return None;
    }
    let mom = Arc::clone(&life.mom);
    let mut draft = Draft::new(&life.id, &mom.spec, &inbound.request, life.created);
    let own = inbound.budget;
    let Decided { routed, mut work, head } = life.decided(inbound, &mut draft).await.ok()?;
    let model = forwardable(&mom, &routed, &work)?;
    let request = &mut work.request;
    let opening = Opening {
        role: CallRole::Direct,
        model: model.id.as_str(),
        backend: GATEWAY,
        cause: None,
        prompt_tokens: calls::prompt_tokens(request),
        cap: request.max_output_tokens(),
        rates: Rates { pricing: model.pricing, energy: model.energy },
    };
    let limits = mom.limits.lowered_by(&work.budget).lowered_by(&own);
    let admitted = Budget::new(limits, life.started).admit(&life.ledger, opening, life.started).ok()?;
    if let Some(cap) = admitted.cap.filter(|cap| opening.cap != Some(*cap)) {
        calls::cap_output(request, cap);
    }
    tailor::for_model(&mom, model, &work.candidates, request);
    // Whatever the gateway's call comes to, the conversation was sent there.
    choosing::answered(&mom, &routed, model.id.as_str());
    Some(Dispatched {
        model: model.id.to_string(),
        request: work.request,
        headers: work.headers,
        route: head,
        open: Some(Open { life, draft, entry: admitted.entry, keeper }),
    })
}

/// The model, if all that is left to do is to call it.
fn forwardable<'m>(mom: &'m Mom, routed: &Routed, work: &Work) -> Option<&'m Model> {
    let WorkKind::One(id) = &work.kind else { return None };
    let model = mom.spec.models.get(id)?;
    let remote = model.backends.iter().all(|backend| matches!(backend.endpoint, Endpoint::Http { .. }));
    let plugins = routed.decision(mom).map(|decision| decision.plugins.as_slice()).unwrap_or_default();
    let edits_only = plugins.iter().all(|plugin| {
        matches!(
            plugin,
            Plugin::SystemPrompt(_) | Plugin::HeaderMutation(_) | Plugin::RequestParams(_) | Plugin::Tools(_)
        )
    });
    (remote && edits_only && work.output_contract.is_none() && work.form.is_none()).then_some(model)
}
