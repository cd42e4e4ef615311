//! Model calls of one live request: the [`ModelCalls`] that loopers are given.
//!
//! Every attempt asks the budget, is entered in the ledger before it starts, and is dropped when nobody waits for it. An
//! attempt that fails before it gave anything may be followed by another, as the model's `reliability` says.
//!
//! **Invariant:** nothing is tried again once a part of the answer has been handed on (case A15).

mod persist;
mod vectors;

use crate::backends::{BackendCall, Missed, Until};
use crate::budget::{Admitted, Budget, Rates};
use crate::constrain;
use crate::guard::Guard;
use crate::ledger::{AttemptEnd, Entry, Ledger, Opening};
use crate::mom::Mom;
use crate::placed::placed;
use crate::plugins::system_prompt;
use crate::tailor::{self, OutputRule};
use crate::tape::deck::Attempted;
use crate::trace_context::RunTrace;
use chorus_collab::{
    Answer, Call, CallFault, CallRole, Chunks, Enough, FaultKind, GatherRule, Gathered, Live, Member,
    ModelCalls, Reply,
};
use chorus_spec::{Model, ModelId, ModelRef};
use chorus_wire::{ChatRequest, Chunk, Usage};
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, Stream, StreamExt, ready};
use persist::Turn;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// Told when a panel member is done; its seat, its name, why it failed, and how long it took.
pub type OnMember = Box<dyn Fn(usize, &str, Option<&CallFault>, Duration) + Send + Sync>;

/// Model calls of one request.
pub struct LiveCalls {
    /// The served model.
    pub mom: Arc<Mom>,
    /// What may be spent.
    pub budget: Arc<Budget>,
    /// What was.
    pub ledger: Ledger,
    /// Headers for every call.
    pub headers: Vec<(String, String)>,
    /// How candidates are to be called.
    pub candidates: Vec<ModelRef>,
    /// Whose calls these are.
    pub caller: u64,
    /// Who watches the panel.
    pub on_member: Option<OnMember>,
    /// What the visible answer's author is told about its form (`output_contract`).
    pub output_contract: Option<OutputRule>,
    /// The latest usable answer to the client's question.
    pub best: Mutex<Option<Reply>>,
    /// What looks at everything that leaves, where the operating point's contract has one.
    pub(crate) guard: Option<Arc<Guard>>,
    /// What backends are told of the trace that each attempt is a part of.
    pub(crate) trace: Option<RunTrace>,
}

/// A call that the budget has consented to, ready to leave.
struct Prepared {
    request: ChatRequest,
    entry: Entry,
    started: Instant,
    time: Duration,
    prompt_tokens: u64,
}

impl LiveCalls {
    fn prepare(&self, call: &Call, stream: bool, turn: &Turn<'_>) -> Result<Prepared, CallFault> {
        let model = turn.model;
        // A looper's later stages have not been through the constraints (case G05).
        let images = call.ask.messages().iter().any(|m| m.images > 0);
        if images && !constrain::takes_images(&self.mom.spec, model) {
            return Err(fault(
                FaultKind::Ineligible,
                format!("the model `{}` does not take images", model.id),
            ));
        }
        let mut request = self.request_for(model, call, stream);
        if let Some(guard) = &self.guard {
            guard.redact(&mut request)?;
        }
        let prompt_tokens = prompt_tokens(&request);
        let cap = request.max_output_tokens();
        let opening = Opening {
            role: call.role,
            model: model.id.as_str(),
            backend: turn.picked.name(),
            cause: turn.cause.as_deref(),
            prompt_tokens,
            cap,
            rates: Rates { pricing: model.pricing, energy: model.energy },
        };
        let started = Instant::now();
        let Admitted { entry, time, cap: granted } = self.admitted(opening, started)?;
        if let Some(granted) = granted.filter(|_| granted != cap) {
            cap_output(&mut request, granted);
        }
        let time = turn.left.map_or(time, |left| left.min(time));
        Ok(Prepared { request, entry, started, time, prompt_tokens })
    }

    /// The budget's consent to an attempt.
    fn admitted(&self, opening: Opening<'_>, now: Instant) -> Result<Admitted, CallFault> {
        let admitted = self.budget.admit(&self.ledger, opening, now);
        admitted.map_err(|spent| fault(FaultKind::Budget, spent.to_string()))
    }

    fn request_for(&self, model: &Model, call: &Call, stream: bool) -> ChatRequest {
        let mut request = call.ask.clone();
        if let Some(rule) = self.output_contract.as_ref().filter(|rule| rule.authors.contains(&call.role)) {
            system_prompt::append(&rule.text, &mut request);
        }
        tailor::for_model(&self.mom, model, &self.candidates, &mut request);
        if call.role != CallRole::Direct {
            request.set_stream(stream, true);
        }
        request
    }

    /// The latest usable answer to the client's question, where there is one.
    #[must_use]
    pub fn best_so_far(&self) -> Option<Answer> {
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        best.take().map(|reply| Answer::Finished(Box::new(reply)))
    }

