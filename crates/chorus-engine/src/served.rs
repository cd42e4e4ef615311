//! A recipe ready to serve: its policy compiled, its signals prepared, and the loop between the two.
//!
//! The policy says what it still needs, cheapest first; signals answer; until the winner is certain. Heuristics run
//! where they are asked, the encoder in a thread of its own.
//!
//! **Invariant:** a signal that the winner does not depend on is never computed for a live request.

use crate::adviser::Adviser;
use crate::fault::{Code, Fault};
use crate::selection::SessionWords;
use crate::tally::{FamilyTally, Tally};
use crate::turns::Turns;
use chorus_policy::{Ask, Evidence, Observation, Policy, Progress, Scope, Verdict};
use chorus_signals::{Caller, Equipment, Extractor, KnowledgeUse, SharedPass, Subject, Timing};
use chorus_spec::{Family, Global, Recipe, SignalKey};
use chorus_wire::ChatRequest;
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;

/// From this cost on a signal leaves the request's own task.
const ENCODER_COST: u8 = 3;

/// Most rounds: more than there are cost tiers would mean that a signal did not answer what it was asked.
const MAX_ROUNDS: usize = 64;

/// A recipe ready to serve.
pub struct ServedRecipe {
    /// As written.
    pub recipe: Recipe,
    policy: Policy,
    extractor: Arc<Extractor>,
    encoder_gate: Arc<Semaphore>,
    tally: Tally,
    /// One for each decision.
    turns: Vec<Turns>,
}

/// How much is evaluated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Only what the winner depends on.
    Lazy,
    /// Everything the recipe has.
    Everything,
}

/// A request, and who makes it.
#[derive(Debug, Clone)]
pub struct Asked {
    /// The request.
    pub request: Arc<ChatRequest>,
    /// The caller, where somebody vouches for one.
    pub caller: Option<Arc<Caller>>,
    /// Who asks models for signals and choices; nobody in a dry run, nor where the file has no such question.
    pub adviser: Option<Adviser>,
    /// Which conversation it belongs to, in the client's words.
    pub session: SessionWords,
    /// Whether nobody is called, and nothing counted.
    pub dry: bool,
}

impl Asked {
    /// A request of nobody known that no model is asked about.
    #[must_use]
    pub fn dry(request: Arc<ChatRequest>) -> Self {
        Self { request, caller: None, adviser: None, session: SessionWords::default(), dry: true }
    }
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
    /// Texts that the encoder has read for them.
    pub pass: SharedPass,
}

impl ServedRecipe {
    /// Prepares a recipe.
    ///
    /// # Errors
    /// A signal that cannot be prepared.
    pub fn prepare(
        recipe: &Recipe,
        global: &Global,
        equipment: Equipment,
        encoder_gate: Arc<Semaphore>,
    ) -> Result<Self, chorus_signals::PrepareFault> {
        let extractor = Extractor::prepare_with(recipe, global, equipment)?;
        // At start, so that no request waits for the examples of learned signals.
        extractor.warm();
        Ok(Self {
            policy: Policy::compile(recipe, &chorus_signals::cost_in(recipe)),
            extractor: Arc::new(extractor),
            recipe: recipe.clone(),
            encoder_gate,
            tally: Tally::default(),
            turns: recipe.decisions.iter().map(|decision| Turns::of(&decision.plugins)).collect(),
        })
    }

    /// The turns of a decision's plugins, by its place.
    pub(crate) fn turns(&self, decision: usize) -> Option<&Turns> {
        self.turns.get(decision)
    }

    /// Adds what its signals came to in live requests.
    pub fn tally(&self, all: &mut BTreeMap<Family, FamilyTally>) {
        self.tally.add_to(all);
    }

    /// Where the recipe's knowledge bases came from.
    #[must_use]
    pub fn knowledge(&self) -> Vec<KnowledgeUse> {
        self.extractor.knowledge().to_vec()
    }

