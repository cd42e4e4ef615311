//! Reads an answer's body within its time limits and size bound.

use crate::clock::{Clock, Deadline};
use crate::lane::{Lane, chain};
use crate::pool::Shelf;
use crate::{Stage, Timeouts, UpstreamFault};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use hyper::body::Incoming;
use std::error::Error;
use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A body on its way.
pub(crate) struct Body {
    incoming: Incoming,
    /// What it comes over; gone once it has ended or broken.
    lane: Option<Box<Lane>>,
    /// Where the connection is kept afterwards.
    home: Option<Arc<Shelf>>,
    clock: Clock,
    /// When what comes next must have come; `None` where nobody has waited for it yet.
    due: Option<Deadline>,
    read_bytes: usize,
    /// Read to look at, not yet taken.
    ahead: Option<Bytes>,
}

impl Body {
    /// `first` bounds the wait for the first byte; without a `home` the connection is closed after it.
    pub(crate) fn new(
        incoming: Incoming,
        lane: Box<Lane>,
        home: Option<Arc<Shelf>>,
        clock: Clock,
        first: Deadline,
    ) -> Self {
        Self { incoming, lane: Some(lane), home, clock, due: Some(first), read_bytes: 0, ahead: None }
    }

    pub(crate) fn limits(&self) -> &Timeouts {
        self.clock.limits()
    }

    /// The next bytes, never empty; `None` at the announced end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, UpstreamFault> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next), for whoever polls.
    pub(crate) fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, UpstreamFault>> {
        if let Some(ahead) = self.ahead.take() {
            return Poll::Ready(Ok(Some(ahead)));
        }
        let Some(lane) = &mut self.lane else { return Poll::Ready(Ok(None)) };
        let read = loop {
            match lane.poll_frame(&mut self.incoming, cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => break self.counted(data).map(Some),
                    _ => {}
                },
                Poll::Ready(Some(Err(error))) => break Err(broken(&error)),
                Poll::Ready(None) => break Ok(None),
                Poll::Pending => {
                    let due = self.due.get_or_insert_with(|| self.clock.stage(Stage::Idle));
                    if !lane.is_late(due.end()) {
                        return Poll::Pending;
                    }
                    break Err(due.fault());
                }
            }
        };
        self.due = None;
        match &read {
            Ok(Some(_)) => {}
            Ok(None) => self.leave(),
            Err(_) => self.lane = None,
        }
        Poll::Ready(read)
    }

    /// Bytes that were read, if they are not too many.
    fn counted(&mut self, data: Bytes) -> Result<Bytes, UpstreamFault> {
        self.read_bytes += data.len();
        let limit_bytes = self.limits().max_response_bytes;
        if self.read_bytes > limit_bytes {
            return Err(UpstreamFault::TooLarge { bound: "max_response_bytes", limit_bytes });
        }
        Ok(data)
    }

    /// The body has ended: the connection goes home, or is closed.
    fn leave(&mut self) {
        if let (Some(lane), Some(home)) = (self.lane.take(), &self.home) {
            home.give(lane);
        }
    }

    /// The first byte that is not whitespace; `None` for an empty body. Nothing is taken.
    pub(crate) async fn peek(&mut self) -> Result<Option<u8>, UpstreamFault> {
        let mut seen = BytesMut::new();
        while let Some(bytes) = self.next().await? {
            seen.extend_from_slice(&bytes);
            if let Some(byte) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
                let byte = *byte;
                self.ahead = Some(seen.freeze());
                return Ok(Some(byte));
            }
        }
        Ok(None)
    }

    /// All of it.
    pub(crate) async fn collect(&mut self) -> Result<Bytes, UpstreamFault> {
        let Some(first) = self.next().await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.next().await? else {
            return Ok(first);
        };
        let mut all = BytesMut::from(first);
        all.extend_from_slice(&second);
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all.freeze())
    }

    /// Reads the little that follows the last event, so that the connection can serve again (case I08).
    pub(crate) fn drain(mut self) {
        /// A backend that has more to say is not worth keeping.
        const PATIENCE: Duration = Duration::from_secs(1);
        // Mostly it came with that event.
        if self.next().now_or_never().is_none() {
            tokio::spawn(async move {
                // However it ends, the connection is then either reusable or closed.
                let _ = tokio::time::timeout(PATIENCE, self.next()).await;
            });
        }
    }
}

/// What broke a body that had begun.
fn broken(error: &hyper::Error) -> UpstreamFault {
    let invalid =
        |e: &io::Error| matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput);
    match error.source().and_then(|source| source.downcast_ref::<io::Error>()) {
        Some(source) if invalid(source) => UpstreamFault::malformed(chain(error)),
        _ => UpstreamFault::truncated(chain(error)),
    }
}
