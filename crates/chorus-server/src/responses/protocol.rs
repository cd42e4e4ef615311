//! The protocol's words for one run.

use crate::kept::Keeper;
use crate::protocol::Protocol;
use bytes::Bytes;
use chorus_engine::Fault;
use chorus_engine::loopers::TRACE_FIELDS;
use chorus_store::KeptResponse;
use chorus_wire::responses::{Outcome, OutputIds, ResponseObject, ResponseStream, items_of};
use chorus_wire::{ChatReply, Chunk, RawObject, sse};

/// One response, whole or streamed.
pub(super) struct Responses {
    object: ResponseObject,
    stream: ResponseStream,
    owner: Option<String>,
    input: String,
    /// Where it is kept, if it is.
    keeper: Option<Keeper>,
}

impl Responses {
    /// `input` is the conversation up to it, as a JSON list.
    pub(super) fn new(
        object: ResponseObject,
        owner: Option<String>,
        input: String,
        keeper: Option<Keeper>,
    ) -> Self {
        let stream = ResponseStream::new(object.clone(), TRACE_FIELDS);
        Self { object, stream, owner, input, keeper }
    }

    /// Keeps the object; whether it is kept, or need not be.
    async fn keep(&mut self, object: &RawObject) -> bool {
        let Some(keeper) = &self.keeper else { return true };
        let kept = KeptResponse {
            id: self.object.id.clone(),
            owner: self.owner.take(),
            created_at: self.object.created_at,
            settled: true,
            input: std::mem::take(&mut self.input),
            object: String::from_utf8(object.to_bytes()).unwrap_or_default(),
        };
        // The answer is there and paid for: the client gets it, and is told that it is not kept.
        keeper.put(kept).await.is_ok()
    }
}

/// The object of a whole answer.
pub(super) fn ended(object: &mut ResponseObject, reply: &ChatReply) -> RawObject {
    object.show(reply.body(), TRACE_FIELDS);
    let outcome = Outcome::Ended {
        finish: reply.finish_reason.clone(),
        output: items_of(reply, &OutputIds::of(&object.id)),
        usage: reply.body().get("usage").cloned(),
    };
    object.json(&outcome)
}

impl Protocol for Responses {
    async fn whole(&mut self, reply: &ChatReply) -> Vec<u8> {
        let mut object = ended(&mut self.object, reply);
        if !self.keep(&object).await {
            // A value of our own always has a JSON form.
            let _ = object.write("store", &false);
        }
        object.to_bytes()
    }

    fn opening(&mut self) -> Bytes {
        self.stream.opening()
    }

    fn chunk(&mut self, chunk: &Chunk) -> Bytes {
        self.stream.push(chunk)
    }

    async fn end(&mut self) -> Bytes {
        let (events, object) = self.stream.end();
        self.keep(&object).await;
        events
    }

    async fn failed(&mut self, fault: &Fault) -> Bytes {
        let (events, object) = self.stream.failed(fault.code.as_str(), &fault.public);
        self.keep(&object).await;
        events
    }

    fn silence(&self) -> Bytes {
        sse::encode_comment("still working")
    }
}
