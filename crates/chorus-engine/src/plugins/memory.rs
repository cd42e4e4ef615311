//! `memory`: what a user has stated in earlier conversations is shown to the model, and what they state now is kept.
//!
//! Before the call, the user's memories that are near the question stand at the end of the system message, fenced and
//! dated. After a whole answer has left, the lasting statements of the user's last message are remembered, where the
//! route says so. It knows users by what somebody vouches for; without that, nothing is remembered nor shown.
//!
//! **Invariant:** a memory reaches its own user's requests only, and the trace holds ids and scores, no text.
//! Source: contract §1.10, §4.9.

mod block;
mod remember;
mod show;

use super::at_work::{Answered, Asking, AtWork, Scene};
use crate::fault::Fault;
use chorus_collab::Answer;
use chorus_spec::{MemorySettings, ModelId};
use chorus_wire::ChatReply;
use futures_util::future::{BoxFuture, FutureExt};
use serde_json::json;
use std::time::{SystemTime, UNIX_EPOCH};

const KIND: &str = "memory";

/// A client's wish that nothing be remembered nor shown. Source: contract §4.4.
const DISABLE_HEADER: &str = "x-disable-router-memory";

/// The plugin at work on one request.
pub(super) struct Memory {
    settings: MemorySettings,
}

/// Why nothing is remembered nor shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
enum Idle {
    /// Nobody vouches for the caller.
    NoIdentity,
    /// The client does not want it.
    AskedNotTo,
    /// The chosen model is one of `disabled_models`.
    DisabledModel,
    /// No encoder is loaded.
    NoEncoder,
    /// The request has no words of a user.
    NoQuestion,
}

/// Whose memories, and by which encoder they are found.
struct Reader<'a> {
    user: &'a str,
    encoder: &'a str,
    question: &'a str,
}

impl Memory {
    pub(super) fn new(settings: MemorySettings) -> Self {
        Self { settings }
    }

    fn reader<'a>(&self, scene: &'a Scene) -> Result<Reader<'a>, Idle> {
        if scene.controls.get(DISABLE_HEADER).is_some_and(|value| !value.eq_ignore_ascii_case("false")) {
            return Err(Idle::AskedNotTo);
        }
        let model = scene.model.as_ref().map(ModelId::as_str);
        if model.is_some_and(|model| self.settings.disabled_models.iter().any(|name| name == model)) {
            return Err(Idle::DisabledModel);
        }
        let user = scene.caller().ok_or(Idle::NoIdentity)?.user();
        let (encoder, _) = scene.mom.classifiers.encoder().ok_or(Idle::NoEncoder)?;
        let question = scene.asked.request.last_user_text();
        if question.trim().is_empty() {
            return Err(Idle::NoQuestion);
        }
        Ok(Reader { user, encoder, question })
    }
}

impl AtWork for Memory {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn before<'a>(&'a mut self, ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        async move {
            match self.reader(ask.scene) {
                Err(idle) => ask.notes.did(KIND, &json!({ "idle": idle })),
                Ok(reader) => show::show(&self.settings, &reader, ask).await,
            }
            Ok(None)
        }
        .boxed()
    }

    fn keeps(&self) -> bool {
        self.settings.auto_store
    }

    fn kept<'a>(&'a mut self, _reply: &'a ChatReply, seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        async move {
            if let Ok(reader) = self.reader(seen.scene) {
                let done = remember::remember(&self.settings, &reader, seen.scene).await;
                seen.notes.did(KIND, &done);
            }
        }
        .boxed()
    }
}

/// Seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
