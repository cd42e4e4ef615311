//! The way of an answer to the door: whole, or chunk by chunk as it is produced, under one identity.
//!
//! It knows no route and makes no call. **Invariant:** chunks leave in the order in which they came, each as soon as it is
//! there, and traces of a backend's never pass for ours.

use crate::fault::{Code, Fault};
use crate::ledger::Ledger;
use crate::loopers::{self, After, Shown, TRACE_FIELDS};
use crate::parts::Sender;
use crate::record::Draft;
use crate::run::{AnswerHead, Part};
use crate::watch::Watch;
use chorus_collab::{Answer, Live, Reply};
use chorus_wire::{Assembler, ChatReply, ChatRequest, Chunk, StreamIdentity, StreamRepair};
use futures_util::StreamExt;
use serde_json::Value;
use std::time::{Duration, Instant};

/// One request's way to the door.
pub(crate) struct Delivery<'a> {
    pub(crate) parts: &'a Sender<Part>,
    /// The run's id.
    pub(crate) id: &'a str,
    /// Since 1970.
    pub(crate) created: Duration,
    pub(crate) started: Instant,
    pub(crate) ledger: &'a Ledger,
    /// Whether somebody wants to see the whole answer once it has left.
    pub(crate) keeps: bool,
}

/// Whose answer it is: usage, identity and traces of a looper's are its own; a plugin's is ours as a whole.
pub(crate) enum Origin<'a> {
    Model,
    Plugin,
    /// A plugin's as a stream, and the fields that ride on its opening chunk.
    Given(Vec<(String, Value)>),
    Looper(Vec<Shown>, Option<Box<After<'a>>>),
}

impl Delivery<'_> {
    /// `fast_response`: no model, the same shapes.
    pub(crate) async fn fast(
        &self,
        request: &ChatRequest,
        message: &str,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let head = || Box::new(self.answer_head("", draft));
        let reply = ChatReply::text(&self.completion_id(), request.model(), self.created.as_secs(), message);
        let kept = self.keeps.then(|| reply.clone());
        if request.stream() {
            self.send(Part::Begin(head())).await?;
            let mut repair = self.repair(request);
            for chunk in [Chunk::role(), Chunk::content(message), Chunk::finish("stop")] {
                self.send_repaired(&mut repair, chunk).await?;
            }
            self.send(Part::End(head())).await?;
        } else {
            self.send(Part::Reply(head(), Box::new(reply))).await?;
        }
        Ok(kept)
    }

    /// Hands the answer to the door: whole, or chunk by chunk as it is produced. Returns it as it left, where somebody
    /// wants to see it.
    pub(crate) async fn deliver(
        &self,
        answer: Answer,
        request: &ChatRequest,
        origin: Origin<'_>,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        match (answer, request.stream()) {
            (Answer::Live(live), _) => Box::pin(self.deliver_live(live, request, origin, draft)).await,
            (Answer::Finished(reply), true) => {
                let (origin, live) = match origin {
                    Origin::Plugin => {
                        (Origin::Given(given_fields(&reply.reply)), loopers::as_live_pieces(*reply))
                    }
                    origin => (origin, loopers::as_live(*reply)),
                };
                Box::pin(self.deliver_live(live, request, origin, draft)).await
            }
            (Answer::Finished(reply), false) => self.deliver_whole(*reply, request, origin, draft).await,
        }
    }

    async fn deliver_whole(
        &self,
        reply: Reply,
        request: &ChatRequest,
        origin: Origin<'_>,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let Reply { model, reply: mut body, .. } = reply;
        body.normalise();
        body.set("model", &request.model());
        match origin {
            Origin::Plugin | Origin::Given(_) => {
                body.set("id", &self.completion_id());
                body.set("created", &self.created.as_secs());
            }
            Origin::Model => body.remove_all(TRACE_FIELDS),
            Origin::Looper(shown, _) => {
                body.remove_all(TRACE_FIELDS);
                body.set("id", &self.completion_id());
                body.set("usage", &self.ledger.total().0);
                for (field, trace) in shown {
                    body.set(field, &trace);
                }
            }
        }
        let kept = self.keeps.then(|| body.clone());
        self.send(Part::Reply(Box::new(self.answer_head(&model, draft)), Box::new(body))).await?;
        Ok(kept)
    }

    async fn deliver_live(
        &self,
        live: Live,
        request: &ChatRequest,
        origin: Origin<'_>,
        draft: &mut Draft,
    ) -> Result<Option<ChatReply>, Fault> {
        let Live { model, mut chunks } = live;
        let mut repair = self.repair(request);
        self.send(Part::Begin(Box::new(self.answer_head(&model, draft)))).await?;
        let mut tee = Tee::new(self, request);
        let (alone, shown, after) = match origin {
            Origin::Model | Origin::Plugin => (true, Vec::new(), None),
            Origin::Given(fields) => (true, fields, None),
            Origin::Looper(shown, after) => (false, owned(shown), after),
        };
        if !shown.is_empty() {
            // Traces ride on the opening chunk, before any text. Source: contract §2.5.
            let mut opening = repair.push(Chunk::role()).unwrap_or_else(Chunk::role);
            shown.iter().for_each(|(field, trace)| opening.set(field, trace));
            tee.send(opening).await?;
        }
        let mut watch = Watch::of(after);
        while let Some(chunk) = chunks.next().await {
            if let Some(chunk) = repair.push(chunk?) {
                tee.send(watch.seen(chunk, draft).await).await?;
            }
        }
        let is_whole = repair.is_complete();
        for chunk in repair.finish() {
            tee.send(watch.seen(chunk, draft).await).await?;
        }
        let own = || {
            let mut chunk = Chunk::usage(self.ledger.total().0);
            repair.identity().stamp(&mut chunk);
            chunk
        };
        let usage = repair.usage_chunk().filter(|_| alone).unwrap_or_else(own);
        tee.saw(&usage);
        if request.include_usage() {
            self.send(Part::Chunk(Box::new(usage))).await?;
        }
        self.send(Part::End(Box::new(self.answer_head(&model, draft)))).await?;
        Ok(tee.finish().filter(|_| is_whole))
    }

    async fn send_repaired(&self, repair: &mut StreamRepair, chunk: Chunk) -> Result<(), Fault> {
        match repair.push(chunk) {
            Some(chunk) => self.send(Part::Chunk(Box::new(chunk))).await,
            None => Ok(()),
        }
    }

    /// Nobody takes the part: the client has left, and the task is about to be told.
    async fn send(&self, part: Part) -> Result<(), Fault> {
        self.parts.send(part).await.map_err(|_| left())
    }

    fn repair(&self, request: &ChatRequest) -> StreamRepair {
        StreamRepair::new(self.identity(request)).with_stripped(TRACE_FIELDS)
    }

    fn identity(&self, request: &ChatRequest) -> StreamIdentity {
        StreamIdentity {
            id: self.completion_id(),
            model: request.model().to_owned(),
            created: self.created.as_secs(),
        }
    }

    fn completion_id(&self) -> String {
        format!("chatcmpl-{}", self.id.trim_start_matches("run_"))
    }

    fn answer_head(&self, selected: &str, draft: &Draft) -> AnswerHead {
        let (models_used, calls) = self.ledger.models();
        AnswerHead {
            selected_model: selected.into(),
            models_used,
            calls,
            latency_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            usage: self.ledger.total().0,
            headers: draft.notes.headers().to_vec(),
            warnings: draft.notes.warnings().to_vec(),
        }
    }
}

