//! A run as a server-sent event stream.
//!
//! Each part is written as soon as it is there, in the words of its door's protocol; progress as an event with a name,
//! which a client that does not know it ignores; silences are broken; after a fault comes nothing.

use crate::door::Door;
use crate::protocol::Protocol;
use crate::reply;
use crate::woken::Woken;
use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use chorus_engine::{Code, Fault, Part, Progress, Run};
use chorus_wire::sse;
use futures_util::stream;
use http::HeaderMap;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::time::{Instant, Sleep};
use tokio_util::sync::WaitForCancellationFutureOwned;

/// How a stream starts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Opening {
    /// Its first part has been taken.
    Begun,
    /// Its first part was this.
    Progress(Progress),
    /// Nothing has come yet: a comment opens it.
    Silent,
}

/// A run on its way to the client.
pub(crate) struct Flow<P> {
    run: Run,
    /// The grace of a stop has run out.
    expired: Pin<Box<WaitForCancellationFutureOwned>>,
    silence: Silence,
    /// What is told before anything else.
    opening: Option<Bytes>,
    over: bool,
    protocol: P,
}

/// The response.
pub(crate) fn response<P: Protocol>(mut headers: HeaderMap, flow: Flow<P>) -> Response {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream; charset=utf-8"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    let frames = stream::unfold(Box::new(flow), |mut flow| async move {
        let frame = flow.next().await?;
        Some((Ok::<Bytes, Infallible>(frame), flow))
    });
    let mut response = Response::new(Body::from_stream(Woken::new(Box::pin(frames))));
    *response.headers_mut() = headers;
    response
}

impl<P: Protocol> Flow<P> {
    /// The flow of a run that has come as far as `opening`.
    pub(crate) fn new(door: &Door, run: Run, opening: Opening, mut protocol: P) -> Self {
        let first = protocol.opening();
        let then = match opening {
            Opening::Begun => Bytes::new(),
            Opening::Progress(progress) => told(&progress),
            Opening::Silent => protocol.silence(),
        };
        let opening = match (first.is_empty(), then.is_empty()) {
            (true, true) => None,
            (true, false) => Some(then),
            (false, _) => Some([first, then].concat().into()),
        };
        let (expired, silence) = (Box::pin(door.expired_owned()), Silence::of(door.limits.keepalive));
        Self { run, expired, silence, opening, over: false, protocol }
    }

    async fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        if let Some(opening) = self.opening.take() {
            return Some(opening);
        }
        loop {
            return match poll_fn(|cx| self.poll_part(cx)).await {
                Err(Silent) => Some(self.protocol.silence()),
                Ok(Some(Part::Chunk(chunk))) => {
                    let frame = self.protocol.chunk(&chunk);
                    if frame.is_empty() {
                        continue;
                    }
                    Some(frame)
                }
                Ok(Some(Part::End(_))) => {
                    self.over = true;
                    Some(self.protocol.end().await)
                }
                Ok(Some(Part::Fault(fault))) => Some(self.failed(&fault).await),
                Ok(Some(Part::Progress(progress))) => Some(told(&progress)),
                Ok(Some(Part::Begin(_) | Part::Reply(..))) => continue,
                Ok(Some(Part::Forward(_))) => {
                    let text = "the decision came when the gateway had begun to answer";
                    Some(self.failed(&Fault::new(Code::Internal, text)).await)
                }
                Ok(None) => {
                    let fault = Fault::new(Code::Internal, "the stream came to no end; see the log");
                    Some(self.failed(&fault).await)
                }
            };
        }
    }

    /// The next part, or that the line has been silent for too long.
    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Part>, Silent>> {
        if let Poll::Ready(part) = self.run.poll_next(cx) {
            self.silence.is_broken();
            return Poll::Ready(Ok(part));
        }
        if self.expired.as_mut().poll(cx).is_ready() {
            let fault = reply::stopping(&self.run);
            return Poll::Ready(Ok(Some(Part::Fault(Box::new(fault)))));
        }
        self.silence.poll_too_long(cx).map(Err)
    }

    async fn failed(&mut self, fault: &Fault) -> Bytes {
        self.over = true;
        self.protocol.failed(fault).await
    }
}

/// The line has been silent for as long as it may be.
struct Silent;

/// How long nothing has come. One timer serves all of a stream: what comes only moves its beginning, and the timer is set
/// anew when it rings too early.
struct Silence {
    longest: Duration,
    began: Instant,
    alarm: Pin<Box<Sleep>>,
}

impl Silence {
    /// One that begins now.
    fn of(longest: Duration) -> Self {
        Self { longest, began: Instant::now(), alarm: Box::pin(tokio::time::sleep(longest)) }
    }

    /// Something has come: it begins again.
    fn is_broken(&mut self) {
        self.began = Instant::now();
    }

    /// Waits until it has been too long, and begins it again.
    fn poll_too_long(&mut self, cx: &mut Context<'_>) -> Poll<Silent> {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let is_over = self.began + self.longest <= Instant::now();
            if is_over {
                self.is_broken();
            }
            self.alarm.as_mut().reset(self.began + self.longest);
            if is_over {
                return Poll::Ready(Silent);
            }
        }
        Poll::Pending
    }
}

/// A moment of a looper, as an event of its own name.
fn told(progress: &Progress) -> Bytes {
    let data = serde_json::to_vec(progress).unwrap_or_default();
    sse::encode_named("chorus.progress", &data)
}
