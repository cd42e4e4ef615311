//! OpenAI chat completions: a whole answer, or a stream of chunks, whichever way the backend sends it.
//!
//! Backends answer a stream request with JSON and a plain one with events, send errors with status 200, and stop
//! without saying why. What is asked for is what the caller gets; what is broken is a fault.
//!
//! **Invariant:** [`Upstream::stream`] returns `Ok` only when output (or a proper end) has been read, so that a
//! failure before it can still become another attempt or a real status (cases A12, A14).

use crate::body::Body;
use crate::reshape;
use crate::{Target, Timeouts, Upstream, UpstreamFault};
use bytes::Bytes;
use chorus_wire::{Assembler, ChatReply, Chunk, ErrorBody, SseDecoder, SseEvent, SseFault, sse};
use futures_util::stream::{self, BoxStream, Stream, StreamExt};
use std::collections::{BTreeSet, VecDeque};
use std::pin::Pin;
use std::task::{Context, Poll};

impl Upstream {
    /// One whole answer.
    ///
    /// `body` is sent as it is and should say `"stream": false` (or nothing); `headers` are exactly the caller's
    /// headers to send, besides the target's own and the content type. Missing usage stays missing.
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
        let body = self.post(target, body, headers, "application/json", limits).await?;
        match open(body).await? {
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
        let body = self.post(target, body, headers, "text/event-stream", limits).await?;
        match open(body).await? {
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
pub struct ChunkStream(BoxStream<'static, Result<Chunk, UpstreamFault>>);

impl ChunkStream {
    fn of(held: Vec<Chunk>, events: Option<Box<Events>>) -> Self {
        let live = stream::unfold(events, |events| async {
            let mut events = events?;
            match events.next().await {
                Ok(Some(chunk)) => Some((Ok(chunk), Some(events))),
                Ok(None) => None,
                Err(fault) => Some((Err(fault), None)),
            }
        });
        Self(stream::iter(held.into_iter().map(Ok)).chain(live).boxed())
    }
}

impl Stream for ChunkStream {
    type Item = Result<Chunk, UpstreamFault>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
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
async fn open(mut body: Body) -> Result<Opened, UpstreamFault> {
    match body.peek().await? {
        None => Err(UpstreamFault::truncated("the body is empty")),
        Some(b'{') => Ok(Opened::Whole(Box::new(whole(&body.collect().await?)?))),
        Some(b'<') => Err(UpstreamFault::malformed("it is HTML or XML")),
        Some(_) => Ok(Opened::Events(Box::new(Events::new(body)))),
    }
}

fn whole(bytes: &[u8]) -> Result<ChatReply, UpstreamFault> {
    let error = reshape::error_of(bytes);
    match (ChatReply::parse(bytes), error) {
        (Ok(reply), Some(error)) if !reply.is_usable() => Err(UpstreamFault::in_band(error)),
        (Ok(mut reply), _) => {
            reply.normalise();
            Ok(reply)
        }
        (Err(_), Some(error)) => Err(UpstreamFault::in_band(error)),
        (Err(fault), None) => Err(UpstreamFault::malformed(fault)),
    }
}

/// What one event says.
enum Said {
    Chunk(Chunk),
    Done,
    Nothing,
}

/// The events of a stream, read one by one.
struct Events {
    /// Gone once the stream has ended.
    body: Option<Body>,
    decoder: SseDecoder,
    waiting: VecDeque<SseEvent>,
    seen_any: bool,
    progress: Progress,
}

impl Events {
    fn new(body: Body) -> Self {
        let decoder = SseDecoder::new(body.limits().max_event_bytes);
        Self {
            body: Some(body),
            decoder,
            waiting: VecDeque::new(),
            seen_any: false,
            progress: Progress::default(),
        }
    }

    /// The next chunk; `None` at a proper end.
    async fn next(&mut self) -> Result<Option<Chunk>, UpstreamFault> {
        loop {
            while let Some(event) = self.waiting.pop_front() {
                match read(&event)? {
                    Said::Chunk(chunk) => {
                        self.progress.see(&chunk);
                        return Ok(Some(chunk));
                    }
                    Said::Done => {
                        self.waiting.clear();
                        self.progress.done = true;
                        if let Some(body) = self.body.take() {
                            body.drain();
                        }
                        return Ok(None);
                    }
                    Said::Nothing => {}
                }
            }
            let Some(body) = &mut self.body else {
                return self.ended();
            };
            let mut decoded = Vec::new();
            if let Some(bytes) = body.next().await? {
                self.decoder.push(&bytes, &mut decoded).map_err(|fault| unreadable(&fault))?;
            } else {
                // A stream cut inside a letter is a cut stream, not an unreadable one.
                let last = self.decoder.finish().map_err(UpstreamFault::truncated)?;
                decoded.extend(last);
                self.body = None;
            }
            self.seen_any |= !decoded.is_empty();
            self.waiting.extend(decoded);
        }
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

fn read(event: &SseEvent) -> Result<Said, UpstreamFault> {
    let data = event.data.trim_ascii();
    if data.is_empty() {
        return Ok(Said::Nothing);
    }
    if data == sse::DONE {
        return Ok(Said::Done);
    }
    if event.event.as_deref() == Some("error") {
        let error = ErrorBody::parse(data);
        return Err(error.map_or_else(|| UpstreamFault::malformed("an error event"), UpstreamFault::in_band));
    }
    let chunk = Chunk::parse(data).map_err(UpstreamFault::malformed)?;
    match chunk.error {
        Some(error) => Err(UpstreamFault::in_band(error)),
        None => Ok(Said::Chunk(chunk)),
    }
}

fn unreadable(fault: &SseFault) -> UpstreamFault {
    match fault {
        SseFault::TooLong { limit } => {
            UpstreamFault::TooLarge { bound: "max_event_bytes", limit_bytes: *limit }
        }
        SseFault::NotUtf8 => UpstreamFault::malformed(fault),
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
