//! A recipe ready to serve: its policy compiled, its signals prepared, and the loop between the two.
//!
//! The policy says what it still needs, cheapest first; signals answer; until the winner is certain. Heuristics run
//! where they are asked, the encoder in a thread of its own.
//!
//! **Invariant:** a signal that the winner does not depend on is never computed for a live request.

use crate::fault::{Code, Fault};
use chorus_policy::{Ask, Evidence, Policy, Progress, Scope, Verdict};
use chorus_signals::{Extractor, SharedPass, Subject, Timing};
use chorus_spec::{Global, Recipe};
use chorus_wire::ChatRequest;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// From this cost on a signal leaves the request's own task.
const ENCODER_COST: u8 = 3;

/// More rounds than there are cost tiers would mean that a signal did not answer what it was asked.
const MAX_ROUNDS: usize = 64;

/// A recipe ready to serve.
pub struct ServedRecipe {
    /// As written.
    pub recipe: Recipe,
    policy: Policy,
    extractor: Arc<Extractor>,
    encoder_gate: Arc<Semaphore>,
}

/// How much is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only what the winner depends on.
    Lazy,
    /// Everything the recipe has.
    Everything,
}

/// A verdict and what it rests on.
#[derive(Debug)]
pub struct Decided {
    /// Who won, and why.
    pub verdict: Arc<Verdict>,
    /// What signals said.
    pub evidence: Evidence,
    /// How long they took.
    pub timings: Vec<Timing>,
}

impl ServedRecipe {
    /// Prepares a recipe.
    ///
    /// # Errors
    /// A signal that cannot be prepared.
    pub fn prepare(
        recipe: &Recipe,
        global: &Global,
        encoder: Option<Arc<dyn chorus_infer::TextEncoder>>,
        encoder_gate: Arc<Semaphore>,
    ) -> Result<Self, chorus_signals::PrepareFault> {
        let extractor = Extractor::prepare(recipe, global, encoder)?;
        // At start, so that no request waits for the examples of learned signals.
        extractor.warm();
        Ok(Self {
            policy: Policy::compile(recipe, &chorus_signals::cost),
            extractor: Arc::new(extractor),
            recipe: recipe.clone(),
            encoder_gate,
        })
    }

    /// Decides about a request.
    ///
    /// # Errors
    /// [`Code::Internal`] when signals and policy do not come to an end.
    pub async fn decide(
        &self,
        request: &Arc<ChatRequest>,
        scope: &Scope,
        depth: Depth,
    ) -> Result<Decided, Fault> {
        let mut found = Found::default();
        for _ in 0..MAX_ROUNDS {
            let progress = match depth {
                Depth::Lazy => self.policy.decide(&found.evidence, scope),
                Depth::Everything => self.policy.explain(&found.evidence, scope),
            };
            match progress {
                Progress::Done(verdict) => {
                    let verdict = Arc::from(verdict);
                    return Ok(Decided { verdict, evidence: found.evidence, timings: found.timings });
                }
                Progress::Need(asks) => found = self.extract(asks, request, found).await?,
            }
        }
        Err(Fault::new(Code::Internal, "the signals of this request did not come to an end"))
    }

    async fn extract(
        &self,
        asks: Vec<Ask>,
        request: &Arc<ChatRequest>,
        found: Found,
    ) -> Result<Found, Fault> {
        if asks.iter().all(|ask| chorus_signals::cost(ask.family) < ENCODER_COST) {
            return Ok(found.extended(&self.extractor, &asks, request));
        }
        // One pass a core at a time: encoders that share a core only make each other late.
        let _permit = self.encoder_gate.acquire().await;
        let (extractor, request) = (Arc::clone(&self.extractor), Arc::clone(request));
        let work = tokio::task::spawn_blocking(move || found.extended(&extractor, &asks, &request));
        work.await.map_err(|_| Fault::new(Code::Internal, "a signal failed badly; see the log"))
    }
}

/// What has been found out so far.
#[derive(Default)]
struct Found {
    evidence: Evidence,
    pass: SharedPass,
    timings: Vec<Timing>,
}

impl Found {
    fn extended(mut self, extractor: &Extractor, asks: &[Ask], request: &ChatRequest) -> Self {
        let subject = Subject::of(request);
        self.timings.extend(extractor.extract(asks, &subject, &mut self.pass, &mut self.evidence));
        self
    }
}
