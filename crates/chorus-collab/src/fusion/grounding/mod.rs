//! Grounding: before answers are compared, each is held against what is known, sentence by sentence.
//!
//! It knows texts and a [`SupportScorer`], no model. Source: contract §2.5 for references, formulas and bounds.
//!
//! **Invariant:** an answer that could not be scored is never dropped, and at least `min_keep` answers stay.

mod meaning;
mod overlap;
mod sentences;

use crate::answers::Survivor;
use crate::calls::{CallFault, FaultKind};
use crate::fault::LoopFault;
use chorus_spec::{GroundingPolicy, GroundingReference, GroundingSettings, OnError};
use chorus_wire::{ChatRequest, Message, Role};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

pub use meaning::{MeaningScorer, TextVectors};
pub(super) use overlap::terms;
pub use overlap::{KnownText, OverlapScorer};

/// Most sentences of an answer that are looked at.
const MAX_SENTENCES: usize = 16;
/// Most characters of each.
const MAX_SENTENCE_CHARS: usize = 600;
/// Most windows of a reference, and the characters of each.
const MAX_WINDOWS: usize = 2;
const WINDOW_CHARS: usize = 1200;
/// A contradiction at least this strong is flagged, in 0..=1.
const FLAG_FROM: f64 = 0.5;
/// Less system text than this many characters instructs rather than informs: `hybrid` then takes the panel.
const CONTEXT_FROM: usize = 400;

/// How far a text supports a sentence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Support {
    /// How far the sentence follows, in 0..=1.
    pub entailed: f64,
    /// How far it is contradicted, in 0..=1.
    pub contradicted: f64,
}

/// Whoever can tell whether a text supports a sentence.
pub trait SupportScorer: fmt::Debug + Send + Sync {
    /// `None` when it cannot tell.
    fn support(&self, sentence: &str, reference: &str) -> Option<Support>;

    /// A scorer that has read those texts, where reading takes time; `None` where this one needs to read nothing first.
    fn reading<'a>(&'a self, _texts: Vec<&'a str>) -> BoxFuture<'a, Option<Arc<dyn SupportScorer>>> {
        async { None }.boxed()
    }
}

/// What grounding found; the `grounding` field of the trace.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroundingTrace {
    /// What the answers were held against.
    pub reference_mode: GroundingReference,
    /// What a badly supported answer costs.
    pub policy: GroundingPolicy,
    /// One an answer, in seat order.
    pub scores: Vec<GroundingScore>,
}

/// How well one answer is supported.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroundingScore {
    /// Who gave it.
    pub model: String,
    /// Its seat, from 0.
    pub seat: usize,
    /// In 0..=1; absent where it could not be scored.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    /// Its sentences that are contradicted, or not supported by the context.
    pub flagged_spans: Vec<String>,
    /// Whether it was left out.
    pub dropped: bool,
}

/// Scores the answers, and leaves out those that the policy drops.
///
/// # Errors
/// [`LoopFault::Judge`] when an answer cannot be scored, under `on_error: fail`.
pub(super) async fn ground(
    settings: &GroundingSettings,
    scorer: &Arc<dyn SupportScorer>,
    ask: &ChatRequest,
    survivors: Vec<Survivor>,
) -> Result<(Vec<Survivor>, GroundingTrace), LoopFault> {
    let context = context(ask, settings.reference);
    let texts = survivors.iter().map(|survivor| &*survivor.text).chain(context.as_deref());
    let reading = scorer.reading(texts.collect()).await;
    let scorer = &**reading.as_ref().unwrap_or(scorer);
    let mut scores: Vec<GroundingScore> = survivors
        .iter()
        .map(|survivor| {
            let (score, flagged_spans) = match &context {
                Some(context) => against_context(scorer, &survivor.text, context),
                None => against_panel(settings, scorer, survivor, &survivors),
            };
            let model = survivor.reply.model.clone();
            GroundingScore { model, seat: survivor.seat, score, flagged_spans, dropped: false }
        })
        .collect();
    if settings.on_error == OnError::Fail && scores.iter().any(|score| score.score.is_none()) {
        let public = "an answer could not be held against its reference".to_owned();
        return Err(LoopFault::Judge(CallFault { kind: FaultKind::Ineligible, public, status: None }));
    }
    if settings.policy == GroundingPolicy::Filter {
        mark_dropped(settings, &mut scores);
    }
    let kept = survivors.into_iter().zip(&scores).filter(|(_, score)| !score.dropped);
    let kept = kept.map(|(survivor, _)| survivor).collect();
    let reference_mode =
        if context.is_some() { GroundingReference::Context } else { GroundingReference::Panel };
    Ok((kept, GroundingTrace { reference_mode, policy: settings.policy, scores }))
}

