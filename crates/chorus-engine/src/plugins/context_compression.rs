//! `context_compression`: what a model is shown besides its task is shortened to what matters for it.
//!
//! Results of tools, what was looked up or remembered, and earlier turns are shortened extractively, in this order, the
//! oldest first. System messages of the client or operator, the user's last message, the latest answer, and every tool
//! call with the pairing to its result stay as they are. Where a route says so, originals wait in this process, and the
//! model can ask for them by a tool that the engine answers itself.
//!
//! **Invariant:** the same request and settings give the same bytes; what was JSON stays JSON of the same shape; no call
//! of our own tool reaches a client. Source: contract §1.10.

mod budget;
mod parts;
pub mod preview;
mod retrieval;
mod shorten;

use super::at_work::{Answered, Asking, AtWork};
use crate::fault::{Code, Fault};
use budget::Bounds;
use chorus_collab::Answer;
use chorus_spec::CompressionSettings;
use chorus_wire::ChatRequest;
use futures_util::future::{BoxFuture, FutureExt};
use parts::Part;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;

const KIND: &str = "context_compression";
/// The word of the warning when a request stays longer than its target.
const TOO_LONG: &str = "context_compression_incomplete";

/// The plugin at work on one request.
pub(super) struct ContextCompression {
    settings: CompressionSettings,
    /// Whether the model was offered our tool.
    offers_originals: bool,
}

/// What was done, for the record; no word of any part.
#[derive(Debug, Default, Serialize)]
struct Trace {
    /// Tokens from which it begins; nothing where it always does.
    trigger: Option<u64>,
    target: Option<u64>,
    tokens_before: u64,
    tokens_after: u64,
    /// By kind of part.
    parts: BTreeMap<&'static str, Tally>,
    /// Originals that wait.
    recoverable: usize,
    scoring: &'static str,
}

/// What was done to the parts of one kind.
#[derive(Debug, Default, Serialize)]
struct Tally {
    shortened: usize,
    tokens_before: u64,
    tokens_after: u64,
    /// Passages that were left out.
    left_out: usize,
}

impl Trace {
    /// Of a request of so many tokens, of which nothing has been shortened yet.
    fn of(settings: &CompressionSettings, bounds: Bounds, tokens_before: u64) -> Self {
        Self {
            trigger: (!settings.always).then_some(bounds.trigger),
            target: (!settings.always).then_some(bounds.target),
            tokens_before,
            ..Self::default()
        }
    }

    /// Shortens parts until the target is reached; all of them where none is.
    async fn shorten(
        &mut self,
        parts: Vec<Part>,
        work: &mut shorten::Work<'_>,
        request: &mut ChatRequest,
        target: u64,
    ) {
        let mut left = self.tokens_before;
        for part in parts {
            if self.target.is_some() && left <= target {
                break;
            }
            let Some(short) = work.shorten(&part).await else { continue };
            if !parts::write(&part, &short.text, request) {
                continue;
            }
            let tally = self.parts.entry(part.kind.as_str()).or_default();
            tally.shortened += 1;
            tally.tokens_before += short.tokens_before;
            tally.tokens_after += short.tokens_after;
            tally.left_out += short.omitted;
            left = left.saturating_sub(short.tokens_before.saturating_sub(short.tokens_after));
        }
        self.tokens_after = budget::tokens(request);
        self.recoverable = work.originals();
        self.scoring = work.scoring();
    }
}

impl ContextCompression {
    pub(super) fn new(settings: CompressionSettings) -> Self {
        Self { settings, offers_originals: false }
    }

    async fn compress(&mut self, ask: &mut Asking<'_>) -> Result<(), Fault> {
        let wish = budget::wish(&self.settings, &ask.scene.controls);
        if wish.bypass {
            ask.notes.did(KIND, &json!({ "idle": "bypass" }));
            return Ok(());
        }
        let bounds = Bounds::of(&self.settings, ask.scene, ask.request);
        let before = budget::tokens(ask.request);
        if !self.settings.always && before < bounds.trigger {
            let idle = json!({ "idle": "below_trigger", "trigger": bounds.trigger, "tokens_before": before });
            ask.notes.did(KIND, &idle);
            return Ok(());
        }
        let parts = parts::of(ask.request, &ask.put, &self.settings.targets);
        let recovers = retrieval::is_possible(&self.settings, ask);
        let mut work = shorten::Work::new(&self.settings, &ask.scene.mom, wish.target);
        if recovers {
            work = work.keeping(ask.scene);
        }
        let mut trace = Trace::of(&self.settings, bounds, before);
        trace.shorten(parts, &mut work, ask.request, bounds.target).await;
        if work.has_originals() {
            retrieval::offer(ask.request);
            self.offers_originals = true;
        }
        trace.tokens_after = budget::tokens(ask.request);
        let is_long = trace.tokens_after > bounds.target && !self.settings.always;
        ask.notes.did(KIND, &trace);
        self.judge(is_long, ask)
    }

    fn judge(&self, is_long: bool, ask: &mut Asking<'_>) -> Result<(), Fault> {
        if !is_long {
            return Ok(());
        }
        if self.settings.fail_closed {
            let text = "the request cannot be shortened to what its route allows";
            return Err(Fault::new(Code::ContextLengthExceeded, text).at("messages"));
        }
        ask.notes.warn(TOO_LONG);
        Ok(())
    }
}

impl AtWork for ContextCompression {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move { self.compress(ask).await.map(|()| None) }.boxed()
    }

    fn after<'a>(
        &'a mut self,
        answer: Answer,
        seen: &'a mut Answered<'_>,
    ) -> BoxFuture<'a, Result<Answer, Fault>> {
        async move {
            if !self.offers_originals {
                return Ok(answer);
            }
            let (answer, retrievals) = retrieval::answered(answer, &self.settings, seen).await?;
            seen.notes.did(KIND, &json!({ "retrievals": retrievals }));
            seen.scene.mom.shelf.originals.end(&seen.scene.run);
            Ok(answer)
        }
        .boxed()
    }
}
