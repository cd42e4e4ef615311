//! OpenAI chat completions: nothing to translate, much to doubt.
//!
//! It knows the shapes in which servers that call themselves compatible send errors and ends.

use crate::UpstreamFault;
use crate::quirks::Quirks;
use crate::reshape;
use crate::seam::{Reader, Said, Sent};
use bytes::Bytes;
use chorus_wire::{ChatReply, ChunkReader, ErrorBody, RawObject, SseEvent, sse};

/// The request, as it is but for the deployment's quirks.
pub(crate) fn sent(body: Bytes, quirks: Quirks, stream: bool) -> Result<Sent, UpstreamFault> {
    let accept = if stream { "text/event-stream" } else { "application/json" };
    Ok(Sent { body: quirks.apply(body)?, path: None, accept })
}

/// A whole answer.
pub(crate) fn whole(bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
    let body = RawObject::parse(bytes).map_err(UpstreamFault::malformed)?;
    let error = reshape::error_of(&body);
    match (ChatReply::of(body), error) {
        (Ok(reply), Some(error)) if !reply.is_usable() => Err(UpstreamFault::in_band(error)),
        (Ok(mut reply), _) => {
            reply.normalise();
            Ok(reply)
        }
        (Err(_), Some(error)) => Err(UpstreamFault::in_band(error)),
        (Err(fault), None) => Err(UpstreamFault::malformed(fault)),
    }
}

/// Reads the events of a stream.
#[derive(Default)]
pub(crate) struct Events {
    chunks: ChunkReader,
}

impl Reader for Events {
    fn event(&mut self, event: &SseEvent) -> Result<Said, UpstreamFault> {
        let data = event.data.trim_ascii();
        if data.is_empty() {
            return Ok(Said::Nothing);
        }
        if data == sse::DONE {
            return Ok(Said::Done);
        }
        if event.event.as_deref() == Some("error") {
            let error = ErrorBody::parse(data);
            return Err(
                error.map_or_else(|| UpstreamFault::malformed("an error event"), UpstreamFault::in_band)
            );
        }
        let chunk = self.chunks.read(data).map_err(UpstreamFault::malformed)?;
        match chunk.error {
            Some(error) => Err(UpstreamFault::in_band(error)),
            None => Ok(Said::Chunk(chunk)),
        }
    }
}
