//! The life of one request, as DESIGN.md §4 lists it: identify, extract, decide, constrain, execute, record.
//!
//! It runs where the door waits for its parts, and in a task of its own once the door has left. Each stage takes what it
//! needs and returns a plain value; what is learned on the way goes into the [`Draft`] of the run record, which is written
//! whatever way the request ends.
//!
//! **Invariant:** dropping the [`Run`](crate::Run) drops every call of the request, and its record says so.

use crate::adviser::Adviser;
use crate::budget::Budget;
use crate::calls::{self, LiveCalls};
use crate::choosing;
use crate::constrain::refuse_oversize;
use crate::deliver::{Delivery, left};
use crate::fault::{Code, Fault};
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::loopers;
use crate::mom::Mom;
use crate::parts::Sender;
use crate::plan::{self, Work, WorkKind};
use crate::plugins;
use crate::plugins::at_work::Scene;
use crate::plugins::crew::Left;
use crate::quota::{Asker, Held};
use crate::record::{Draft, Ending};
use crate::route::{Choice, Routed, route};
use crate::run::{Inbound, Part, Path, Progress, RouteHead, Shared};
use crate::served::{Asked, Depth};
use crate::trace_context::{RunTrace, Tracing};
use chorus_signals::Caller;
use chorus_spec::BudgetSettings;
use chorus_store::RunRecord;
use chorus_wire::ChatRequest;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// What a request has come to before anybody is called.
pub(crate) struct Decided {
    pub(crate) asked: Asked,
    pub(crate) routed: Arc<Routed>,
    pub(crate) work: Work,
    /// What the client is told of it.
    pub(crate) head: RouteHead,
}

/// Where a request stands when it is executed.
pub(crate) struct At<'a> {
    pub(crate) scene: &'a Scene,
    pub(crate) work: &'a Work,
    /// The request's own budget.
    pub(crate) own: &'a BudgetSettings,
    /// Who watches a looper.
    pub(crate) watched: Option<Sender<Part>>,
}

/// One request, and where its parts go.
pub struct Life {
    pub(crate) mom: Arc<Mom>,
    pub(crate) id: String,
    /// Since 1970.
    pub(crate) created: Duration,
    pub(crate) caller: u64,
    /// How its calls are traced.
    pub(crate) tracing: Option<Tracing>,
    pub(crate) started: Instant,
    pub(crate) parts: Sender<Part>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
    /// What the caller's limits hold for it.
    pub(crate) held: OnceLock<Held>,
    /// What looks at everything that leaves, where the operating point's contract has one.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl Life {
    /// Lives it to its end, and returns what is to be recorded.
    pub async fn live(self, inbound: Inbound) -> Box<RunRecord> {
        let mut draft = Draft::new(&self.id, &self.mom.spec, &inbound.request, self.created);
        let ended = {
            let stages = pin!(AssertUnwindSafe(self.stages(inbound, &mut draft)).catch_unwind());
            self.parts.while_heard(stages).await
        };
        let ended = match ended {
            Some(ended) => ended.unwrap_or_else(|_| Err(panicked())),
            None => Err(left()),
        };
        let elapsed = self.started.elapsed();
        let ending = match ended {
            Ok(answered) => {
                if let Some(answered) = answered {
                    seen_off(answered, &mut draft).await;
                }
                Ending::Answered
            }
            Err(_) if self.parts.is_closed() => {
                self.shared.cut.get().map_or(Ending::Cancelled, |why| Ending::Failed(*why))
            }
            Err(mut fault) => {
                let code = fault.code;
                fault.retry_after = fault.retry_after.or_else(|| self.ledger.asked_wait());
                let _ = self.parts.send(Part::Fault(Box::new(fault))).await;
                Ending::Failed(code)
            }
        };
        // The door has taken all parts: what is recorded is no longer the client's time.
        self.recorded(draft, ending, elapsed)
    }

