//! The way of an answer to the door: whole, or chunk by chunk as it is produced, under one identity.
//!
//! It knows no route and makes no call. **Invariant:** chunks leave in the order in which they came, each as soon as it is
//! there, and traces of a backend's never pass for ours.

use crate::fault::{Code, Fault};
use crate::ledger::Ledger;
use crate::loopers::{self, After, Shown, TRACE_FIELDS};
use crate::record::Draft;
use crate::run::{AnswerHead, Part};
use crate::watch::Watch;
use chorus_collab::{Answer, Live};
use chorus_wire::{ChatReply, ChatRequest, Chunk, StreamIdentity, StreamRepair};
use futures_util::StreamExt;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// One request's way to the door.
pub(crate) struct Delivery<'a> {
    pub(crate) parts: &'a mpsc::Sender<Part>,
    /// The run's id.
    pub(crate) id: &'a str,
    /// Since 1970.
    pub(crate) created: Duration,
    pub(crate) started: Instant,
    pub(crate) ledger: &'a Ledger,
}

/// Whose answer it is: usage, identity and traces of a looper's are its own.
pub(crate) enum Origin<'a> {
    Model,
    Looper(Vec<Shown>, Option<Box<After<'a>>>),
}

impl Delivery<'_> {
    /// `fast_response`: no model, the same shapes.
    pub(crate) async fn fast(&self, request: &ChatRequest, message: &str) -> Result<(), Fault> {
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

    /// Hands the answer to the door: whole, or chunk by chunk as it is produced.
    pub(crate) async fn deliver(
        &self,
        answer: Answer,
        request: &ChatRequest,
        origin: Origin<'_>,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        match (answer, request.stream()) {
            (Answer::Live(live), _) => self.deliver_live(live, request, origin, draft).await,
            (Answer::Finished(reply), true) => {
                let live = loopers::as_live(*reply);
                self.deliver_live(live, request, origin, draft).await
            }
            (Answer::Finished(reply), false) => {
                let mut body = reply.reply;
                body.normalise();
                TRACE_FIELDS.iter().for_each(|field| body.remove(field));
                body.set("model", &request.model());
                if let Origin::Looper(shown, _) = origin {
                    body.set("id", &self.completion_id());
                    body.set("usage", &self.ledger.total().0);
                    for (field, trace) in shown {
                        body.set(field, &trace);
                    }
                }
                self.send(Part::Reply(Box::new(self.answer_head(&reply.model)), Box::new(body))).await
            }
        }
    }

    async fn deliver_live(
        &self,
        live: Live,
        request: &ChatRequest,
        origin: Origin<'_>,
        draft: &mut Draft,
    ) -> Result<(), Fault> {
        let Live { model, mut chunks } = live;
        let mut repair = self.repair(request);
        self.send(Part::Begin(Box::new(self.answer_head(&model)))).await?;
        let (alone, shown, after) = match origin {
            Origin::Model => (true, Vec::new(), None),
            Origin::Looper(shown, after) => (false, shown, after),
        };
        if !shown.is_empty() {
            // Traces ride on the opening chunk, before any text. Source: contract §2.5.
            let mut opening = repair.push(Chunk::role()).unwrap_or_else(Chunk::role);
            shown.iter().for_each(|(field, trace)| opening.set(field, trace));
            self.send(Part::Chunk(opening)).await?;
        }
        let mut watch = Watch::of(after);
        while let Some(chunk) = chunks.next().await {
            if let Some(chunk) = repair.push(chunk?) {
                self.send(Part::Chunk(watch.seen(chunk, draft).await)).await?;
            }
        }
        for chunk in repair.finish() {
            self.send(Part::Chunk(watch.seen(chunk, draft).await)).await?;
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
}

/// Ends the stages; nobody is there to be told.
pub(crate) fn left() -> Fault {
    Fault::new(Code::Internal, "the client has left")
}
