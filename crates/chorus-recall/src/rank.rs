//! Two rankings of the same passages, by meaning and by words, made one.
//!
//! It knows scores, not texts.

/// Share of words in a weighted mean; meaning has the rest.
const LEXICAL_SHARE: f64 = 0.3;

/// The constant of reciprocal ranks. Source: Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion outperforms Condorcet
/// and individual Rank Learning Methods", SIGIR 2009: k = 60.
const RECIPROCAL_K: f64 = 60.0;

/// A weighted mean of meaning (in 0..=1) and words (best is 1), one a passage.
#[must_use]
pub fn weighted(meaning: &[f64], lexical: &[f64]) -> Vec<f64> {
    let mixed = |(meaning, lexical): (&f64, &f64)| (1.0 - LEXICAL_SHARE) * meaning + LEXICAL_SHARE * lexical;
    meaning.iter().zip(lexical).map(mixed).collect()
}

/// Sums of reciprocal ranks, scaled so that first place in both is 1; a passage without any word in common has no rank
/// by words.
#[must_use]
pub fn reciprocal(meaning: &[f64], lexical: &[f64]) -> Vec<f64> {
    let best = 2.0 / (RECIPROCAL_K + 1.0);
    let (by_meaning, by_words) = (ranks(meaning), ranks(lexical));
    let points = |rank: usize| 1.0 / (RECIPROCAL_K + rank as f64);
    let rows = by_meaning.iter().zip(&by_words).zip(lexical);
    rows.map(|((first, second), words)| {
        let second = if *words > 0.0 { points(*second) } else { 0.0 };
        (points(*first) + second) / best
    })
    .collect()
}

/// The place of each score, from 1; of equals the earlier passage is first.
fn ranks(scores: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..scores.len()).collect();
    let score = |at: &usize| scores.get(*at).copied().unwrap_or(f64::NEG_INFINITY);
    order.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
    let mut ranks = vec![0; scores.len()];
    for (place, at) in order.into_iter().enumerate() {
        if let Some(rank) = ranks.get_mut(at) {
            *rank = place + 1;
        }
    }
    ranks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_break_a_tie_of_meaning() {
        let mixed = weighted(&[0.5, 0.5], &[0.0, 1.0]);
        assert!((mixed[0] - 0.35).abs() < 1e-12 && (mixed[1] - 0.65).abs() < 1e-12);
    }

    #[test]
    fn first_in_both_is_one_and_no_word_in_common_counts_half_at_most() {
        let sums = reciprocal(&[0.9, 0.1, 0.5], &[3.0, 0.0, 1.0]);
        assert!((sums[0] - 1.0).abs() < 1e-12, "{sums:?}");
        assert!(sums[2] > sums[1] && sums[1] < 0.5, "{sums:?}");
    }
}
