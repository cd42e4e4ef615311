//! The time limits of one attempt, as deadlines. It knows no request.

use crate::fault::{Stage, UpstreamFault};
use crate::target::Timeouts;
use std::future::Future;
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
    pub(crate) fn end(&self) -> Instant {
        self.end
    }

    /// It has passed.
    pub(crate) fn fault(&self) -> UpstreamFault {
        UpstreamFault::Timeout { stage: self.stage, limit: self.limit }
    }

    /// Waits no longer than this.
    pub(crate) async fn bound<T>(self, future: impl Future<Output = T>) -> Result<T, UpstreamFault> {
        tokio::time::timeout_at(self.end, future).await.map_err(|_| self.fault())
    }
}
