//! One request as seen from a door: what goes in, and the parts that come out, in order.
//!
//! The work itself happens in a task of its own ([`crate::life`]); dropping a [`Run`] cancels it, and every model call
//! with it. The door never waits for the record.

use crate::fault::{Code, Fault};
use chorus_policy::Verdict;
use chorus_wire::{ChatReply, ChatRequest, Chunk, Usage};
use std::sync::{Arc, OnceLock};
use tokio::sync::mpsc;

/// A request at the door.
#[derive(Debug)]
pub struct Inbound {
    /// The request.
    pub request: ChatRequest,
    /// Whether the requester wants progress of the panel as [`Part::Progress`].
    pub progress: bool,
}

/// A request being worked on.
#[derive(Debug)]
pub struct Run {
    /// Its id, also of its run record.
    pub id: String,
    /// When it started, in seconds since 1970.
    pub created: u64,
    pub(crate) parts: mpsc::Receiver<Part>,
    pub(crate) shared: Arc<Shared>,
}

/// What a run and its life tell each other without waking anybody.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    /// The route, once it is known.
    pub(crate) route: OnceLock<RouteHead>,
    /// Why the door dropped the run, where that was not the client's doing.
    pub(crate) cut: OnceLock<Code>,
}

impl Run {
    /// The next part; `None` after the last.
    pub async fn next(&mut self) -> Option<Part> {
        self.parts.recv().await
    }

    /// The route, once it is known; it is before any part but a fault comes.
    #[must_use]
    pub fn route(&self) -> Option<&RouteHead> {
        self.shared.route.get()
    }

    /// Says that it is about to be dropped for another reason than that the client left; the record will name it.
    pub fn cut(&self, why: Code) {
        let _ = self.shared.cut.set(why);
    }
}

/// What comes out of a run, in this order: any `Progress`, then `Reply` or (`Begin`, `Chunk`s, `End`).
/// A `Fault` may stand anywhere and is the last.
#[derive(Debug)]
pub enum Part {
    /// What the looper is doing.
    Progress(Progress),
    /// A stream begins.
    Begin(Box<AnswerHead>),
    /// The next chunk of it.
    Chunk(Chunk),
    /// The stream ended well.
    End(Box<AnswerHead>),
    /// The whole answer.
    Reply(Box<AnswerHead>, Box<ChatReply>),
    /// It failed.
    Fault(Fault),
}

/// How the answer is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Path {
    /// The client named a concrete model.
    Direct,
    /// A decision, or the default model, chose one.
    Selected,
    /// Several models work together.
    Looper,
    /// No model at all.
    FastResponse,
}

impl Path {
    /// The word of `x-vsr-response-path`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Selected => "upstream",
            Self::Looper => "looper",
            Self::FastResponse => "fast_response",
        }
    }
}

/// What is known once the route is.
#[derive(Debug, Clone)]
pub struct RouteHead {
    /// The name that the client asked for.
    pub requested_model: String,
    /// The recipe that decided; `None` for a concrete model.
    pub recipe: Option<String>,
    /// The decision that won; `None` when the default model answers.
    pub decision: Option<String>,
    /// Its confidence in 0..=1.
    pub confidence: Option<f64>,
    /// The contract's word for the algorithm.
    pub algorithm: String,
    /// How the answer is made.
    pub path: Path,
    /// Why this way, for people.
    pub reason: String,
    /// Remarks for the client, such as a plugin that had no effect.
    pub warnings: Vec<String>,
    /// Whether a model was told to reason.
    pub reasoning: bool,
    /// The verdict, when decisions were looked at.
    pub verdict: Option<Arc<Verdict>>,
}

/// What is known about the answer.
#[derive(Debug, Clone, Default)]
pub struct AnswerHead {
    /// The model that wrote the answer; empty for a fast response.
    pub selected_model: String,
    /// Every model called, in the order of first call.
    pub models_used: Vec<String>,
    /// Model calls made.
    pub calls: usize,
    /// Since the request came in.
    pub latency_ms: u64,
    /// The sum over all calls.
    pub usage: Usage,
}

/// What a looper is doing, for a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The panel starts.
    PanelStarted(Vec<String>),
    /// A member answered (`None`) or failed (the reason).
    MemberDone {
        /// Its seat.
        seat: usize,
        /// Who.
        model: String,
        /// Why it failed, if it did.
        failure: Option<String>,
        /// How long it took.
        millis: u64,
    },
    /// The judge starts.
    JudgeStarted(String),
    /// The writer starts.
    SynthesisStarted(String),
}
