//! How alike two texts must be, by how many of their words they share.
//!
//! Texts that share most of their words are alike for that reason alone, whatever they ask for: "how do I see the rewards of
//! my card", "how do I redeem the rewards of my card". So the more words two texts share, the more alike they must be. It
//! knows no encoder; likenesses are on the scale of configuration files. **Invariant:** the more words, the more.

use super::Reading;

/// What sharing every word adds to the least likeness. Source: `chorus lab cache-eval --data`, which chooses it.
pub const WORDING: f64 = 0.25;

/// Texts so alike are alike enough, whatever they share. Source: as above.
const ENOUGH: f64 = 0.94;

/// The least likeness of two texts that share that part of their words, in 0..=1, where `threshold` is that of two texts that
/// share none.
#[must_use]
pub fn least_alike(threshold: f64, shared: f64) -> f64 {
    least_alike_by(WORDING, threshold, shared)
}

/// The same where sharing every word adds `wording`.
#[must_use]
pub fn least_alike_by(wording: f64, threshold: f64, shared: f64) -> f64 {
    (threshold + wording * shared).min(ENOUGH.max(threshold))
}

/// The part of all words of either text that both have, in 0..=1: forms of one word, and words that say the same, are one.
#[must_use]
pub fn shared(a: &Reading, b: &Reading) -> f64 {
    let (both, all) = a.words.in_common(&b.words);
    if all == 0 { 1.0 } else { both as f64 / all as f64 }
}

/// Parts of shared words that a [`Least`] tells apart.
const STEPS: usize = 100;

/// The least cosine of two texts by the part of their words that they share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Least {
    /// For each step, from no word to all of them.
    cosines: [f64; STEPS + 1],
}

impl Least {
    /// For a threshold on the scale of configuration files, and what that scale's values are as cosines.
    #[must_use]
    pub fn of(threshold: f64, cosine: impl Fn(f64) -> f64) -> Self {
        let at = |step: usize| cosine(least_alike(threshold, step as f64 / STEPS as f64));
        Self { cosines: std::array::from_fn(at) }
    }

    /// Below this nothing is alike enough, whatever it shares.
    #[must_use]
    pub fn of_any(&self) -> f64 {
        self.cosines.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// For two texts that share that part of their words; between two steps, the greater.
    #[must_use]
    pub fn for_shared(&self, shared: f64) -> f64 {
        let step = (shared.clamp(0.0, 1.0) * STEPS as f64).ceil() as usize;
        self.cosines.get(step).copied().unwrap_or(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_words_two_texts_share_the_more_alike_they_must_be() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
        let least = Least::of(0.6, |it| it);
        close(least.of_any(), 0.6);
        close(least.for_shared(0.0), 0.6);
        close(least.for_shared(0.501), 0.6 + WORDING * 0.51);
        close(least.for_shared(1.0), 0.6 + WORDING);
        close(Least::of(0.9, |it| it).for_shared(1.0), ENOUGH);
        close(Least::of(0.98, |it| it).for_shared(1.0), 0.98);
    }

    #[test]
    fn forms_of_a_word_are_one() {
        let part = |a: &str, b: &str| shared(&Reading::of(a, None), &Reading::of(b, None));
        assert_eq!(part("Delete my files", "remove my file!"), 1.0);
        assert_eq!(part("see my card", "redeem my card"), 0.5);
        assert_eq!(part("", ""), 1.0);
        assert_eq!(part("a", ""), 0.0);
    }
}
