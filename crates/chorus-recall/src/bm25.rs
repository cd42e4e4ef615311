//! Okapi BM25 over a handful of passages.
//!
//! Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, §3, with the usual
//! k1 = 1.2 and b = 0.75; the weight of a word is ln(1 + (N − n + ½) / (n + ½)), which is never negative.

use crate::terms::terms;
use std::collections::{BTreeMap, BTreeSet};

const K1: f64 = 1.2;
const B: f64 = 0.75;

/// Passages, ready to be scored.
#[derive(Debug, Clone)]
pub struct Bm25 {
    counts: Vec<BTreeMap<String, u32>>,
    lengths: Vec<f64>,
    mean_length: f64,
    holders: BTreeMap<String, u32>,
}

impl Bm25 {
    /// Reads passages.
    pub fn of<'a>(passages: impl IntoIterator<Item = &'a str>) -> Self {
        let mut it =
            Self { counts: Vec::new(), lengths: Vec::new(), mean_length: 1.0, holders: BTreeMap::new() };
        for passage in passages {
            let words = terms(passage);
            it.lengths.push(words.len() as f64);
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            words.into_iter().for_each(|word| *counts.entry(word).or_insert(0) += 1);
            counts.keys().for_each(|word| *it.holders.entry(word.clone()).or_insert(0) += 1);
            it.counts.push(counts);
        }
        let total: f64 = it.lengths.iter().sum();
        if total > 0.0 {
            it.mean_length = total / it.lengths.len() as f64;
        }
        it
    }

    /// One score a passage, at least 0; a word that the query repeats counts once.
    #[must_use]
    pub fn scores(&self, query: &str) -> Vec<f64> {
        let words: BTreeSet<String> = terms(query).into_iter().collect();
        let score = |(counts, length): (&BTreeMap<String, u32>, &f64)| {
            words.iter().map(|word| self.weight(word) * self.share(counts, *length, word)).sum()
        };
        self.counts.iter().zip(&self.lengths).map(score).collect()
    }

    fn weight(&self, word: &str) -> f64 {
        let (all, holders) =
            (self.counts.len() as f64, f64::from(self.holders.get(word).copied().unwrap_or(0)));
        (1.0 + (all - holders + 0.5) / (holders + 0.5)).ln()
    }

    fn share(&self, counts: &BTreeMap<String, u32>, length: f64, word: &str) -> f64 {
        let count = f64::from(counts.get(word).copied().unwrap_or(0));
        count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length / self.mean_length))
    }
}

/// Scores scaled so that the best is 1; all 0 where none is above 0.
#[must_use]
pub fn scaled(scores: &[f64]) -> Vec<f64> {
    let best = scores.iter().copied().fold(0.0, f64::max);
    scores.iter().map(|score| if best > 0.0 { score / best } else { 0.0 }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rare_word_outweighs_a_common_one() {
        let passages = ["the port is open", "the door is open", "the port of Kiel", "the sea is open"];
        let scores = Bm25::of(passages).scores("the port open?");
        assert!(scores[0] > scores[2] && scores[2] > scores[3], "a port outweighs `open`: {scores:?}");
    }

    #[test]
    fn nothing_in_common_is_zero() {
        assert_eq!(Bm25::of(["a b", ""]).scores("c"), [0.0, 0.0]);
        assert_eq!(Bm25::of([]).scores("c"), Vec::<f64>::new());
        assert_eq!(scaled(&[0.0, 0.0]), [0.0, 0.0]);
        assert_eq!(scaled(&[1.0, 4.0]), [0.25, 1.0]);
    }

    #[test]
    fn scores_by_hand() {
        // One passage of two words holds the word once; N = 2, n = 1: ln 2 × 2.2 / (1 + 1.2).
        let scores = Bm25::of(["cat mat", "dog log"]).scores("cat cat");
        assert!((scores[0] - 2f64.ln()).abs() < 1e-12, "{scores:?}");
    }
}
