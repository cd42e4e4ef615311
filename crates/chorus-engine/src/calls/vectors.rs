//! One request for vectors among a request's calls: the same attempts, budget and ledger as any other call.

use super::{Admitted, AttemptEnd, LiveCalls, Opening, Rates, prompt_tokens, too_late};
use crate::backends::{Missed, Until, VectorsCall};
use crate::calls::persist::Turn;
use chorus_collab::{Call, CallFault};
use chorus_upstream::VectorsWish;
use chorus_wire::RawObject;
use futures_util::FutureExt;
use std::time::Instant;

impl LiveCalls {
    /// The vectors that the body asks for. The call's own request stands for it where its size is estimated.
    ///
    /// # Errors
    /// Why there are none.
    pub(crate) async fn vectors(
        &self,
        call: &Call,
        body: &RawObject,
        wish: VectorsWish,
    ) -> Result<RawObject, CallFault> {
        self.persist(call, Until::Whole, |turn| self.vectors_once(call, turn, body, wish).boxed()).await
    }

    async fn vectors_once(
        &self,
        call: &Call,
        turn: Turn<'_>,
        body: &RawObject,
        wish: VectorsWish,
    ) -> Result<RawObject, Missed> {
        let (model, started) = (turn.model, Instant::now());
        let tokens = prompt_tokens(&call.ask);
        let opening = Opening {
            role: call.role,
            model: model.id.as_str(),
            backend: turn.picked.name(),
            cause: turn.cause.as_deref(),
            prompt_tokens: tokens,
            cap: Some(0),
            rates: Rates { pricing: model.pricing, energy: model.energy },
        };
        let Admitted { entry, time, .. } = self.admitted(opening, started)?;
        let mut body = body.clone();
        body.write("model", &model.upstream_name)
            .map_err(|why| super::fault(chorus_collab::FaultKind::Ineligible, why.to_string()))?;
        let headers = self.headers_of(&entry);
        let asked = VectorsCall { body: &body, wish, headers: &headers, total: time, tokens };
        let asked = self.mom.backends.vectors(&turn.picked, asked);
        let answer = tokio::time::timeout(time, asked).await.unwrap_or_else(|_| Err(too_late(time).into()));
        let elapsed = started.elapsed();
        let vectors = answer.inspect_err(|missed| entry.fail(&missed.fault, elapsed))?;
        turn.line.took(Until::Whole, elapsed);
        entry.close(AttemptEnd::Answered, vectors.usage, elapsed);
        Ok(vectors.body)
    }
}
