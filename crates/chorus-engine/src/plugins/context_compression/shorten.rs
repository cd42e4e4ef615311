//! One part, shortened: its passages are ranked by words, by meaning or by both.

use super::super::at_work::Scene;
use super::super::likeness::Likeness;
use super::parts::{Kind, Part};
use super::retrieval::TOOL;
use crate::mom::Mom;
use chorus_recall::bm25::scaled;
use chorus_recall::{Bm25, Draft, Shortened, rank};
use chorus_spec::{CompressionMode, CompressionScoring, CompressionSettings};
use chorus_store::OriginalsRule;
use std::time::Instant;

/// Most passages of one part that the encoder reads: the best by words (`max_encoded_passages`).
const ENCODED_MOST: usize = 64;

/// What one request's parts are shortened with.
pub(super) struct Work<'a> {
    settings: &'a CompressionSettings,
    mom: &'a Mom,
    /// The client's target for results of tools.
    wished: Option<u64>,
    /// The run whose model can ask for originals, where it can.
    keeps_for: Option<&'a Scene>,
    originals: usize,
    /// Whether meaning could not be told.
    by_words_only: bool,
}

impl<'a> Work<'a> {
    pub(super) fn new(settings: &'a CompressionSettings, mom: &'a Mom, wished: Option<u64>) -> Self {
        Self { settings, mom, wished, keeps_for: None, originals: 0, by_words_only: false }
    }

    /// The same where the model of a run can ask for originals.
    pub(super) fn keeping(self, scene: &'a Scene) -> Self {
        Self { keeps_for: Some(scene), ..self }
    }

    /// The part, shortened; `None` where it cannot be.
    pub(super) async fn shorten(&mut self, part: &Part) -> Option<Shortened> {
        let draft = Draft::of(&part.text);
        let scores = self.scores(&draft, &part.question).await;
        let wished = self.wished.filter(|_| part.kind == Kind::ToolOutput);
        let target = wished.unwrap_or(part.target.target_tokens);
        let key = format!("r{}", self.originals + 1);
        if part.target.mode == CompressionMode::Recoverable && self.keep(&key, part) {
            let note = format!("; {TOOL} with key {key} gives the original");
            let short = draft.shorten(&scores, target, &note);
            self.originals += usize::from(short.is_some());
            return short;
        }
        draft.shorten(&scores, target, "")
    }

    /// How many originals wait.
    pub(super) fn originals(&self) -> usize {
        self.originals
    }

    pub(super) fn has_originals(&self) -> bool {
        self.originals > 0
    }

    /// By what passages were ranked.
    pub(super) fn scoring(&self) -> &'static str {
        match self.settings.scoring {
            _ if self.by_words_only => "bm25_only",
            CompressionScoring::Bm25 => "bm25",
            CompressionScoring::Embedding => "embedding",
            CompressionScoring::Hybrid => "hybrid",
        }
    }

    fn keep(&self, key: &str, part: &Part) -> bool {
        let Some(scene) = self.keeps_for else { return false };
        let recovery = self.settings.recovery;
        let rule = OriginalsRule {
            ttl: recovery.ttl,
            max_bytes_per_scope: recovery.max_bytes_per_request,
            max_total_bytes: recovery.max_total_bytes,
        };
        let originals = &scene.mom.shelf.originals;
        originals.put(&scene.run, key, part.text.clone(), &rule, Instant::now())
    }

    async fn scores(&mut self, draft: &Draft<'_>, question: &str) -> Vec<f64> {
        let units = draft.units();
        let words = scaled(&Bm25::of(units.iter().copied()).scores(question));
        if self.settings.scoring == CompressionScoring::Bm25 {
            return words;
        }
        let Some(meaning) = self.meanings(&units, &words, question).await else {
            self.by_words_only = true;
            return words;
        };
        match self.settings.scoring {
            CompressionScoring::Hybrid => rank::weighted(&meaning, &words),
            _ => meaning,
        }
    }

    /// How alike each passage and the question are; 0 for passages beyond the best by words.
    async fn meanings(&self, units: &[&str], words: &[f64], question: &str) -> Option<Vec<f64>> {
        let mut order = chorus_recall::tools::best_first(words);
        order.truncate(ENCODED_MOST);
        let passages = order.iter().filter_map(|at| units.get(*at)).map(|text| (*text).to_owned());
        let texts = std::iter::once(question.to_owned()).chain(passages).collect();
        let likeness = Likeness::of(self.mom);
        let mut vectors = likeness.vectors(texts).await.ok()?.into_iter();
        let asked = vectors.next()?;
        let mut meaning = vec![0.0; units.len()];
        for (at, vector) in order.into_iter().zip(vectors) {
            if let Some(slot) = meaning.get_mut(at) {
                *slot = likeness.between(&vector, &asked);
            }
        }
        Some(meaning)
    }
}
