//! Model calls of one live request: the [`ModelCalls`] that loopers are given.
//!
//! Every call asks the budget, is entered in the ledger before it starts, and is dropped when nobody waits for it.

use crate::backends::{BackendCall, Picked};
use crate::budget::{Admitted, Budget, Rates};
use crate::constrain;
use crate::ledger::{AttemptEnd, Entry, Ledger, Opening};
use crate::mom::Mom;
use crate::plugins;
use crate::tailor::{self, OutputRule};
use chorus_collab::{
    Answer, Call, CallFault, CallRole, Chunks, Enough, FaultKind, GatherRule, Gathered, Live, Member,
    ModelCalls, Reply,
};
use chorus_spec::{Model, ModelId, ModelRef};
use chorus_wire::{ChatRequest, Chunk};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, FuturesUnordered};
use futures_util::{FutureExt, StreamExt};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
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
}

/// A call that the budget has consented to, ready to leave.
struct Prepared<'m> {
    picked: Picked<'m>,
    request: ChatRequest,
    entry: Entry,
    started: Instant,
    time: Duration,
}

impl LiveCalls {
    fn prepare(&self, call: &Call, stream: bool) -> Result<Prepared<'_>, CallFault> {
        let model = self.model(&call.model)?;
        // A looper's later stages have not been through the constraints (case G05).
        let images = call.ask.messages().iter().any(|m| m.images > 0);
        if images && !constrain::takes_images(&self.mom.spec, model) {
            return Err(fault(
                FaultKind::Ineligible,
                format!("the model `{}` does not take images", call.model),
            ));
        }
        let picked = self.mom.backends.pick(model).ok_or_else(|| no_backend(&call.model))?;
        let mut request = self.request_for(model, call, stream);
        let prompt_tokens =
            request.messages().iter().map(|m| chorus_wire::tokens::of_text(&m.text) + 4).sum();
        let cap = request.max_output_tokens();
        let opening = Opening {
            role: call.role,
            model: &call.model,
            backend: &picked.backend.name,
            prompt_tokens,
            cap,
            rates: Rates { pricing: model.pricing, energy: model.energy },
        };
        let started = Instant::now();
        let Admitted { entry, time, cap: granted } = self
            .budget
            .admit(&self.ledger, opening, started)
            .map_err(|spent| fault(FaultKind::Budget, spent.to_string()))?;
        if let Some(granted) = granted.filter(|_| granted != cap) {
            cap_output(&mut request, granted);
        }
        Ok(Prepared { picked, request, entry, started, time: call.timeout.map_or(time, |t| t.min(time)) })
    }

    fn request_for(&self, model: &Model, call: &Call, stream: bool) -> ChatRequest {
        let mut request = call.ask.clone();
        if let Some(rule) = self.output_contract.as_ref().filter(|rule| rule.authors.contains(&call.role)) {
            plugins::system_prompt::append(&rule.text, &mut request);
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
        }
    }

    fn model(&self, name: &str) -> Result<&Model, CallFault> {
        self.mom.spec.models.get(&ModelId::new(name)).ok_or_else(|| no_backend(name))
    }

    async fn completed(&self, call: Call) -> Result<Reply, CallFault> {
        let prepared = self.prepare(&call, false)?;
        let Prepared { picked, request, entry, started, time } = prepared;
        let ask = BackendCall { request: &request, headers: &self.headers, total: time, caller: self.caller };
        let reply = match tokio::time::timeout(time, self.mom.backends.complete(picked, ask)).await {
            Ok(reply) => reply,
            Err(_) => Err(fault(
                FaultKind::Timeout,
                format!("the model did not answer within {} s", time.as_secs_f32()),
            )),
        };
        let elapsed = started.elapsed();
        let reply = reply.inspect_err(|fault| entry.fail(fault, elapsed))?;
        entry.output(&reply.content, elapsed);
        if !reply.is_usable() && call.role != CallRole::Direct {
            let empty = fault(FaultKind::Empty, "the model answered with nothing".to_owned());
            entry.close(AttemptEnd::Failed(empty.kind, empty.public.clone()), reply.usage, elapsed);
            return Err(empty);
        }
        entry.close(AttemptEnd::Answered, reply.usage, elapsed);
        let reply = Reply { model: call.model, usage: entry.usage(), reply };
        self.keep_best(call.role, &reply);
        Ok(reply)
    }

    async fn streamed(&self, call: Call) -> Result<Live, CallFault> {
        let Prepared { picked, request, entry, started, time } = self.prepare(&call, true)?;
        let ask = BackendCall { request: &request, headers: &self.headers, total: time, caller: self.caller };
        let chunks = self.mom.backends.stream(picked, ask).await;
        let chunks = chunks.inspect_err(|fault| entry.fail(fault, started.elapsed()))?;
        Ok(Live { model: call.model, chunks: counted(chunks, entry, started) })
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
        self.completed(call).boxed()
    }

    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>> {
        self.streamed(call).boxed()
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

/// The chunks, entered in the ledger as they pass.
fn counted(chunks: Chunks, entry: Entry, started: Instant) -> Chunks {
    let state = (chunks, entry, None);
    stream::unfold(Some(state), move |state| async move {
        let (mut chunks, entry, mut usage) = state?;
        match chunks.next().await {
            Some(Ok(chunk)) => {
                usage = chunk.usage.or(usage);
                if chunk.has_output() {
                    entry.output(&text_of(&chunk), started.elapsed());
                }
                Some((Ok(chunk), Some((chunks, entry, usage))))
            }
            Some(Err(fault)) => {
                entry.close(AttemptEnd::Failed(fault.kind, fault.public.clone()), usage, started.elapsed());
                Some((Err(fault), None))
            }
            None => {
                entry.close(AttemptEnd::Answered, usage, started.elapsed());
                None
            }
        }
    })
    .boxed()
}

/// Lowers what a request may write, under the name that the client used.
fn cap_output(request: &mut ChatRequest, most: u64) {
    let old_name = request.body().get("max_tokens").is_some();
    if old_name {
        request.set("max_tokens", &most);
    }
    if !old_name || request.body().get("max_completion_tokens").is_some() {
        request.set("max_completion_tokens", &most);
    }
}

fn text_of(chunk: &Chunk) -> String {
    let mut text = String::new();
    for choice in &chunk.choices {
        text.extend(choice.content.as_deref());
        text.extend(choice.reasoning.as_deref());
        text.extend(choice.tool_calls.iter().map(|call| call.arguments.as_str()));
    }
    text
}

fn fault(kind: FaultKind, public: String) -> CallFault {
    CallFault { kind, public, status: None }
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