/// Chunks on their way to the door, put together again where somebody wants to see the whole.
struct Tee<'a> {
    delivery: &'a Delivery<'a>,
    identity: StreamIdentity,
    whole: Option<Assembler>,
}

impl<'a> Tee<'a> {
    fn new(delivery: &'a Delivery<'a>, request: &ChatRequest) -> Self {
        let whole = delivery.keeps.then(Assembler::default);
        Self { delivery, identity: delivery.identity(request), whole }
    }

    /// Looks at a chunk that may not be sent.
    fn saw(&mut self, chunk: &Chunk) {
        if let Some(whole) = &mut self.whole {
            whole.push(chunk);
        }
    }

    async fn send(&mut self, chunk: Chunk) -> Result<(), Fault> {
        self.saw(&chunk);
        self.delivery.send(Part::Chunk(Box::new(chunk))).await
    }

    fn finish(self) -> Option<ChatReply> {
        Some(self.whole?.finish(&self.identity))
    }
}

/// Top-level fields of a plugin's answer that every stream would lose.
fn given_fields(reply: &ChatReply) -> Vec<(String, Value)> {
    const CHUNKED: [&str; 6] = ["id", "object", "created", "model", "choices", "usage"];
    let fields = reply.body().iter().filter(|(key, _)| !CHUNKED.contains(key));
    fields.filter_map(|(key, raw)| Some((key.to_owned(), serde_json::from_str(raw.get()).ok()?))).collect()
}

fn owned(shown: Vec<Shown>) -> Vec<(String, Value)> {
    shown.into_iter().map(|(field, trace)| (field.to_owned(), trace)).collect()
}

/// Ends the stages; nobody is there to be told.
pub(crate) fn left() -> Fault {
    Fault::new(Code::Internal, "the client has left")
}
