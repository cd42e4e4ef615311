//! How a door writes what a run gives: a whole answer, or the frames of a stream.
//!
//! One implementation a protocol; which one is known when the program is compiled, so that a door pays nothing for the
//! others. **Invariant:** only [`Protocol::end`] writes what a client takes for a whole answer.

use bytes::Bytes;
use chorus_engine::Fault;
use chorus_wire::{ChatReply, Chunk};
use std::future::Future;

/// The words of one door.
pub(crate) trait Protocol: Send + 'static {
    /// A whole answer as a body.
    fn whole(&mut self, reply: &ChatReply) -> impl Future<Output = Vec<u8>> + Send;

    /// What opens a stream, before anything is known of the answer; may be empty.
    fn opening(&mut self) -> Bytes {
        Bytes::new()
    }

    /// The frames of a chunk; may be empty.
    fn chunk(&mut self, chunk: &Chunk) -> Bytes;

    /// The frames behind the last chunk of a whole answer.
    fn end(&mut self) -> impl Future<Output = Bytes> + Send;

    /// The last frames of a stream that failed.
    fn failed(&mut self, fault: &Fault) -> impl Future<Output = Bytes> + Send;

    /// What breaks a silence.
    fn silence(&self) -> Bytes;
}
