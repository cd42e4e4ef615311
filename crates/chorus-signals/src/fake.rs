//! Encoders for tests: a hashed bag of words, and one that fails. Not part of the crate outside tests.
//!
//! **Invariant:** the same text gives the same vector on every machine.

use crate::lexicon::Lexicon;
use crate::measure::{Look, Measure};
use crate::pass::SharedPass;
use crate::subject::Subject;
use chorus_infer::{EncodeFault, TextEncoder};
use chorus_policy::Evidence;
use chorus_spec::{KnowledgeBase, Place, PrototypeScoring, Signal, SignalKind};

/// A rule of that name.
pub(crate) fn signal(name: &str, kind: SignalKind) -> Signal {
    Signal { name: name.to_owned(), description: String::new(), kind, place: Place::default() }
}

/// A knowledge base of those groups, its manifest in that folder.
pub(crate) fn knowledge_base(name: &str, path: &str, groups: &[(&str, &[&str])]) -> KnowledgeBase {
    let owned = |labels: &[&str]| labels.iter().map(|label| (*label).to_owned()).collect();
    KnowledgeBase {
        name: name.to_owned(),
        path: path.to_owned(),
        manifest: "labels.json".to_owned(),
        threshold: 0.5,
        label_thresholds: Vec::new(),
        groups: groups.iter().map(|(group, labels)| ((*group).to_owned(), owned(labels))).collect(),
        metrics: Vec::new(),
        prototypes: PrototypeScoring::default(),
        place: Place::default(),
    }
}

/// What a measure says of a request.
pub(crate) fn measured(
    measure: &dyn Measure,
    encoder: Option<&dyn TextEncoder>,
    subject: &Subject<'_>,
) -> Evidence {
    let (mut pass, mut evidence) = (SharedPass::new(), Evidence::default());
    measure.measure(&mut Look::new(encoder, &Lexicon::default(), subject, &mut pass), &mut evidence);
    evidence
}

/// Texts that share words are near; texts that share none are orthogonal, but for collisions in 256 slots.
pub(crate) struct WordBag;

/// Words a window.
const WINDOW_WORDS: usize = 24;

impl TextEncoder for WordBag {
    fn digest(&self) -> &str {
        "sha256:word-bag"
    }

    fn dimension(&self) -> usize {
        256
    }

    fn encode(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        Ok(texts.iter().map(|text| bag(text.split_whitespace())).collect())
    }

    fn encode_windows(&self, text: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        let words: Vec<&str> = text.split_whitespace().collect();
        Ok(words.chunks(WINDOW_WORDS).map(|window| bag(window.iter().copied())).collect())
    }

    fn count_tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }
}

fn bag<'t>(words: impl Iterator<Item = &'t str>) -> Vec<f32> {
    let mut vector = vec![0.0_f32; 256];
    for word in words {
        let hash = word
            .bytes()
            .fold(2_166_136_261_u32, |h, b| (h ^ u32::from(b.to_ascii_lowercase())).wrapping_mul(16_777_619));
        vector[(hash % 256) as usize] += 1.0;
    }
    let length = vector.iter().map(|v| v * v).sum::<f32>().sqrt().max(f32::MIN_POSITIVE);
    vector.iter().map(|v| v / length).collect()
}

/// An encoder that always fails.
pub(crate) struct Broken;

impl TextEncoder for Broken {
    fn digest(&self) -> &str {
        "sha256:broken"
    }

    fn dimension(&self) -> usize {
        256
    }

    fn encode(&self, _: &[&str]) -> Result<Vec<Vec<f32>>, EncodeFault> {
        Err(EncodeFault("the encoder broke".to_owned()))
    }

    fn encode_windows(&self, _: &str) -> Result<Vec<Vec<f32>>, EncodeFault> {
        Err(EncodeFault("the encoder broke".to_owned()))
    }

    fn count_tokens(&self, _: &str) -> usize {
        0
    }
}

/// A head over [`WordBag`]: each label is likely where its word stands.
pub(crate) fn head_of_words(labels: &[(&str, &str)]) -> &'static chorus_infer::Head {
    let card = chorus_infer::heads::HeadCard {
        labels: labels.iter().map(|(label, _)| (*label).to_owned()).collect(),
        encoder_digest: WordBag.digest().to_owned(),
        data_digest: "sha256:none".to_owned(),
        temperature: 0.1,
        temperature_elsewhere: None,
    };
    let weights = labels.iter().flat_map(|(_, word)| bag(std::iter::once(*word))).collect();
    Box::leak(Box::new(chorus_infer::Head::new(card, weights, vec![0.0; labels.len()]).unwrap()))
}

/// A head over [`WordBag`] and [`chorus_infer::lexical`]: each label is likely where its word stands.
pub(crate) fn worded_head(labels: &[(&str, &str)]) -> &'static chorus_infer::Head {
    let card = chorus_infer::heads::HeadCard {
        labels: labels.iter().map(|(label, _)| (*label).to_owned()).collect(),
        encoder_digest: chorus_infer::lexical::digest(WordBag.digest()),
        data_digest: "sha256:none".to_owned(),
        temperature: 0.1,
        temperature_elsewhere: None,
    };
    let row = |word: &str| chorus_infer::lexical::join(&bag(std::iter::once(word)), word);
    let weights = labels.iter().flat_map(|(_, word)| row(word)).collect();
    Box::leak(Box::new(chorus_infer::Head::new(card, weights, vec![0.0; labels.len()]).unwrap()))
}