/// The worst below `min_score` go, as long as `min_keep` answers stay.
fn mark_dropped(settings: &GroundingSettings, scores: &mut [GroundingScore]) {
    let mut spare = scores.len().saturating_sub(settings.min_keep.max(1));
    let mut worst: Vec<&mut GroundingScore> =
        scores.iter_mut().filter(|score| score.score.is_some_and(|s| s < settings.min_score)).collect();
    worst.sort_by(|one, other| one.score.partial_cmp(&other.score).unwrap_or(std::cmp::Ordering::Equal));
    for score in worst {
        score.dropped = spare > 0;
        spare = spare.saturating_sub(1);
    }
}

/// System text and tool results, where the answers are held against these.
fn context(ask: &ChatRequest, reference: GroundingReference) -> Option<String> {
    let is_result = |message: &&Message| message.role == Role::Tool;
    let is_system = |message: &&Message| matches!(message.role, Role::System | Role::Developer);
    let system: Vec<&str> = ask.messages().iter().filter(is_system).map(|m| &*m.text).collect();
    let results: Vec<&str> = ask.messages().iter().filter(is_result).map(|m| &*m.text).collect();
    let informs =
        !results.is_empty() || system.iter().map(|s| s.chars().count()).sum::<usize>() >= CONTEXT_FROM;
    let wanted = match reference {
        GroundingReference::Context => true,
        GroundingReference::Hybrid => informs,
        GroundingReference::Panel => false,
    };
    let text = results.into_iter().chain(system).collect::<Vec<_>>().join("\n");
    Some(text).filter(|text| wanted && !text.trim().is_empty())
}

/// `1 / (1 + unsupported sentences)`.
fn against_context(scorer: &dyn SupportScorer, answer: &str, context: &str) -> (Option<f64>, Vec<String>) {
    let mut unsupported = Vec::new();
    for sentence in sentences::of(answer, MAX_SENTENCES, MAX_SENTENCE_CHARS) {
        // Every window: a fact at the end of a long result is a fact.
        let Some(support) = best(scorer, sentence, sentences::windows(context, usize::MAX, WINDOW_CHARS))
        else {
            return (None, Vec::new());
        };
        if support.entailed < FLAG_FROM {
            unsupported.push(sentence.to_owned());
        }
    }
    (Some(1.0 / (1.0 + unsupported.len() as f64)), unsupported)
}

/// The mean over peers and sentences of `entailed − penalty · contradicted`, mapped to 0..=1.
fn against_panel(
    settings: &GroundingSettings,
    scorer: &dyn SupportScorer,
    answer: &Survivor,
    all: &[Survivor],
) -> (Option<f64>, Vec<String>) {
    let penalty = settings.contradiction_penalty.max(0.0);
    let (mut sum, mut count, mut flagged) = (0.0, 0u32, Vec::new());
    for sentence in sentences::of(&answer.text, MAX_SENTENCES, MAX_SENTENCE_CHARS) {
        let mut contradicted = false;
        for peer in all.iter().filter(|peer| peer.seat != answer.seat) {
            let windows = sentences::windows(&peer.text, MAX_WINDOWS, WINDOW_CHARS);
            let Some(support) = best(scorer, sentence, windows) else { return (None, Vec::new()) };
            sum += support.entailed - penalty * support.contradicted;
            count += 1;
            contradicted |= support.contradicted > support.entailed && support.contradicted >= FLAG_FROM;
        }
        if contradicted {
            flagged.push(sentence.to_owned());
        }
    }
    let score = (count > 0).then(|| ((sum / f64::from(count) + penalty) / (1.0 + penalty)).clamp(0.0, 1.0));
    (score, flagged)
}

/// The strongest word of any window, for or against.
fn best(scorer: &dyn SupportScorer, sentence: &str, windows: Vec<&str>) -> Option<Support> {
    let strength = |support: &Support| support.entailed.max(support.contradicted);
    let supports = windows.into_iter().map(|window| scorer.support(sentence, window));
    supports.collect::<Option<Vec<_>>>()?.into_iter().max_by(|a, b| strength(a).total_cmp(&strength(b)))
}
