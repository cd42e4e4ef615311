//! What is served, how it came to be, and what was refused: plain values for logs and doors.

use chorus_spec::{Diagnostic, Digest, Severity};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// Who asked for a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The process started.
    Start,
    /// SIGHUP.
    Signal,
    /// The file changed.
    Watch,
    /// The management plane wrote it.
    Api,
    /// The management plane went back to an earlier version.
    Rollback,
    /// A candidate was promoted, or taken back.
    Rollout,
}

impl Cause {
    /// The word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Signal => "signal",
            Self::Watch => "watch",
            Self::Api => "api",
            Self::Rollback => "rollback",
            Self::Rollout => "rollout",
        }
    }
}

/// The last change that was asked for.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Attempt {
    /// Who asked.
    pub cause: Cause,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    /// The digest of the text that was offered, where there was one.
    pub digest: Option<Digest>,
    /// Why it was refused; `None` when it is served.
    pub refused: Option<String>,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

impl Attempt {
    pub(super) fn served(cause: Cause, digest: Digest) -> Self {
        Self { cause, at_ms: now_ms(), digest: Some(digest), refused: None, diagnostics: Vec::new() }
    }
}

/// What is served, and how it came to be.
#[derive(Debug, Clone)]
pub struct State {
    /// The text, as read.
    pub text: Arc<str>,
    /// Its digest: the one that run records name.
    pub digest: Digest,
    /// Counts what this process has served, from 1.
    pub generation: u64,
    /// Since when, in milliseconds since 1970.
    pub since_ms: u64,
    /// The last change that was asked for.
    pub last: Attempt,
    /// Settings of this text that wait for a restart, as paths.
    pub waiting: Vec<&'static str>,
}

/// What a change must be based on (the management plane's `If-Match`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Basis {
    /// Whatever is served.
    Any,
    /// One of these digests.
    OneOf(Vec<String>),
}

/// What a text would do.
#[derive(Debug)]
pub struct Report {
    /// Its digest.
    pub digest: Digest,
    /// Every problem of the text.
    pub diagnostics: Vec<Diagnostic>,
    /// Why it cannot be served although the text is good.
    pub unready: Option<String>,
}

impl Report {
    /// Whether it could be served.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.unready.is_none() && self.diagnostics.iter().all(|d| d.severity != Severity::Error)
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since_1970.as_millis()).unwrap_or(u64::MAX)
}
