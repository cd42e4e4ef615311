//! The life of one request, as DESIGN.md §4 lists it: identify, extract, decide, constrain, execute, record.
//!
//! It runs in a task of its own. Each stage takes what it needs and returns a plain value; what is learned on the way
//! goes into the [`Draft`] of the run record, which is written whatever way the request ends.
//!
//! **Invariant:** dropping the [`Run`](crate::Run) drops every call of the request, and its record says so.

use crate::account::Ended;
use crate::adviser::Adviser;
use crate::budget::Budget;
use crate::calls::{self, LiveCalls};
use crate::choosing;
use crate::constrain::refuse_oversize;
use crate::deliver::{Delivery, Origin, left};
use crate::fault::{Code, Fault};
use crate::form::{self, Holding};
use crate::ground;
use crate::guard::Guard;
use crate::ledger::Ledger;
use crate::loopers::{self, Shown, Site, Worked};
use crate::mom::Mom;
use crate::plan::{self, Work, WorkKind};
use crate::quota::{Asker, Held};
use crate::record::{Draft, Ending};
use crate::route::{Choice, Routed, route};
use crate::run::{Inbound, Part, Path, Progress, RouteHead, Shared};
use crate::served::{Asked, Depth};
use chorus_collab::{Answer, Call, CallRole, ModelCalls};
use chorus_signals::Caller;
use chorus_spec::{BudgetSettings, ModelId};
use chorus_wire::ChatRequest;
use futures_util::FutureExt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// What a request has come to before anybody is called.
pub(crate) struct Decided {
    pub(crate) routed: Arc<Routed>,
    pub(crate) work: Work,
    /// What the client is told of it.
    pub(crate) head: RouteHead,
}

/// One request, and where its parts go.
pub struct Life {
    pub(crate) mom: Arc<Mom>,
    pub(crate) id: String,
    /// Since 1970.
    pub(crate) created: Duration,
    pub(crate) caller: u64,
    pub(crate) started: Instant,
    pub(crate) parts: mpsc::Sender<Part>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) ledger: Ledger,
    /// What the caller's limits hold for it.
    pub(crate) held: OnceLock<Held>,
    /// What looks at everything that leaves, where the operating point's contract has one.
    pub(crate) guard: Option<Arc<Guard>>,
}

impl Life {
    /// Lives it to its end, and returns what is to be recorded.
    pub async fn live(self, inbound: Inbound) -> chorus_store::RunRecord {
        let mut draft = Draft::new(&self.id, &self.mom.spec, &inbound.request, self.created);
        let ended = tokio::select! {
            biased;
            ended = AssertUnwindSafe(self.stages(inbound, &mut draft)).catch_unwind() => {
                ended.unwrap_or_else(|_| Err(panicked()))
            }
            () = self.parts.closed() => Err(left()),
        };
        let ending = match ended {
            Ok(()) => Ending::Answered,
            Err(_) if self.parts.is_closed() => {
                self.shared.cut.get().map_or(Ending::Cancelled, |why| Ending::Failed(*why))
            }
            Err(fault) => {
                let code = fault.code;
                let _ = self.parts.send(Part::Fault(fault)).await;
                Ending::Failed(code)
            }
        };
        let elapsed = self.started.elapsed();
        // The door takes the last part first: what is recorded is no longer the client's time.
        tokio::task::yield_now().await;
        self.recorded(draft, ending, elapsed)
    }

    /// The record, once all has been settled.
    pub(crate) fn recorded(
        &self,
        draft: Draft,
        ending: Ending,
        elapsed: Duration,
    ) -> chorus_store::RunRecord {
        self.mom.selection.board.settle(&self.ledger.attempts());
        let record = draft.finish(ending, &self.mom, &self.ledger, elapsed);
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
        self.within_limits(caller.as_deref(), &request)?;
        if let Some(guard) = &self.guard {
            guard.admit(&request).await?;
        }
        let adviser = Some(self.adviser(&request, &budget));
        let asked = Asked { request: Arc::clone(&request), caller, adviser, session };
        let mut routed = route(&self.mom, &asked, Depth::Lazy).await?;
        choosing::see(&self.mom, &mut routed, &asked).await;
        let routed = Arc::new(routed);
        draft.routed(Arc::clone(&routed));
        let work = plan::plan(&self.mom, &routed, &request)?;
        draft.removed(&work.removed);
        draft.selected(work.selection.as_deref());
        let head = route_head(&self.mom, &request, &routed, &work);
        Ok(Decided { routed, work, head })
    }

    async fn stages(&self, inbound: Inbound, draft: &mut Draft) -> Result<(), Fault> {
        let Inbound { progress, budget, forwards, .. } = inbound;
        let Decided { routed, work, head } = self.decided(inbound, draft).await?;
        let _ = self.shared.route.set(head);
        if forwards && let Some(ended) = self.forward(&routed, &work, &budget).await {
            return ended;
        }
        match &work.kind {
            WorkKind::Fast(message) => self.delivery().fast(&work.request, message).await,
            WorkKind::One(model) => {
                let calls = self.calls(&work, &budget, None);
                let ended = self.one(model.clone(), &work, &calls, draft).await;
                if ended.is_ok() {
                    choosing::answered(&self.mom, &routed, model.as_str());
                }
                if budget != BudgetSettings::default() {
                    draft.budget(Arc::clone(&calls.budget), Ended::of(&calls.budget));
                }
                ended
            }
            WorkKind::Looper(plan) => {
                let progress = progress.then(|| self.parts.clone());
                let calls = self.calls(&work, &budget, progress.clone());
                let decision = routed.won(&self.mom).unwrap_or_default();
                let site = Site { run: &self.id, decision: &decision };
                let ask = form::held(work.form.as_ref(), &work.request);
                let worked = loopers::run(plan, &ask, &calls, site, progress, draft).await?;
                self.hand_over(worked, &work, &calls, draft).await
            }
        }
    }

