//! The one capability that loopers have: calling models.

use chorus_wire::{ChatReply, ChatRequest, Chunk, Usage};
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use std::time::Duration;

/// What a call is for; also the `role` of its row in the run record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallRole {
    /// The only call of a request.
    Direct,
    /// One model of a cascade.
    Attempt,
    /// A check of an answer by a model.
    Verifier,
    /// A panel member, a candidate, or a seat of a round; a self-panel has several of one model.
    Panel,
    /// A rating of others' answers.
    Rater,
    /// The plan of a workflow.
    Planner,
    /// A worker of a workflow's step.
    Worker,
    /// The judge's analysis.
    Judge,
    /// The stage that owns the final answer.
    Synthesis,
    /// A final answer in a broken form, written again.
    Repair,
    /// A question of a signal, before it is known who will answer the client.
    Signal,
    /// Texts as vectors; another model's would be others.
    Vectors,
}

/// One call to one model.
#[derive(Debug, Clone)]
pub struct Call {
    /// The logical model.
    pub model: String,
    /// What it is for.
    pub role: CallRole,
    /// What is asked. `model` and `stream` of it are overwritten by whoever makes the call.
    pub ask: ChatRequest,
    /// How long it may take; the caller's own bounds hold besides.
    pub timeout: Option<Duration>,
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Reply {
    /// Who gave it.
    pub model: String,
    /// The answer.
    pub reply: ChatReply,
    /// What it took (reported, or an estimate marked as one).
    pub usage: Usage,
}

/// Chunks of one answer as the backend sent them; an `Err` is the last item, and dropping it cancels the call.
pub type Chunks = BoxStream<'static, Result<Chunk, CallFault>>;

/// An answer on its way. Dropping it cancels the call.
pub struct Live {
    /// Who gives it.
    pub model: String,
    /// Its chunks.
    pub chunks: Chunks,
}

/// A finished message or a live stream.
pub enum Answer {
    /// All of it.
    Finished(Box<Reply>),
    /// Its beginning.
    Live(Live),
}

/// Why a call gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{public}")]
pub struct CallFault {
    /// What kind of failure.
    pub kind: FaultKind,
    /// A sentence without secrets, addresses or a backend's raw text.
    pub public: String,
    /// The backend's status, if it answered.
    pub status: Option<u16>,
}

/// Kinds of failed calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FaultKind {
    /// Its time ran out.
    Timeout,
    /// The backend could not be reached, reset the connection, or sent what cannot be read.
    Transport,
    /// The backend answered with an error.
    Status,
    /// The backend answered with nothing usable.
    Empty,
    /// Nobody waits for it any more (quorum reached, or the client left).
    Cancelled,
    /// The budget refused it.
    Budget,
    /// The model is unknown, or cannot serve this request.
    Ineligible,
    /// The operator's configuration of the backend cannot be used.
    Misconfigured,
}

/// When a panel is complete.
#[derive(Debug, Clone, Copy)]
pub struct GatherRule {
    /// Usable answers that are enough; the rest is then cancelled.
    pub quorum: usize,
    /// Most calls at once.
    pub max_concurrent: usize,
    /// How long all of it may take; what is there then is what there is.
    pub timeout: Option<Duration>,
}

/// What became of one panel call.
#[derive(Debug)]
pub struct Member {
    /// Its seat: the position in the list of calls.
    pub seat: usize,
    /// Who sat there.
    pub model: String,
    /// The usable answer, or why there is none.
    pub outcome: Result<Reply, CallFault>,
}

/// All members, in the order of their seats, whatever the order of arrival.
#[derive(Debug)]
pub struct Gathered {
    /// One a call.
    pub members: Vec<Member>,
}

/// Whether the members that are done, in the order of arrival, are enough.
pub type Enough = dyn Fn(&[Member]) -> bool + Send + Sync;

/// Calls to models, under a budget.
///
/// Whoever implements it asks the budget before every call, counts every attempt (failed and cancelled ones too, with
/// estimates marked), and drops what nobody waits for.
pub trait ModelCalls: Send + Sync {
    /// One whole answer. An answer without text, reasoning or tool call is [`FaultKind::Empty`].
    fn complete(&self, call: Call) -> BoxFuture<'_, Result<Reply, CallFault>>;

    /// One answer as a stream; `Ok` once the backend accepted the call.
    fn stream(&self, call: Call) -> BoxFuture<'_, Result<Live, CallFault>>;

    /// Several answers at once, until the quorum is reached, or `enough` says so of the members that are done, or no
    /// call is left.
    fn gather_until<'a>(
        &'a self,
        calls: Vec<Call>,
        rule: GatherRule,
        enough: &'a Enough,
    ) -> BoxFuture<'a, Gathered>;

    /// Several answers at once, until the quorum is reached or no call is left.
    fn gather(&self, calls: Vec<Call>, rule: GatherRule) -> BoxFuture<'_, Gathered> {
        self.gather_until(calls, rule, &|_| false)
    }

    /// The model's context window in tokens, where it is declared.
    fn context_window(&self, model: &str) -> Option<u64>;
}
