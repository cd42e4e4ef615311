//! Reads an answer's body within its time limits and size bound.

use crate::{Stage, Timeouts, UpstreamFault};
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use std::error::Error;
use std::future::Future;
use std::io;
use std::time::Duration;
use tokio::time::Instant;

/// The deadlines of one attempt.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    limits: Timeouts,
    total: Instant,
}

impl Clock {
    /// Starts now.
    pub(crate) fn start(limits: &Timeouts) -> Self {
        Self { limits: *limits, total: deadline(Instant::now(), limits.total) }
    }

    pub(crate) fn limits(&self) -> &Timeouts {
        &self.limits
    }

    /// When a stage that begins now must have ended.
    pub(crate) fn stage(&self, stage: Stage) -> Deadline {
        let limit = match stage {
            Stage::Connect => self.limits.connect,
            Stage::FirstByte => self.limits.first_byte,
            Stage::Idle => self.limits.idle,
            Stage::Total => self.limits.total,
        };
        let end = deadline(Instant::now(), limit);
        if end < self.total {
            Deadline { end, stage, limit }
        } else {
            Deadline { end: self.total, stage: Stage::Total, limit: self.limits.total }
        }
    }
}

/// "Never" for limits that the clock cannot express.
fn deadline(now: Instant, limit: Duration) -> Instant {
    now.checked_add(limit).unwrap_or_else(|| now + Duration::from_secs(365 * 24 * 3600))
}

/// A point in time, and the limit that it comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    end: Instant,
    stage: Stage,
    limit: Duration,
}

impl Deadline {
    /// Waits no longer than this.
    pub(crate) async fn bound<T>(self, future: impl Future<Output = T>) -> Result<T, UpstreamFault> {
        let timeout = |_| UpstreamFault::Timeout { stage: self.stage, limit: self.limit };
        tokio::time::timeout_at(self.end, future).await.map_err(timeout)
    }
}

/// A body on its way.
pub(crate) struct Body {
    incoming: Incoming,
    clock: Clock,
    first: Deadline,
    read_bytes: usize,
    /// Read to look at, not yet taken.
    ahead: Option<Bytes>,
}

impl Body {
    /// `first` bounds the wait for the first byte.
    pub(crate) fn new(incoming: Incoming, clock: Clock, first: Deadline) -> Self {
        Self { incoming, clock, first, read_bytes: 0, ahead: None }
    }

    pub(crate) fn limits(&self) -> &Timeouts {
        self.clock.limits()
    }

    /// The next bytes, never empty; `None` at the announced end.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, UpstreamFault> {
        if let Some(ahead) = self.ahead.take() {
            return Ok(Some(ahead));
        }
        let deadline = if self.read_bytes == 0 { self.first } else { self.clock.stage(Stage::Idle) };
        deadline.bound(self.data()).await?
    }

    async fn data(&mut self) -> Result<Option<Bytes>, UpstreamFault> {
        while let Some(frame) = self.incoming.frame().await {
            let Ok(data) = frame.map_err(|e| broken(&e))?.into_data() else {
                continue;
            };
            if data.is_empty() {
                continue;
            }
            self.read_bytes += data.len();
            let limit_bytes = self.limits().max_response_bytes;
            if self.read_bytes > limit_bytes {
                return Err(UpstreamFault::TooLarge { bound: "max_response_bytes", limit_bytes });
            }
            return Ok(Some(data));
        }
        Ok(None)
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
        tokio::spawn(async move {
            // However it ends, the connection is then either reusable or closed.
            let _ = tokio::time::timeout(PATIENCE, self.data()).await;
        });
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

/// An error with its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
