//! What a dialect gives and takes: a request as it goes over the wire, and what one event of a stream says.
//!
//! It knows no dialect.

use crate::UpstreamFault;
use bytes::Bytes;
use chorus_wire::{Chunk, SseEvent};

/// One chat request as it goes over the wire.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The body.
    pub(crate) body: Bytes,
    /// Path and query below the base URL, where they depend on the request; `None` for the target's own.
    pub(crate) path: Option<String>,
    /// Value of `accept`.
    pub(crate) accept: &'static str,
}

/// What one event of a stream says.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly every event is one chunk, which a box would only make dearer"
)]
pub(crate) enum Said {
    /// A piece of the answer.
    Chunk(Chunk),
    /// Several.
    Chunks(Vec<Chunk>),
    /// The answer is whole; nothing that follows counts.
    Done,
    /// Nothing: a comment, a ping.
    Nothing,
}

/// Reads the events of one stream, in order.
pub(crate) trait Reader: Send {
    /// What the event says.
    ///
    /// # Errors
    /// The error that it carries, or that it cannot be read.
    fn event(&mut self, event: &SseEvent) -> Result<Said, UpstreamFault>;
}
