//! Vectors of a model behind a backend: a request without a route, with the limits, budget and record of every other.
//!
//! The texts stand in a request of one message while their size is estimated; the body goes on as the client wrote it. It knows
//! no shape of an answer. **Invariant:** no other model's vectors are given instead: they would be others; and where an operating
//! point looks at everything that leaves, nothing leaves here.

use super::{Engine, log, record_in};
use crate::deliver::left;
use crate::fault::{Code, Fault};
use crate::life::Life;
use crate::record::{Draft, Ending};
use crate::run::Inbound;
use crate::trace_context::Tracing;
use chorus_collab::{Call, CallRole};
use chorus_signals::Caller;
use chorus_spec::BudgetSettings;
use chorus_store::RunRecord;
use chorus_upstream::VectorsWish;
use chorus_wire::{ChatRequest, Message, RawObject, Role};
use std::sync::Arc;
use tokio::sync::oneshot;

/// The path of such runs in their records.
const PATH: &str = "embeddings";

/// A request for vectors.
#[derive(Debug, Clone)]
pub struct VectorsAsk {
    /// The body as the client wrote it.
    pub body: RawObject,
    /// The model that is asked: one of the file's.
    pub model: String,
    /// The texts together, as far as they are known, for estimates.
    pub text: String,
    /// What the answer has to be.
    pub wish: VectorsWish,
    /// Who asks, where somebody vouches for it.
    pub caller: Option<Arc<Caller>>,
    /// The request's own budget.
    pub budget: BudgetSettings,
    /// How its call is traced; `None` where nothing is.
    pub tracing: Option<Tracing>,
}

/// What came of it.
#[derive(Debug)]
pub struct VectorsAnswer {
    /// The run's id, also of its record.
    pub run: String,
    /// The answer, with the backend's own words.
    pub outcome: Result<RawObject, Fault>,
}

impl Engine {
    /// Asks a model of the file for vectors. Dropping this drops the call; the record is written either way.
    pub async fn vectors(&self, ask: VectorsAsk) -> VectorsAnswer {
        let inbound = Inbound {
            caller: ask.caller.clone(),
            budget: ask.budget,
            tracing: ask.tracing.clone(),
            ..Inbound::of(ChatRequest::new(&ask.model, vec![Message::new(Role::User, &ask.text)]))
        };
        // It has one answer, which goes another way than parts do.
        let (life, _) = self.life(self.serving.of(&ask.model), &inbound);
        let run = life.id.clone();
        let (told, outcome) = oneshot::channel();
        let (records, meters) = (self.records.clone(), Arc::clone(&life.mom.meters));
        self.alive.spawn(async move {
            let mut record = lived(life, &inbound.request, ask, told).await;
            record.path = Some(PATH.into());
            log(&record);
            record_in(records, &meters, record).await;
        });
        let outcome =
            outcome.await.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the request failed badly")));
        VectorsAnswer { run, outcome }
    }
}

/// Lives it to its end, tells what came of it, and returns what is to be recorded.
async fn lived(
    life: Life,
    request: &ChatRequest,
    ask: VectorsAsk,
    mut told: oneshot::Sender<Result<RawObject, Fault>>,
) -> Box<RunRecord> {
    let draft = Draft::new(&life.id, &life.mom.spec, request, life.created);
    let outcome = tokio::select! {
        biased;
        outcome = asked(&life, request, &ask) => outcome,
        () = told.closed() => Err(left()),
    };
    let ending = match &outcome {
        Ok(_) => Ending::Answered,
        Err(_) if told.is_closed() => Ending::Cancelled,
        Err(fault) => Ending::Failed(fault.code),
    };
    let outcome = outcome.map_err(|fault| Fault {
        retry_after: fault.retry_after.or_else(|| life.ledger.asked_wait()),
        ..fault
    });
    let elapsed = life.started.elapsed();
    // Whoever left hears nothing.
    let _ = told.send(outcome);
    life.recorded(draft, ending, elapsed)
}

async fn asked(life: &Life, request: &ChatRequest, ask: &VectorsAsk) -> Result<RawObject, Fault> {
    life.mom.artifact.admit(&ask.model)?;
    if life.guard.is_some() {
        let text = "this operating point looks at everything that leaves, and vectors of another process are not among it";
        return Err(Fault::new(Code::NotSupported, text).at("model"));
    }
    life.within_limits(ask.caller.as_deref(), request).await?;
    let calls = life.calls_within(&ask.model, &BudgetSettings::default(), &ask.budget);
    let call =
        Call { model: ask.model.clone(), role: CallRole::Vectors, ask: request.clone(), timeout: None };
    Ok(calls.vectors(&call, &ask.body, ask.wish).await?)
}