    /// The record, once all has been settled.
    pub(crate) fn recorded(&self, draft: Draft, ending: Ending, elapsed: Duration) -> Box<RunRecord> {
        let attempts = self.ledger.attempts();
        self.mom.selection.board.settle(&attempts);
        let record = draft.finish(ending, &self.mom, attempts, elapsed);
        if let Some(held) = self.held.get() {
            held.settle(record.usage.total_tokens, record.cost_micro_usd);
        }
        record
    }

    /// Identify, extract, decide, constrain.
    pub(crate) async fn decided(&self, inbound: Inbound, draft: &mut Draft) -> Result<Decided, Fault> {
        let Inbound { request, budget, caller, lost, session, .. } = inbound;
        draft.lost(&lost);
        let request = Arc::new(request);
        self.mom.artifact.admit(request.model())?;
        refuse_oversize(&self.mom.spec, &request)?;
        self.within_limits(caller.as_deref(), &request).await?;
        if let Some(guard) = &self.guard {
            Box::pin(guard.admit(&request)).await?;
        }
        let adviser = self.mom.asks_models.then(|| self.adviser(&request, &budget));
        let asked = Asked { request: Arc::clone(&request), caller, adviser, session, dry: false };
        let mut routed = route(&self.mom, &asked, Depth::Lazy).await?;
        choosing::see(&self.mom, &mut routed, &asked).await;
        let routed = Arc::new(routed);
        draft.routed(Arc::clone(&routed));
        let work = plan::plan(&self.mom, &routed, &request)?;
        draft.removed(&work.removed);
        draft.selected(work.selection.as_deref());
        let head = route_head(&self.mom, &request, &routed, &work);
        Ok(Decided { asked, routed, work, head })
    }

    /// The whole of it; an answer that plugins want to see once it has left comes back with them. That is seldom, and has a
    /// box of its own, because what a future gives is room in it and in whoever waits for it.
    async fn stages(&self, mut inbound: Inbound, draft: &mut Draft) -> Result<Option<Box<Left>>, Fault> {
        let controls = std::mem::take(&mut inbound.controls);
        let Inbound { progress, budget, forwards, .. } = inbound;
        let Decided { asked, routed, mut work, mut head } = self.decided(inbound, draft).await?;
        let (model, watched) = match &work.kind {
            WorkKind::Looper(_) => (None, progress.then(|| self.parts.clone())),
            WorkKind::One(model) => (Some(model.clone()), None),
            WorkKind::Fast(_) => (None, None),
        };
        let calls = self.calls(&work, &budget, watched.clone());
        let (run, mom) = (self.id.clone(), Arc::clone(&self.mom));
        let mut crew = plugins::crew(routed.decision(&mom), &routed.turns(&mom));
        let scene = Scene { run, mom, asked, controls, routed, model, calls };
        let given = match &work.kind {
            WorkKind::Fast(_) => Ok(None),
            _ => crew.before(&scene, &mut work.request, &mut draft.notes).await,
        };
        let given = match given {
            Ok(None) => plan::judge_shortened(&scene.mom, &work).map(|()| None),
            given => given,
        };
        head.path = crew.given_by().map_or(head.path, Path::given_by);
        let _ = self.shared.route.set(head);
        if forwards && let Some(ended) = Box::pin(self.forward(&scene.routed, &work, &budget)).await {
            return ended.map(|()| None);
        }
        let at = At { scene: &scene, work: &work, own: &budget, watched };
        let reply = self.executed(given?, at, &mut crew, draft).await?;
        Ok(reply.map(|reply| Box::new(Left { crew, scene, request: work.request, reply })))
    }

    /// Asks the limits on callers, where there are any.
    pub(crate) async fn within_limits(
        &self,
        caller: Option<&Caller>,
        request: &ChatRequest,
    ) -> Result<(), Fault> {
        if self.mom.quotas.is_empty() {
            return Ok(());
        }
        let asker = Asker::of(&self.mom.spec, caller, request.model());
        let held = self.mom.quotas.admit(asker, calls::prompt_tokens(request), Instant::now());
        let held = Box::pin(held).await;
        let _ = self.held.set(held.inspect_err(|_| self.mom.meters.refused("caller"))?);
        Ok(())
    }

