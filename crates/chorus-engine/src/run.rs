//! One request as seen from a door: what goes in, and the parts that come out, in order.
//!
//! Whoever waits for the next part does the work ([`crate::life`]), so that a request wakes no thread besides its own.
//! Dropping a [`Run`] cancels the work, and every model call with it; what is left of it then, the record, is written
//! in a task of its own, and the door never waits for it.

use crate::fault::{Code, Fault};
use crate::forward::Forward;
use crate::parts::Receiver;
use crate::selection::{SessionWords, Trace};
use crate::trace_context::Tracing;
use chorus_policy::Verdict;
use chorus_signals::Caller;
use chorus_spec::{BudgetSettings, Retention};
use chorus_wire::{ChatReply, ChatRequest, Chunk, Usage};
use smol_str::SmolStr;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use tokio::runtime::Handle;

/// A request at the door.
#[derive(Debug)]
pub struct Inbound {
    /// The request.
    pub request: ChatRequest,
    /// Whether the requester wants progress of a looper as [`Part::Progress`].
    pub progress: bool,
    /// What the requester allows to be spent; it can only lower what the policy and the operator allow.
    pub budget: BudgetSettings,
    /// Who makes it, where somebody vouches for that; a client's own word is nothing.
    pub caller: Option<Arc<Caller>>,
    /// What the door's translation left behind, for the record.
    pub lost: Vec<String>,
    /// Which conversation it belongs to, in the client's words.
    pub session: SessionWords,
    /// Whether the requester can call the one model itself, and takes [`Part::Forward`].
    pub forwards: bool,
    /// The headers by which the client steers plugins.
    pub controls: Controls,
    /// How its calls are traced; `None` where nothing is.
    pub tracing: Option<Tracing>,
}

/// Headers by which a client steers plugins: names in lower case, and their values.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Controls(Vec<(String, String)>);

impl Controls {
    /// Of these headers.
    pub fn of(headers: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(headers.into_iter().collect())
    }

    /// All of them, in their order.
    pub(crate) fn all(&self) -> &[(String, String)] {
        &self.0
    }

    /// The first value of that header, its name in lower case.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }
}

impl Inbound {
    /// A request of nobody known, without progress and without a budget of its own.
    #[must_use]
    pub fn of(request: ChatRequest) -> Self {
        Self {
            request,
            progress: false,
            budget: BudgetSettings::default(),
            caller: None,
            lost: Vec::new(),
            session: SessionWords::default(),
            forwards: false,
            controls: Controls::default(),
            tracing: None,
        }
    }
}

/// A request being worked on.
#[derive(Debug)]
pub struct Run {
    /// Its id, also of its run record.
    pub id: String,
    /// When it started, in seconds since 1970.
    pub created: u64,
    pub(crate) parts: Receiver<Part>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) work: Work,
}

/// What makes the parts; once dropped, it goes on in a task until its end.
pub(crate) struct Work {
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    runtime: Handle,
}

impl Work {
    /// Must be called on a thread of the runtime.
    pub(crate) fn new(future: Pin<Box<dyn Future<Output = ()> + Send>>) -> Self {
        Self { future: Some(future), runtime: Handle::current() }
    }

    /// Works for as long as it can without waiting; whether all is done.
    fn go_on(&mut self, cx: &mut Context<'_>) -> bool {
        let is_done = self.future.as_mut().is_none_or(|future| future.as_mut().poll(cx).is_ready());
        if is_done {
            self.future = None;
        }
        is_done
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Some(future) = self.future.take() {
            self.runtime.spawn(future);
        }
    }
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("done", &self.future.is_none()).finish_non_exhaustive()
    }
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
    /// The next part; `None` after the last. Work goes on only while somebody waits here.
    pub async fn next(&mut self) -> Option<Part> {
        poll_fn(|cx| self.poll_next(cx)).await
    }

    /// [`next`](Self::next), for whoever polls.
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Part>> {
        let is_done = self.work.go_on(cx);
        match self.parts.take() {
            None if !is_done => Poll::Pending,
            part => Poll::Ready(part),
        }
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

/// What comes out of a run, in this order: any `Progress`, then `Reply` or (`Begin`, `Chunk`s, `End`) or `Forward`.
/// A `Fault` may stand anywhere and is the last.
#[derive(Debug)]
pub enum Part {
    /// What the looper is doing.
    Progress(Box<Progress>),
    /// A stream begins.
    Begin(Box<AnswerHead>),
    /// The next chunk of it.
    Chunk(Box<Chunk>),
    /// The stream ended well.
    End(Box<AnswerHead>),
    /// The whole answer.
    Reply(Box<AnswerHead>, Box<ChatReply>),
    /// The requester is to call the model and to say what came of it.
    Forward(Box<Forward>),
    /// It failed.
    Fault(Box<Fault>),
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
    /// No model: the answer to an earlier request.
    Cache,
    /// A model that draws.
    ImageGeneration,
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
            Self::Cache => "cache",
            Self::ImageGeneration => "image_generation",
        }
    }

    /// The path of an answer that a plugin of that type gave.
    pub(crate) fn given_by(plugin: &str) -> Self {
        if plugin == "image_gen" { Self::ImageGeneration } else { Self::Cache }
    }
}

