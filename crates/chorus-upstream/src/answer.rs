//! Answers of every dialect: a whole one, or a stream of chunks, whichever way the backend sends it.
//!
//! Backends answer a stream request with JSON and a plain one with events, send errors with status 200, and stop
//! without saying why. What is asked for is what the caller gets; what is broken is a fault.
//!
//! **Invariant:** [`Upstream::stream`] returns `Ok` only when output (or a proper end) has been read, so that a
//! failure before it can still become another attempt or a real status (cases A12, A14).

use crate::body::Body;
use crate::dialect::{Dialect, Frames};
use crate::reshape;
use crate::seam::{Reader, Said};
use crate::{Target, Timeouts, Upstream, UpstreamFault};
use bytes::Bytes;
use chorus_wire::{Assembler, ChatReply, Chunk, SseEvent};
use futures_util::stream::Stream;
use std::collections::{BTreeSet, VecDeque};
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::vec;

impl Upstream {
    /// One whole answer.
    ///
    /// `body` is a chat completion request, and should say `"stream": false` (or nothing); a target that speaks OpenAI's
    /// dialect gets it as it is. `headers` are exactly the caller's headers to send, besides the target's own and the
    /// content type. Missing usage stays missing.
    ///
    /// # Errors
    /// [`UpstreamFault`].
    pub async fn complete(
        &self,
        target: &Target,
        body: Bytes,
        headers: &[(String, String)],
        limits: &Timeouts,
    ) -> Result<ChatReply, UpstreamFault> {
        let sent = target.dialect.sent(body, target.quirks, false)?;
        let body = self.post(target, sent, headers, limits).await?;
        match open(body, target.dialect).await? {
            Opened::Whole(reply) => Ok(*reply),
            Opened::Events(events) => events.assemble().await,
        }
    }

    /// One answer as a stream; `body` should say `"stream": true`.
    ///
    /// # Errors
    /// [`UpstreamFault`], also for an error that comes in band before any output.
    pub async fn stream(
        &self,
        target: &Target,
        body: Bytes,
        headers: &[(String, String)],
        limits: &Timeouts,
    ) -> Result<ChunkStream, UpstreamFault> {
        let sent = target.dialect.sent(body, target.quirks, true)?;
        let body = self.post(target, sent, headers, limits).await?;
        match open(body, target.dialect).await? {
            Opened::Whole(reply) => Ok(ChunkStream::of(vec![reshape::chunk_of(&reply)?], None)),
            Opened::Events(mut events) => {
                let mut held = Vec::new();
                while let Some(chunk) = events.next().await? {
                    let begun = chunk.has_output() || chunk.choices.iter().any(|c| c.finish_reason.is_some());
                    held.push(chunk);
                    if begun {
                        break;
                    }
                }
                Ok(ChunkStream::of(held, Some(events)))
            }
        }
    }
}

/// An answer on its way. It ends without an `Err` only if the backend said that it was whole; an `Err` is the last
/// item. Dropping it closes the connection.
pub struct ChunkStream {
    /// Read already.
    held: vec::IntoIter<Chunk>,
    /// Gone once they have ended.
    events: Option<Box<Events>>,
}

impl ChunkStream {
    fn of(held: Vec<Chunk>, events: Option<Box<Events>>) -> Self {
        Self { held: held.into_iter(), events }
    }
}

impl Stream for ChunkStream {
    type Item = Result<Chunk, UpstreamFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if let Some(chunk) = self.held.next() {
            return Poll::Ready(Some(Ok(chunk)));
        }
        let Some(events) = &mut self.events else { return Poll::Ready(None) };
        let next = ready!(events.poll_next(cx));
        if !matches!(next, Ok(Some(_))) {
            self.events = None;
        }
        Poll::Ready(next.transpose())
    }
}

impl std::fmt::Debug for ChunkStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChunkStream")
    }
}

/// An answer in the form in which the backend sends it.
enum Opened {
    Whole(Box<ChatReply>),
    Events(Box<Events>),
}