    fn calls(&self, work: &Work, own: &BudgetSettings, progress: Option<Sender<Part>>) -> LiveCalls {
        LiveCalls {
            headers: work.headers.clone(),
            candidates: work.candidates.clone(),
            on_member: progress.map(loopers::member_teller),
            output_contract: work.output_contract.clone(),
            ..self.calls_within(work.request.model(), &work.budget, own)
        }
    }

    /// Calls of no route, within what the operator, the operating point, this budget and the request's own allow.
    pub(crate) fn calls_within(
        &self,
        model: &str,
        budget: &BudgetSettings,
        own: &BudgetSettings,
    ) -> LiveCalls {
        let limits = self.mom.limits.lowered_by(&self.mom.artifact.budget(model));
        let limits = limits.lowered_by(budget).lowered_by(own);
        LiveCalls {
            mom: Arc::clone(&self.mom),
            budget: Arc::new(Budget::new(limits, self.started)),
            ledger: self.ledger.clone(),
            headers: Vec::new(),
            candidates: Vec::new(),
            caller: self.caller,
            on_member: None,
            output_contract: None,
            best: Mutex::default(),
            guard: self.guard.clone(),
            trace: self.tracing.as_ref().map(|tracing| RunTrace::of(tracing, &self.id)),
        }
    }

    /// Who asks models before the route is known: what the operator and the request allow holds, no decision's budget yet.
    fn adviser(&self, request: &ChatRequest, own: &BudgetSettings) -> Adviser {
        Adviser::new(Arc::new(self.calls_within(request.model(), &BudgetSettings::default(), own)))
    }

    /// The way to the door.
    pub(crate) fn delivery(&self, keeps: bool) -> Delivery<'_> {
        Delivery {
            parts: &self.parts,
            id: &self.id,
            created: self.created,
            started: self.started,
            ledger: &self.ledger,
            keeps,
        }
    }
}

/// What the client is told of the route.
fn route_head(mom: &Mom, request: &ChatRequest, routed: &Routed, work: &Work) -> RouteHead {
    let decision = routed.decision(mom);
    let won = routed.decided.as_ref().and_then(|d| d.verdict.winner.as_ref());
    RouteHead {
        requested_model: request.model().into(),
        recipe: routed.recipe_name(mom),
        decision: routed.won(mom),
        confidence: won.filter(|w| decision.is_some_and(|d| *d.name == *w.name)).map(|w| w.confidence),
        algorithm: routed.algorithm(mom).into(),
        path: path(&routed.choice, work),
        reason: routed.reason.clone(),
        warnings: routed.warnings.clone(),
        reasoning: plan::reasons(work),
        retention: decision.and_then(|d| d.emits.first().copied()),
        verdict: routed.decided.as_ref().map(|d| Arc::clone(&d.verdict)),
        selection: work.selection.clone(),
    }
}

/// Shows the answer to the plugins that want to see it; what goes wrong there is the log's, not the client's.
async fn seen_off(answered: Box<Left>, draft: &mut Draft) {
    let degraded = draft.is_degraded();
    if AssertUnwindSafe(Box::pin(answered.kept(degraded, &mut draft.notes))).catch_unwind().await.is_err() {
        tracing::error!("a plugin failed badly on an answer that has left");
    }
}

fn panicked() -> Fault {
    Fault::new(Code::Internal, "the request failed badly; see the log")
}

fn path(choice: &Choice, work: &Work) -> Path {
    match (&work.kind, choice) {
        (WorkKind::Fast(_), _) => Path::FastResponse,
        (WorkKind::Looper(_), _) => Path::Looper,
        (WorkKind::One(_), Choice::Direct(_)) => Path::Direct,
        (WorkKind::One(_), _) => Path::Selected,
    }
}

impl From<Progress> for Part {
    fn from(progress: Progress) -> Self {
        Self::Progress(Box::new(progress))
    }
}