    fn keep_best(&self, role: CallRole, reply: &Reply) {
        if matches!(role, CallRole::Attempt | CallRole::Panel | CallRole::Worker | CallRole::Synthesis) {
            *self.best.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply.clone());
        }
    }

    /// The same calls under the operator's limits alone, for the model that answers once a declared budget is spent.
    #[must_use]
    pub fn outside_the_budget(&self) -> Self {
        Self {
            mom: Arc::clone(&self.mom),
            budget: Arc::new(Budget::new(self.mom.limits, self.budget.started())),
            ledger: self.ledger.clone(),
            headers: self.headers.clone(),
            candidates: self.candidates.clone(),
            caller: self.caller,
            on_member: None,
            output_contract: self.output_contract.clone(),
            best: Mutex::default(),
            guard: self.guard.clone(),
            trace: self.trace.clone(),
        }
    }

    /// The headers of an attempt.
    fn headers_of(&self, entry: &Entry) -> Cow<'_, [(String, String)]> {
        match &self.trace {
            Some(trace) => Cow::Owned(trace.headers(entry.number(), &self.headers)),
            None => Cow::Borrowed(&self.headers),
        }
    }

    fn model(&self, name: &str) -> Result<&Model, CallFault> {
        self.mom.spec.models.get(&ModelId::new(name)).ok_or_else(|| no_backend(name))
    }

    async fn completed(&self, call: Call) -> Result<Reply, CallFault> {
        let reply =
            self.persist(&call, Until::Whole, |turn| placed(|| self.complete_once(&call, turn))).await?;
        // What the client alone reads is not looked at here: no model acts on it.
        let is_last = matches!(call.role, CallRole::Direct | CallRole::Synthesis | CallRole::Repair);
        if let Some(guard) = self.guard.as_ref().filter(|_| !is_last) {
            guard.clear(&reply).await?;
        }
        self.keep_best(call.role, &reply);
        Ok(reply)
    }

    async fn streamed(&self, call: Call) -> Result<Live, CallFault> {
        self.persist(&call, Until::Begun, |turn| placed(|| self.stream_once(&call, turn))).await
    }

    async fn complete_once(&self, call: &Call, turn: Turn<'_>) -> Result<Reply, Missed> {
        let Prepared { request, entry, started, time, prompt_tokens: tokens } =
            self.prepare(call, false, &turn)?;
        let (headers, caller) = (&*self.headers_of(&entry), self.caller);
        let ask = BackendCall { request: &request, headers, total: time, tokens, caller };
        // Pinned here: what is handed on by value has its room twice.
        let in_time = pin!(tokio::time::timeout(time, self.mom.backends.complete(&turn.picked, ask)));
        let in_time = in_time.map(|given| given.unwrap_or_else(|_| Err(too_late(time).into())));
        let reply = match self.ledger.deck() {
            Some(deck) => deck.complete(attempted(&turn, &request), in_time).await,
            None => in_time.await,
        };
        let elapsed = started.elapsed();
        let reply = reply.inspect_err(|missed| entry.fail(&missed.fault, elapsed))?;
        turn.line.took(Until::Whole, elapsed);
        entry.output(&reply.content, elapsed);
        if !reply.is_usable() && call.role != CallRole::Direct {
            let empty = fault(FaultKind::Empty, "the model answered with nothing".to_owned());
            entry.close(AttemptEnd::Failed(empty.kind, empty.public.clone()), reply.usage, elapsed);
            return Err(empty.into());
        }
        entry.close(AttemptEnd::Answered, reply.usage, elapsed);
        Ok(Reply { model: turn.model.id.as_str().to_owned(), usage: entry.usage(), reply })
    }

    async fn stream_once(&self, call: &Call, turn: Turn<'_>) -> Result<Live, Missed> {
        let Prepared { request, entry, started, time, prompt_tokens: tokens } =
            self.prepare(call, true, &turn)?;
        let (headers, caller) = (&*self.headers_of(&entry), self.caller);
        let ask = BackendCall { request: &request, headers, total: time, tokens, caller };
        let begun = pin!(self.mom.backends.stream(&turn.picked, ask));
        let chunks = match self.ledger.deck() {
            Some(deck) => deck.stream(attempted(&turn, &request), begun).await,
            None => begun.await,
        };
        let chunks = chunks.inspect_err(|missed| entry.fail(&missed.fault, started.elapsed()))?;
        turn.line.took(Until::Begun, started.elapsed());
        Ok(Live { model: turn.model.id.as_str().to_owned(), chunks: counted(chunks, entry, started) })
    }

    async fn seat(&self, seat: usize, call: Call) -> Member {
        let (model, started) = (call.model.clone(), Instant::now());
        let outcome = self.completed(call).await;
        if let Some(told) = &self.on_member {
            told(seat, &model, outcome.as_ref().err(), started.elapsed());
        }
        Member { seat, model, outcome }
    }

    async fn gathered(&self, calls: Vec<Call>, rule: GatherRule, enough: &Enough) -> Gathered {
        let seats: Vec<String> = calls.iter().map(|call| call.model.clone()).collect();
        let mut waiting: VecDeque<(usize, Call)> = calls.into_iter().enumerate().collect();
        let mut running = FuturesUnordered::new();
        let mut members: Vec<Member> = Vec::with_capacity(seats.len());
        let began = Instant::now();
        let mut usable = 0;
        while usable < rule.quorum && !enough(&members) {
            while running.len() < rule.max_concurrent.max(1) {
                let left = rule.timeout.map(|limit| limit.saturating_sub(began.elapsed()));
                let Some((seat, mut call)) = waiting.pop_front().filter(|_| left != Some(Duration::ZERO))
                else {
                    break;
                };
                // Each call keeps the round's time itself, so that its row in the ledger says that it ran out.
                call.timeout = call.timeout.into_iter().chain(left).min();
                running.push(self.seat(seat, call));
            }
            let Some(member) = running.next().await else { break };
            usable += usize::from(member.outcome.is_ok());
            members.push(member);
        }
        drop(running);
        let in_time = usable >= rule.quorum || enough(&members);
        let late = if in_time { FaultKind::Cancelled } else { FaultKind::Timeout };
        for (seat, model) in seats.into_iter().enumerate() {
            if !members.iter().any(|m| m.seat == seat) {
                members.push(Member { seat, model, outcome: Err(nobody_waited(late)) });
            }
        }
        members.sort_by_key(|m| m.seat);
        Gathered { members }
    }
}

