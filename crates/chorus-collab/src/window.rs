//! Fits what judge and writer are shown into a model's context window. It counts by estimate, so it keeps a margin.

use crate::calls::ModelCalls;
use crate::compact::{self, Cut};
use crate::fault::LoopFault;
use crate::fence::Material;
use crate::question::without_images;
use chorus_wire::{ChatRequest, tokens};

/// Bytes that the estimate of `chorus_wire::tokens` takes for one token.
const BYTES_PER_TOKEN: u64 = 4;
/// Output tokens that are kept free where nobody says how many.
const DEFAULT_RESERVE: u64 = 1024;

/// Tokens that an image counts for here. The contract's 8,192 is a router's upper bound; it would leave a window of
/// 8,192 no room at all. Source: OpenAI's vision guide, a 1,024 px image in high detail takes 765.
const TOKENS_PER_IMAGE: u64 = 1024;

/// The context window of one model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    model: &'a str,
    tokens: Option<u64>,
}

/// The texts of the material as they fit.
#[derive(Debug)]
pub(crate) struct Fitted {
    /// The text that stands beside the answers: the context for a judge, the analysis for a writer.
    pub(crate) beside: Cut,
    /// One an answer of the material.
    answers: Vec<Cut>,
}

impl Fitted {
    /// The answers' texts.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &str> {
        self.answers.iter().map(|cut| &*cut.text)
    }

    /// What was cut: the letter of the answer (`beside` names the other text), bytes before and after.
    pub(crate) fn cuts<'a>(
        &'a self,
        material: &'a Material,
        beside: &'a str,
    ) -> Vec<(&'a str, usize, usize)> {
        let labels = material.answers.iter().map(|answer| &*answer.label).chain([beside]);
        let cuts = self.answers.iter().chain([&self.beside]);
        let cut =
            |(label, cut): (&'a str, &Cut)| cut.is_cut().then_some((label, cut.from_bytes, cut.text.len()));
        labels.zip(cuts).filter_map(cut).collect()
    }
}

impl<'a> Window<'a> {
    /// The window that `calls` declares for the model.
    pub(crate) fn of(calls: &dyn ModelCalls, model: &'a str) -> Self {
        Self { model, tokens: calls.context_window(model) }
    }

    /// The material's answers, and the text beside them, cut to the room that a prompt of `fixed` tokens leaves;
    /// `cap` is the output that must stay possible.
    ///
    /// # Errors
    /// [`LoopFault::Overflow`].
    pub(crate) fn fit(
        &self,
        material: &Material,
        beside: &str,
        fixed: u64,
        cap: Option<u64>,
    ) -> Result<Fitted, LoopFault> {
        let mut texts: Vec<&str> = material.answers.iter().map(|answer| &*answer.text).collect();
        texts.push(beside);
        let fitted = compact::fit(&texts, self.room_bytes(fixed, cap)).and_then(|mut cuts| {
            let beside = cuts.pop()?;
            Some(Fitted { beside, answers: cuts })
        });
        fitted.ok_or_else(|| self.overflow())
    }

    /// That nothing more can be cut.
    pub(crate) fn overflow(&self) -> LoopFault {
        LoopFault::Overflow { model: self.model.to_owned(), window: self.tokens.unwrap_or_default() }
    }

    /// The cap lowered to what a prompt of `used` tokens and the margin leave; at least 1.
    pub(crate) fn cap(&self, cap: u64, used: u64) -> u64 {
        self.tokens.map_or(cap, |window| cap.min(with_margin(window).saturating_sub(used)).max(1))
    }

    /// Bytes left beside `fixed` tokens, the margin, and the output: all of `cap`, but at most a quarter.
    pub(crate) fn room_bytes(&self, fixed: u64, cap: Option<u64>) -> usize {
        let Some(window) = self.tokens else {
            return usize::MAX;
        };
        let reserve = cap.unwrap_or(DEFAULT_RESERVE).min(window / 4);
        let left = with_margin(window).saturating_sub(reserve).saturating_sub(fixed);
        usize::try_from(left.saturating_mul(BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
    }
}

/// Tokens of a request without the output it reserves.
pub(crate) fn prompt_tokens(ask: &ChatRequest) -> u64 {
    let images: usize = ask.messages().iter().map(|m| m.images).sum();
    let mut counted = ask.clone();
    counted.remove("max_tokens");
    counted.remove("max_completion_tokens");
    counted.set_messages(ask.messages().iter().map(without_images).collect());
    tokens::of_request(&counted) + TOKENS_PER_IMAGE * images as u64
}

/// A window less an eighth, because tokens are counted by estimate.
fn with_margin(window: u64) -> u64 {
    window - window / 8
}