    /// Asks the limits on callers, where there are any.
    fn within_limits(&self, caller: Option<&Caller>, request: &ChatRequest) -> Result<(), Fault> {
        if self.mom.quotas.is_empty() {
            return Ok(());
        }
        let asker = Asker::of(&self.mom.spec, caller, request.model());
        let held = self.mom.quotas.admit(asker, calls::prompt_tokens(request), Instant::now());
        let _ = self.held.set(held.inspect_err(|_| self.mom.meters.refused("caller"))?);
        Ok(())
    }

    /// One model.
    async fn one(
        &self,
        model: ModelId,
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let ask = form::held(work.form.as_ref(), &work.request);
        let streams = ask.stream();
        let call = Call { model: model.to_string(), role: CallRole::Direct, ask, timeout: None };
        let answer = if streams {
            Answer::Live(calls.stream(call).await?)
        } else {
            Answer::Finished(Box::new(calls.complete(call).await?))
        };
        let (answer, formed) = self.formed(answer, &[], work, calls, draft).await?;
        let answer = self.contracted(answer, work, calls, draft).await?;
        // What a repair took is the client's to see: then the usage is the sum of both.
        let origin = formed.map_or(Origin::Model, |formed| Origin::Looper(vec![formed], None));
        self.delivery().deliver(answer, &work.request, origin, draft).await
    }

    /// A looper's answer, in the form that it must have.
    async fn hand_over(
        &self,
        worked: Worked<'_>,
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let Worked { answer, shown, candidates, after } = worked;
        let (answer, formed) = self.formed(answer, &candidates, work, calls, draft).await?;
        let answer = self.contracted(answer, work, calls, draft).await?;
        let shown = shown.into_iter().chain(formed).collect();
        self.delivery().deliver(answer, &work.request, Origin::Looper(shown, after), draft).await
    }

    /// The answer as the contract of the operating point lets it leave.
    async fn contracted(
        &self,
        answer: Answer,
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<Answer, Fault> {
        let point = self.mom.artifact.point(work.request.model());
        let answer = match point.filter(|point| point.demands(ground::GROUNDED)) {
            Some(_) => ground::hold(answer, &work.request, calls, draft).await?,
            None => answer,
        };
        match &self.guard {
            Some(guard) => guard.restored(answer).await,
            None => Ok(answer),
        }
    }

    /// The answer in its form, and what the client may see of what was done for it.
    async fn formed(
        &self,
        answer: Answer,
        candidates: &[String],
        work: &Work,
        calls: &LiveCalls,
        draft: &mut Draft,
    ) -> Result<(Answer, Option<Shown>), Fault> {
        let Some(form) = &work.form else { return Ok((answer, None)) };
        let holding = Holding { form, ask: &work.request, calls, candidates };
        let (answer, trace) = holding.hold(answer, draft).await?;
        let shown = serde_json::to_value(trace).ok().map(|trace| (loopers::FORM_FIELD, trace));
        Ok((answer, shown))
    }

    fn calls(&self, work: &Work, own: &BudgetSettings, progress: Option<mpsc::Sender<Part>>) -> LiveCalls {
        let limits = self
            .mom
            .limits
            .lowered_by(&self.mom.artifact.budget(work.request.model()))
            .lowered_by(&work.budget)
            .lowered_by(own);
        LiveCalls {
            mom: Arc::clone(&self.mom),
            budget: Arc::new(Budget::new(limits, self.started)),
            ledger: self.ledger.clone(),
            headers: work.headers.clone(),
            candidates: work.candidates.clone(),
            caller: self.caller,
            on_member: progress.map(loopers::member_teller),
            output_contract: work.output_contract.clone(),
            best: Mutex::default(),
            guard: self.guard.clone(),
        }
    }

    /// Who asks models before the route is known: what the operator and the request allow holds, no decision's budget yet.
    fn adviser(&self, request: &ChatRequest, own: &BudgetSettings) -> Adviser {
        let limits = self.mom.limits.lowered_by(&self.mom.artifact.budget(request.model())).lowered_by(own);
        Adviser::new(Arc::new(LiveCalls {
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
        }))
    }

    /// The way to the door.
    fn delivery(&self) -> Delivery<'_> {
        Delivery {
            parts: &self.parts,
            id: &self.id,
            created: self.created,
            started: self.started,
            ledger: &self.ledger,
        }
    }
}

/// What the client is told of the route.
fn route_head(mom: &Mom, request: &ChatRequest, routed: &Routed, work: &Work) -> RouteHead {
    let decision = routed.decision(mom);
    let won = routed.decided.as_ref().and_then(|d| d.verdict.winner.as_ref());
    RouteHead {
        requested_model: request.model().to_owned(),
        recipe: routed.recipe_name(mom),
        decision: routed.won(mom),
        confidence: won.filter(|w| decision.is_some_and(|d| d.name == w.name)).map(|w| w.confidence),
        algorithm: routed.algorithm(mom).to_owned(),
        path: path(&routed.choice, work),
        reason: routed.reason.clone(),
        warnings: routed.warnings.clone(),
        reasoning: plan::reasons(work),
        retention: decision.and_then(|d| d.emits.first().copied()),
        verdict: routed.decided.as_ref().map(|d| Arc::clone(&d.verdict)),
        selection: work.selection.clone(),
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
        Self::Progress(progress)
    }
}