    /// Whether a signal of it asks a model.
    #[must_use]
    pub fn asks_models(&self) -> bool {
        self.extractor.asks_models()
    }

    /// The models whose vocabularies count tokens; none where tokens are estimated.
    #[must_use]
    pub fn counters(&self) -> Vec<String> {
        self.extractor.counters().to_vec()
    }

    /// The cosine behind each observation whose raw value is on the scale of configuration files.
    #[must_use]
    pub fn cosines(&self, evidence: &Evidence) -> BTreeMap<SignalKey, f64> {
        let cosine = |(key, seen): (&SignalKey, &Observation)| match seen {
            Observation::Matched { raw: Some(raw), .. } | Observation::Unmatched { raw: Some(raw) } => {
                self.extractor.cosine(key.family, *raw).map(|cosine| (key.clone(), cosine))
            }
            _ => None,
        };
        evidence.iter().filter_map(cosine).collect()
    }

    /// Decides about a request.
    ///
    /// # Errors
    /// [`Code::Internal`] when signals and policy do not come to an end.
    pub async fn decide(&self, asked: &Asked, scope: &Scope, depth: Depth) -> Result<Decided, Fault> {
        let mut found = Found::default();
        for _ in 0..MAX_ROUNDS {
            let progress = match depth {
                Depth::Lazy => self.policy.decide(&found.evidence, scope),
                Depth::Everything => self.policy.explain(&found.evidence, scope),
            };
            match progress {
                Progress::Done(verdict) => {
                    let verdict = Arc::from(verdict);
                    let decided = Decided {
                        verdict,
                        evidence: found.evidence,
                        timings: found.timings,
                        pass: found.pass,
                    };
                    if depth == Depth::Lazy {
                        self.tally.count(&decided.evidence, &decided.timings);
                    }
                    return Ok(decided);
                }
                Progress::Need(asks) => found = self.extract(asks, asked, found).await?,
            }
        }
        Err(Fault::new(Code::Internal, "the signals of this request did not come to an end"))
    }

    async fn extract(&self, mut asks: Vec<Ask>, asked: &Asked, mut found: Found) -> Result<Found, Fault> {
        if let Some(adviser) = &asked.adviser {
            self.ask_models(adviser, &mut asks, asked, &mut found).await;
        }
        if asks.iter().all(|ask| chorus_signals::cost(ask.family) < ENCODER_COST) {
            return Ok(found.extended(&self.extractor, &asks, asked));
        }
        // One pass a core at a time: encoders that share a core only make each other late.
        let _permit = self.encoder_gate.acquire().await;
        let (extractor, asked) = (Arc::clone(&self.extractor), asked.clone());
        let work = tokio::task::spawn_blocking(move || found.extended(&extractor, &asks, &asked));
        work.await.map_err(|_| Fault::new(Code::Internal, "a signal failed badly; see the log"))
    }
}

impl ServedRecipe {
    /// Puts the questions among the asks to their models, all at once, and takes them off the asks.
    async fn ask_models(&self, adviser: &Adviser, asks: &mut Vec<Ask>, asked: &Asked, found: &mut Found) {
        let questions = self.extractor.questions(asks, &Subject::of(&asked.request));
        if questions.is_empty() {
            return;
        }
        let answers = join_all(questions.iter().map(|question| async move {
            let started = Instant::now();
            (adviser.label(question).await, started.elapsed())
        }));
        for (question, (answer, took)) in questions.iter().zip(answers.await) {
            question.observe(&answer, &mut found.evidence);
            let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            let rule = question.rule.as_str().into();
            found.timings.push(Timing { family: Family::Classifier, rule, micros });
        }
        asks.retain(|ask| !questions.iter().any(|question| question.answers(ask)));
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
    fn extended(mut self, extractor: &Extractor, asks: &[Ask], asked: &Asked) -> Self {
        let subject = Subject::of(&asked.request).with_caller(asked.caller.as_deref());
        self.timings.extend(extractor.extract(asks, &subject, &mut self.pass, &mut self.evidence));
        self
    }
}