/// What is known once the route is.
#[derive(Debug, Clone)]
pub struct RouteHead {
    /// The name that the client asked for.
    pub requested_model: SmolStr,
    /// The recipe that decided; `None` for a concrete model.
    pub recipe: Option<SmolStr>,
    /// The decision that won; `None` when the default model answers.
    pub decision: Option<SmolStr>,
    /// Its confidence in 0..=1.
    pub confidence: Option<f64>,
    /// The contract's word for the algorithm.
    pub algorithm: SmolStr,
    /// How the answer is made.
    pub path: Path,
    /// Why this way, for people.
    pub reason: String,
    /// Remarks for the client, such as a plugin that had no effect.
    pub warnings: Vec<String>,
    /// Whether a model was told to reason.
    pub reasoning: bool,
    /// What the client is told about keeping the conversation where it is.
    pub retention: Option<Retention>,
    /// The verdict, when decisions were looked at.
    pub verdict: Option<Arc<Verdict>>,
    /// How the candidate was chosen.
    pub selection: Option<Arc<Trace>>,
}

/// What is known about the answer.
#[derive(Debug, Clone, Default)]
pub struct AnswerHead {
    /// The model that wrote the answer; empty for a fast response.
    pub selected_model: SmolStr,
    /// Every model called, in the order of first call.
    pub models_used: Vec<SmolStr>,
    /// Model calls made.
    pub calls: usize,
    /// Since the request came in.
    pub latency_ms: u64,
    /// The sum over all calls.
    pub usage: Usage,
    /// Headers that plugins add, in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Words of plugins for `x-vsr-response-warnings`.
    pub warnings: Vec<String>,
}

/// What a looper is doing, for whoever watches.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Progress {
    /// Members are asked, all at once.
    RoundStarted {
        /// From 1.
        round: usize,
        /// Rounds in all, the last one included.
        rounds: usize,
        /// One model a seat.
        seats: Vec<String>,
    },
    /// A member answered (`None`) or failed (the reason).
    MemberDone {
        /// Its seat, from 0.
        seat: usize,
        /// Who.
        model: String,
        /// Why it failed, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
        /// How long it took.
        millis: u64,
    },
    /// The round is over.
    RoundFinished {
        /// From 1.
        round: usize,
        /// Usable answers.
        usable: usize,
        /// Seats asked.
        seats: usize,
    },
    /// The judge starts.
    JudgeStarted {
        /// Who.
        model: String,
    },
    /// The judge is done.
    JudgeFinished {
        /// Whether there is an analysis.
        analysed: bool,
        /// Points on which members contradict each other.
        disagreements: usize,
    },
    /// One model was tried and its answer measured.
    Tried {
        /// Who.
        model: String,
        /// In 0..=1; `None` when there was no evidence.
        confidence: Option<f64>,
        /// Whether its answer is the answer.
        accepted: bool,
    },
    /// A plan stands.
    Planned {
        /// Its steps.
        steps: usize,
    },
    /// A step of a plan begins.
    StepStarted {
        /// Its id.
        step: String,
        /// One model a worker.
        workers: Vec<String>,
    },
    /// The writer starts.
    SynthesisStarted {
        /// Who.
        model: String,
    },
}
