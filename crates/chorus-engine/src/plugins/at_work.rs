//! The seam of plugins that need more than the request's own text: what such a plugin is given, when, and what it may do.
//!
//! A plugin is made for one request and has up to three halves: [`before`](AtWork::before) anybody is called,
//! [`after`](AtWork::after) the answer is made, and [`kept`](AtWork::kept) once all of it has left. It knows no single
//! plugin; in which turn each one looks, [`turns`](crate::turns) says. **Invariant:** a stream whose plugins have no use for
//! the whole answer is not held.

use super::notes::Notes;
use crate::calls::LiveCalls;
use crate::fault::Fault;
use crate::mom::Mom;
use crate::route::Routed;
use crate::run::Controls;
use crate::served::Asked;
use chorus_collab::Answer;
use chorus_signals::Caller;
use chorus_spec::{Decision, ModelId};
use chorus_wire::{ChatReply, ChatRequest};
use futures_util::future::{BoxFuture, FutureExt, ready};
use std::sync::Arc;

/// Where a request stands when its plugins are at work.
pub(crate) struct Scene {
    /// The run's id.
    pub(crate) run: String,
    /// The served model.
    pub(crate) mom: Arc<Mom>,
    /// The request as the client sent it, who makes it, and which conversation it belongs to.
    pub(crate) asked: Asked,
    /// The headers by which the client steers plugins.
    pub(crate) controls: Controls,
    /// Recipe, decision and evidence.
    pub(crate) routed: Arc<Routed>,
    /// The one model that was chosen; `None` where several work together.
    pub(crate) model: Option<ModelId>,
    /// Calls to models, under the request's budget.
    pub(crate) calls: LiveCalls,
}

impl Scene {
    /// The decision that was chosen.
    pub(crate) fn decision(&self) -> Option<&Decision> {
        self.routed.decision(&self.mom)
    }

    /// Whether the operating point promises that nothing is kept of what is said.
    pub(crate) fn keeps_nothing(&self) -> bool {
        let point = self.mom.artifact.point(self.asked.request.model());
        point.is_some_and(|point| point.demands("no_retention"))
    }

    /// Who makes the request, where somebody vouches for one.
    pub(crate) fn caller(&self) -> Option<&Caller> {
        self.asked.caller.as_deref()
    }
}

/// A text that a plugin put into the request, word by word as it stands there.
pub(crate) struct Put {
    /// The plugin's type.
    pub(crate) by: &'static str,
    pub(crate) text: String,
}

/// A request before anybody is called.
pub(crate) struct Asking<'a> {
    pub(crate) scene: &'a Scene,
    /// The request as models will get it.
    pub(crate) request: &'a mut ChatRequest,
    pub(crate) notes: &'a mut Notes,
    /// What plugins have put into the request so far.
    pub(crate) put: Vec<Put>,
}

/// A request whose answer is there.
pub(crate) struct Answered<'a> {
    pub(crate) scene: &'a Scene,
    /// The request as models got it.
    pub(crate) request: &'a ChatRequest,
    /// The plugin that answered in a model's place, by its type.
    pub(crate) given_by: Option<&'static str>,
    /// Whether something was given up on the way; known once the answer has left.
    pub(crate) degraded: bool,
    pub(crate) notes: &'a mut Notes,
}

/// A plugin at work on one request. Each half does nothing unless the plugin says otherwise.
pub(crate) trait AtWork: Send {
    /// The contract's type word.
    fn kind(&self) -> &'static str;

    /// Before anybody is called: may edit the request, or answer in a model's place. Nobody after it in turn looks at a
    /// request that is answered.
    ///
    /// # Errors
    /// Why the request is refused.
    fn before<'a>(&'a mut self, _ask: &'a mut Asking<'_>) -> BoxFuture<'a, Result<Option<Answer>, Fault>> {
        ready(Ok(None)).boxed()
    }

    /// The answer is made, or begins to be, and nothing of it has left: may hold, change, mark or refuse it. Who needs
    /// all of it collects a live answer here, and the client waits; who only reads it asks for [`kept`](Self::kept).
    ///
    /// # Errors
    /// Why the answer does not leave, or the fault that ended a stream that was held.
    fn after<'a>(
        &'a mut self,
        answer: Answer,
        _seen: &'a mut Answered<'_>,
    ) -> BoxFuture<'a, Result<Answer, Fault>> {
        ready(Ok(answer)).boxed()
    }

    /// Whether it wants to see the whole answer once it has left.
    fn keeps(&self) -> bool {
        false
    }

    /// All of the answer has left, as the client got it; never called for one that broke off. The client does not wait:
    /// what is done here may call models and take its time, and headers have no effect any more.
    fn kept<'a>(&'a mut self, _reply: &'a ChatReply, _seen: &'a mut Answered<'_>) -> BoxFuture<'a, ()> {
        ready(()).boxed()
    }
}
