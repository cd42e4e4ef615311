//! The life of one request, as DESIGN.md §4 lists it: identify, extract, decide, constrain, execute, record.
//!
//! It runs in a task of its own. Each stage takes what it needs and returns a plain value; what is learned on the way
//! goes into the [`Draft`] of the run record, which is written whatever way the request ends.
//!
//! **Invariant:** dropping the [`Run`](crate::Run) drops every call of the request, and its record says so.

use crate::account::Ended;
use crate::budget::Budget;
use crate::calls::LiveCalls;
use crate::constrain::refuse_oversize;
use crate::fault::{Code, Fault};
use crate::ledger::Ledger;
use crate::loopers::{self, Shown, Site, TRACE_FIELDS, Worked};
use crate::mom::Mom;
use crate::plan::{self, Work, WorkKind};
use crate::record::{Draft, Ending};
use crate::route::{Choice, Routed, route};
use crate::run::{AnswerHead, Inbound, Part, Path, Progress, RouteHead, Shared};
use crate::served::{Asked, Depth};
use chorus_collab::{Answer, Call, CallRole, Live, ModelCalls};
use chorus_spec::{BudgetSettings, ModelId};
use chorus_wire::{ChatReply, ChatRequest, Chunk, StreamIdentity, StreamRepair};
use futures_util::{FutureExt, StreamExt};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

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
        draft.finish(ending, &self.mom, &self.ledger, elapsed)
    }

    async fn stages(&self, inbound: Inbound, draft: &mut Draft) -> Result<(), Fault> {
        let Inbound { request, progress, budget, caller } = inbound;
        let request = Arc::new(request);
        refuse_oversize(&self.mom.spec, &request)?;
        let routed =
            Arc::new(route(&self.mom, &Asked { request: Arc::clone(&request), caller }, Depth::Lazy).await?);
        draft.routed(Arc::clone(&routed));
        let work = plan::plan(&self.mom, &routed, &request)?;
        draft.removed(&work.removed);
        let _ = self.shared.route.set(self.route_head(&request, &routed, &work));
        match &work.kind {
            WorkKind::Fast(message) => self.fast(&work.request, message).await,
            WorkKind::One(model) => {
                let calls = self.calls(&work, &budget, None);
                let ended = self.one(model.clone(), &work, &calls).await;
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
                let Worked { answer, shown } =
                    loopers::run(plan, &work.request, &calls, site, progress, draft).await?;
                self.deliver(answer, &work.request, Origin::Looper(shown)).await
            }
        }
    }

    /// `fast_response`: no model, the same shapes.
    async fn fast(&self, request: &ChatRequest, message: &str) -> Result<(), Fault> {
        if request.stream() {
            self.send(Part::Begin(Box::default())).await?;
            let mut repair = self.repair(request);
            for chunk in [Chunk::role(), Chunk::content(message), Chunk::finish("stop")] {
                self.send_repaired(&mut repair, chunk).await?;
            }
            return self.send(Part::End(Box::new(self.answer_head("")))).await;
        }
        let reply = ChatReply::text(&self.completion_id(), request.model(), self.created.as_secs(), message);
        self.send(Part::Reply(Box::new(self.answer_head("")), Box::new(reply))).await
    }

    /// One model.
    async fn one(&self, model: ModelId, work: &Work, calls: &LiveCalls) -> Result<(), Fault> {
        let ask = work.request.clone();
        let call = Call { model: model.to_string(), role: CallRole::Direct, ask, timeout: None };
        let answer = if work.request.stream() {
            Answer::Live(calls.stream(call).await?)
        } else {
            Answer::Finished(Box::new(calls.complete(call).await?))
        };
        self.deliver(answer, &work.request, Origin::Model).await
    }

    fn calls(&self, work: &Work, own: &BudgetSettings, progress: Option<mpsc::Sender<Part>>) -> LiveCalls {
        let limits = self.mom.limits.lowered_by(&work.budget).lowered_by(own);
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
        }
    }

    /// Hands the answer to the door: whole, or chunk by chunk as it is produced.
    async fn deliver(&self, answer: Answer, request: &ChatRequest, origin: Origin) -> Result<(), Fault> {
        match (answer, request.stream()) {
            (Answer::Live(live), _) => self.deliver_live(live, request, origin).await,
            (Answer::Finished(reply), true) => {
                let live = loopers::as_live(*reply);
                self.deliver_live(live, request, origin).await
            }
            (Answer::Finished(reply), false) => {
                let mut body = reply.reply;
                body.normalise();
                TRACE_FIELDS.iter().for_each(|field| body.remove(field));
                body.set("model", &request.model());
                if let Origin::Looper(shown) = origin {
                    body.set("id", &self.completion_id());
                    body.set("usage", &self.ledger.total().0);
                    if let Some((field, trace)) = shown {
                        body.set(field, &trace);
                    }
                }
                self.send(Part::Reply(Box::new(self.answer_head(&reply.model)), Box::new(body))).await
            }
        }
    }

    async fn deliver_live(&self, live: Live, request: &ChatRequest, origin: Origin) -> Result<(), Fault> {
        let Live { model, mut chunks } = live;
        let mut repair = self.repair(request);
        let alone = matches!(origin, Origin::Model);
        self.send(Part::Begin(Box::new(self.answer_head(&model)))).await?;
        if let Origin::Looper(Some((field, trace))) = origin {
            // The trace rides on the opening chunk, before any text. Source: contract §2.5.
            let mut opening = repair.push(Chunk::role()).unwrap_or_else(Chunk::role);
            opening.set(field, &trace);
            self.send(Part::Chunk(opening)).await?;
        }
        while let Some(chunk) = chunks.next().await {
            self.send_repaired(&mut repair, chunk?).await?;
        }
        for chunk in repair.finish() {
            self.send(Part::Chunk(chunk)).await?;
        }
        if request.include_usage() {
            let own = || {
                let mut chunk = Chunk::usage(self.ledger.total().0);
                repair.identity().stamp(&mut chunk);
                chunk
            };
            let chunk = repair.usage_chunk().filter(|_| alone).unwrap_or_else(own);
            self.send(Part::Chunk(chunk)).await?;
        }
        self.send(Part::End(Box::new(self.answer_head(&model)))).await
    }

    async fn send_repaired(&self, repair: &mut StreamRepair, chunk: Chunk) -> Result<(), Fault> {
        match repair.push(chunk) {
            Some(chunk) => self.send(Part::Chunk(chunk)).await,
            None => Ok(()),
        }
    }

    /// Nobody takes the part: the client has left, and the task is about to be told.
    async fn send(&self, part: Part) -> Result<(), Fault> {
        self.parts.send(part).await.map_err(|_| left())
    }

    fn repair(&self, request: &ChatRequest) -> StreamRepair {
        let identity = StreamIdentity {
            id: self.completion_id(),
            model: request.model().to_owned(),
            created: self.created.as_secs(),
        };
        StreamRepair::new(identity).with_stripped(TRACE_FIELDS)
    }

    fn completion_id(&self) -> String {
        format!("chatcmpl-{}", self.id.trim_start_matches("run_"))
    }

    fn answer_head(&self, selected: &str) -> AnswerHead {
        let attempts = self.ledger.attempts();
        let mut models_used: Vec<String> = Vec::new();
        for attempt in &attempts {
            if !models_used.contains(&attempt.model) {
                models_used.push(attempt.model.clone());
            }
        }
        AnswerHead {
            selected_model: selected.to_owned(),
            models_used,
            calls: attempts.len(),
            latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.ledger.total().0,
        }
    }

    fn route_head(&self, request: &ChatRequest, routed: &Routed, work: &Work) -> RouteHead {
        let decision = routed.decision(&self.mom);
        let won = routed.decided.as_ref().and_then(|d| d.verdict.winner.as_ref());
        RouteHead {
            requested_model: request.model().to_owned(),
            recipe: routed.recipe_name(&self.mom),
            decision: routed.won(&self.mom),
            confidence: won.filter(|w| decision.is_some_and(|d| d.name == w.name)).map(|w| w.confidence),
            algorithm: routed.algorithm(&self.mom).to_owned(),
            path: path(&routed.choice, work),
            reason: routed.reason.clone(),
            warnings: routed.warnings.clone(),
            reasoning: plan::reasons(work),
            retention: decision.and_then(|d| d.emits.first().copied()),
            verdict: routed.decided.as_ref().map(|d| Arc::clone(&d.verdict)),
        }
    }
}

/// Whose answer it is: usage, identity and trace of a looper's are its own.
enum Origin {
    Model,
    Looper(Option<Shown>),
}

/// Ends the stages; nobody is there to be told.
fn left() -> Fault {
    Fault::new(Code::Internal, "the client has left")
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