impl ModelCalls for LiveCalls {
    fn complete(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallFault>> {
        placed(|| self.completed(call))
    }

    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>> {
        placed(|| self.streamed(call))
    }

    fn gather_until<'a>(
        &'a self,
        calls: Vec<Call>,
        rule: GatherRule,
        enough: &'a Enough,
    ) -> BoxFuture<'a, Gathered> {
        self.gathered(calls, rule, enough).boxed()
    }

    fn context_window(&self, model: &str) -> Option<u64> {
        self.model(model).ok()?.card.context_window_size.map(u64::from)
    }
}

/// An attempt as it is recorded.
fn attempted<'a>(turn: &'a Turn<'_>, request: &'a ChatRequest) -> Attempted<'a> {
    Attempted { model: turn.model.id.as_str(), backend: turn.picked.name(), request }
}

/// The chunks, entered in the ledger as they pass.
fn counted(chunks: Chunks, entry: Entry, started: Instant) -> Chunks {
    Counted { chunks: Some(chunks), entry, usage: None, started }.boxed()
}

/// Chunks that are counted as they pass.
struct Counted {
    /// `None` once they have come to their end.
    chunks: Option<Chunks>,
    entry: Entry,
    usage: Option<Usage>,
    started: Instant,
}

impl Stream for Counted {
    type Item = Result<Chunk, CallFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(chunks) = &mut self.chunks else { return Poll::Ready(None) };
        let item = ready!(chunks.as_mut().poll_next(cx));
        match &item {
            Some(Ok(chunk)) => {
                self.usage = chunk.usage.or(self.usage);
                if chunk.has_output() {
                    self.entry.output(&text_of(chunk), self.started.elapsed());
                }
            }
            Some(Err(fault)) => {
                let end = AttemptEnd::Failed(fault.kind, fault.public.clone());
                self.entry.close(end, self.usage, self.started.elapsed());
                self.chunks = None;
            }
            None => {
                self.entry.close(AttemptEnd::Answered, self.usage, self.started.elapsed());
                self.chunks = None;
            }
        }
        Poll::Ready(item)
    }
}

/// What a prompt takes, estimated: its text, and four tokens a message for what frames it.
pub(crate) fn prompt_tokens(request: &ChatRequest) -> u64 {
    request.messages().iter().map(|m| chorus_wire::tokens::of_message(m) + 4).sum()
}

/// Lowers what a request may write, under the name that the client used.
pub(crate) fn cap_output(request: &mut ChatRequest, most: u64) {
    let old_name = request.body().get("max_tokens").is_some();
    if old_name {
        request.set("max_tokens", &most);
    }
    if !old_name || request.body().get("max_completion_tokens").is_some() {
        request.set("max_completion_tokens", &most);
    }
}

/// All that a chunk says, in one text; the usual chunk says one thing.
fn text_of(chunk: &Chunk) -> Cow<'_, str> {
    let mut said = chunk.choices.iter().flat_map(|choice| {
        let texts = choice.content.as_deref().into_iter().chain(choice.reasoning.as_deref());
        texts.chain(choice.tool_calls.iter().map(|call| call.arguments.as_str()))
    });
    let first = said.next().unwrap_or_default();
    said.fold(Cow::Borrowed(first), |all, more| all + more)
}

fn fault(kind: FaultKind, public: String) -> CallFault {
    CallFault { kind, public, status: None }
}

fn too_late(time: Duration) -> CallFault {
    fault(FaultKind::Timeout, format!("the model did not answer within {} s", time.as_secs_f32()))
}

fn no_backend(model: &str) -> CallFault {
    fault(FaultKind::Ineligible, format!("the model `{model}` has no backend"))
}

fn nobody_waited(kind: FaultKind) -> CallFault {
    let public = match kind {
        FaultKind::Timeout => "the panel's time ran out",
        _ => "enough answers were there before this one",
    };
    fault(kind, public.to_owned())
}
