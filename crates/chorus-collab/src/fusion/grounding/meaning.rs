//! Support by meaning: sentences are compared by an encoder's vectors, and what vectors do not see (numbers, negation) by
//! words.
//!
//! A sentence is supported as far as one sentence of the reference has its words or means much the same; it is
//! contradicted where that sentence speaks of the same thing with other numbers, or with a negation that it lacks. What the
//! encoder does not know is judged by words alone. It knows no encoder: vectors come from a [`TextVectors`].
//!
//! **Invariant:** no likeness of vectors outweighs a number or a negation that disagrees.

use super::overlap::{OverlapScorer, SAME_SUBJECT, Words};
use super::{MAX_SENTENCE_CHARS, MAX_SENTENCES, Support, SupportScorer, WINDOW_CHARS, sentences};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// Most sentences that one run encodes; further ones are judged by their words.
const MOST_SENTENCES: usize = 512;
/// Cosines up to here say nothing: sentences of one topic have them. A choice, not a measurement.
const UNRELATED: f64 = 0.5;
/// Cosines from here on mean the same: paraphrases have them. A choice, not a measurement.
const THE_SAME: f64 = 0.9;

/// Whoever can turn texts into unit vectors, one a text, in their order.
pub trait TextVectors: fmt::Debug + Send + Sync {
    /// `None` when it cannot.
    fn vectors(&self, texts: Vec<String>) -> BoxFuture<'_, Option<Vec<Vec<f32>>>>;
}

/// The scorer.
#[derive(Debug, Clone)]
pub struct MeaningScorer {
    vectors: Arc<dyn TextVectors>,
}

impl MeaningScorer {
    /// One over those vectors.
    #[must_use]
    pub fn new(vectors: Arc<dyn TextVectors>) -> Self {
        Self { vectors }
    }
}

impl SupportScorer for MeaningScorer {
    /// Without having read anything it goes by words.
    fn support(&self, sentence: &str, reference: &str) -> Option<Support> {
        OverlapScorer.support(sentence, reference)
    }

    fn reading<'a>(&'a self, texts: Vec<&'a str>) -> BoxFuture<'a, Option<Arc<dyn SupportScorer>>> {
        async move {
            let sentences: Vec<String> = all_sentences(&texts).into_iter().map(str::to_owned).collect();
            let vectors = self.vectors.vectors(sentences.clone()).await?;
            let known = sentences.into_iter().zip(vectors).collect();
            Some(Arc::new(Read { known }) as Arc<dyn SupportScorer>)
        }
        .boxed()
    }
}

/// The sentences that will be asked about: those of answers, and those of references' windows.
fn all_sentences<'a>(texts: &[&'a str]) -> BTreeSet<&'a str> {
    let mut all = BTreeSet::new();
    for text in texts {
        all.extend(sentences::of(text, MAX_SENTENCES, MAX_SENTENCE_CHARS));
        for window in sentences::windows(text, usize::MAX, WINDOW_CHARS) {
            all.extend(sentences::of(window, usize::MAX, usize::MAX));
        }
        if all.len() >= MOST_SENTENCES {
            break;
        }
    }
    all.into_iter().take(MOST_SENTENCES).collect()
}

/// A scorer that has read all sentences.
#[derive(Debug)]
struct Read {
    known: BTreeMap<String, Vec<f32>>,
}

impl Read {
    /// How far two sentences mean the same, in 0..=1; 0 where one was not read.
    fn likeness(&self, one: &str, other: &str) -> f64 {
        let (Some(one), Some(other)) = (self.known.get(one), self.known.get(other)) else { return 0.0 };
        let cosine: f64 = one.iter().zip(other).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
        ((cosine - UNRELATED) / (THE_SAME - UNRELATED)).clamp(0.0, 1.0)
    }
}

impl SupportScorer for Read {
    fn support(&self, sentence: &str, reference: &str) -> Option<Support> {
        let claim = Words::of(sentence);
        let known = sentences::of(reference, usize::MAX, usize::MAX).into_iter();
        let likeness = known.map(|known| {
            let words = Words::of(known);
            (claim.recall(&words).max(self.likeness(sentence, known)), words)
        });
        let Some((alike, known)) = likeness.max_by(|a, b| a.0.total_cmp(&b.0)) else {
            return Some(Support { entailed: 0.0, contradicted: 0.0 });
        };
        Some(if alike >= SAME_SUBJECT && claim.conflicts(&known) {
            Support { entailed: 0.0, contradicted: alike }
        } else {
            Support { entailed: alike, contradicted: 0.0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sentences about bridges lie one way, about penguins another; nothing else is known.
    #[derive(Debug)]
    struct ByTopic;

    impl TextVectors for ByTopic {
        fn vectors(&self, texts: Vec<String>) -> BoxFuture<'_, Option<Vec<Vec<f32>>>> {
            let of = |text: &String| match () {
                () if text.contains("penguin") => vec![0.0, 1.0],
                () => vec![1.0, 0.0],
            };
            async move { Some(texts.iter().map(of).collect()) }.boxed()
        }
    }

    #[derive(Debug)]
    struct Broken;

    impl TextVectors for Broken {
        fn vectors(&self, _texts: Vec<String>) -> BoxFuture<'_, Option<Vec<Vec<f32>>>> {
            async { None }.boxed()
        }
    }

    const KNOWN: &str = "The bridge was opened in 1932.";

    #[tokio::test]
    async fn paraphrases_support_and_numbers_and_negations_still_contradict() {
        let scorer = MeaningScorer::new(Arc::new(ByTopic));
        for (sentence, entailed, contradicted) in [
            ("Traffic could cross for the first time in 1932.", true, false),
            ("Traffic could cross for the first time in 1950.", false, true),
            ("Traffic could not cross in 1932.", false, true),
            ("A penguin cannot fly.", false, false),
        ] {
            let read = scorer.reading(vec![sentence, KNOWN]).await.unwrap();
            let support = read.support(sentence, KNOWN).unwrap();
            let got = (support.entailed >= 0.5, support.contradicted >= 0.5);
            assert_eq!(got, (entailed, contradicted), "{sentence}: {support:?}");
        }
    }

    #[tokio::test]
    async fn without_vectors_words_count() {
        assert!(MeaningScorer::new(Arc::new(Broken)).reading(vec![KNOWN]).await.is_none());
        let support = MeaningScorer::new(Arc::new(Broken)).support(KNOWN, KNOWN).unwrap();
        assert!(support.entailed > 0.9);
    }

    #[test]
    fn what_one_run_encodes_is_bounded() {
        let long: String = (0..2000).map(|n| format!("Sentence number {n}.\n")).collect();
        assert_eq!(all_sentences(&[&long]).len(), MOST_SENTENCES);
    }
}