/// Tells JSON from events by the first byte: the content type is not reliable.
async fn open(mut body: Body, dialect: Dialect) -> Result<Opened, UpstreamFault> {
    match body.peek().await? {
        None => Err(UpstreamFault::truncated("the body is empty")),
        Some(b'{') => Ok(Opened::Whole(Box::new(dialect.whole(&body.collect().await?)?))),
        Some(b'<') => Err(UpstreamFault::malformed("it is HTML or XML")),
        Some(_) => Ok(Opened::Events(Box::new(Events::new(body, dialect)))),
    }
}

/// The events of a stream, read one by one.
struct Events {
    /// Gone once the stream has ended.
    body: Option<Body>,
    frames: Frames,
    reader: Box<dyn Reader>,
    waiting: VecDeque<SseEvent>,
    /// Events of one read on their way to those that wait; empty between reads.
    decoded: Vec<SseEvent>,
    /// Chunks of an event that held several.
    ready: VecDeque<Chunk>,
    seen_any: bool,
    progress: Progress,
}

impl Events {
    fn new(body: Body, dialect: Dialect) -> Self {
        Self {
            frames: dialect.frames(body.limits().max_event_bytes),
            reader: dialect.reader(),
            body: Some(body),
            waiting: VecDeque::new(),
            decoded: Vec::new(),
            ready: VecDeque::new(),
            seen_any: false,
            progress: Progress::default(),
        }
    }

    /// The next chunk; `None` at a proper end.
    async fn next(&mut self) -> Result<Option<Chunk>, UpstreamFault> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next), for whoever polls.
    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Chunk>, UpstreamFault>> {
        loop {
            if let Some(chunk) = self.ready.pop_front() {
                self.progress.see(&chunk);
                return Poll::Ready(Ok(Some(chunk)));
            }
            if let Some(event) = self.waiting.pop_front() {
                match self.reader.event(&event)? {
                    Said::Chunk(chunk) => {
                        self.progress.see(&chunk);
                        return Poll::Ready(Ok(Some(chunk)));
                    }
                    Said::Chunks(chunks) => self.ready.extend(chunks),
                    Said::Done => return Poll::Ready(Ok(self.done())),
                    Said::Nothing => {}
                }
                continue;
            }
            let Some(body) = &mut self.body else {
                return Poll::Ready(self.ended());
            };
            if let Some(bytes) = ready!(body.poll_next(cx))? {
                self.frames.push(&bytes, &mut self.decoded)?;
            } else {
                self.decoded.extend(self.frames.finish()?);
                self.body = None;
            }
            self.seen_any |= !self.decoded.is_empty();
            self.waiting.extend(self.decoded.drain(..));
        }
    }

    /// The backend has said that the answer is whole.
    fn done(&mut self) -> Option<Chunk> {
        self.waiting.clear();
        self.progress.done = true;
        if let Some(body) = self.body.take() {
            body.drain();
        }
        None
    }

    /// The connection has ended: was the answer whole?
    fn ended(&self) -> Result<Option<Chunk>, UpstreamFault> {
        if self.progress.is_whole() {
            Ok(None)
        } else if self.seen_any {
            Err(UpstreamFault::truncated("the stream ended without [DONE] or a finish reason"))
        } else {
            Err(UpstreamFault::malformed("it is neither JSON nor a stream of events"))
        }
    }

    /// All chunks, put together.
    async fn assemble(mut self) -> Result<ChatReply, UpstreamFault> {
        let mut assembler = Assembler::default();
        let mut identity = None;
        while let Some(chunk) = self.next().await? {
            if identity.is_none() {
                identity = Some(reshape::identity_of(&chunk)?);
            }
            assembler.push(&chunk);
        }
        let identity = identity.ok_or_else(|| UpstreamFault::truncated("the stream holds no chunk"))?;
        Ok(assembler.finish(&identity))
    }
}

/// Which choices have begun and which have ended.
#[derive(Default)]
struct Progress {
    open: BTreeSet<u32>,
    finished: bool,
    done: bool,
}

impl Progress {
    fn see(&mut self, chunk: &Chunk) {
        for choice in &chunk.choices {
            if choice.finish_reason.is_some() {
                self.finished = true;
                self.open.remove(&choice.index);
            } else if choice.has_output() {
                self.open.insert(choice.index);
            }
        }
    }

    fn is_whole(&self) -> bool {
        self.done || (self.finished && self.open.is_empty())
    }
}
