//! A labelled text, and which side of a split it is on.
//!
//! It knows no dataset. Invariant: texts that differ only in case, digits, punctuation or what follows their first
//! letters are near-duplicates and fall on one side of every split.

use sha2::{Digest, Sha256};

/// Letters of a text that decide which near-duplicates it belongs to.
const KEY_LETTERS: usize = 96;
/// The held-out share is one fifth.
const FOLDS: u64 = 5;
/// One everyday text in so many is kept for validation.
const EVERYDAY_FOLDS: usize = 5;

/// A labelled text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Example {
    /// What the encoder sees.
    pub(crate) text: String,
    /// Place of its class in the task's labels.
    pub(crate) label: usize,
    /// How much it counts, > 0.
    pub(crate) weight: f32,
}

/// Where a text belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// Fitted on.
    Train,
    /// Chooses regularisation and temperature.
    Validation,
    /// Only measured on.
    HeldOut,
}

/// The side of a question, the same in every run and for all of its near-duplicates.
pub(crate) fn side(question: &str) -> Side {
    let key: String = question.chars().filter(|letter| letter.is_alphabetic()).take(KEY_LETTERS).collect();
    let digest = Sha256::digest(key.to_lowercase());
    let draw = digest.iter().take(8).fold(0_u64, |draw, &byte| draw << 8 | u64::from(byte));
    match (draw % FOLDS, draw / FOLDS % FOLDS) {
        (0, _) => Side::HeldOut,
        (_, 0) => Side::Validation,
        _ => Side::Train,
    }
}

/// Examples by side. Held-out ones come as named sets.
#[derive(Debug, Default)]
pub(crate) struct Split {
    /// Fitted on.
    pub(crate) train: Vec<Example>,
    /// Chooses regularisation and temperature; the final head is then fitted on it as well.
    pub(crate) validation: Vec<Example>,
    /// The same, of short everyday texts: as a whole they count as much as `validation` does, however few they are,
    /// because requests are more like them than like exams. May be empty.
    pub(crate) everyday_validation: Vec<Example>,
    /// Only measured on, each set with what it is.
    pub(crate) held_out: Vec<(String, Vec<Example>)>,
}

impl Split {
    /// Adds everyday texts: each fifth one, in the file's order, is kept for validation. None is held out: a fixture of
    /// their kind is what they are measured on.
    pub(crate) fn learn_everyday(&mut self, examples: Vec<Example>) {
        for (number, example) in examples.into_iter().enumerate() {
            let kept_out = number % EVERYDAY_FOLDS == 0;
            if kept_out { &mut self.everyday_validation } else { &mut self.train }.push(example);
        }
    }

    /// Adds an example to the side that its question is on, dropping held-out ones.
    pub(crate) fn learn(&mut self, question: &str, example: Example) {
        match side(question) {
            Side::Train => self.train.push(example),
            Side::Validation => self.validation.push(example),
            Side::HeldOut => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_duplicates_fall_on_one_side() {
        let pairs = [
            ("A train runs 60 miles in 45 minutes.", "A train runs 90 miles in 30 minutes!"),
            ("Which gas is it?", "which GAS is it"),
        ];
        for (left, right) in pairs {
            assert_eq!(side(left), side(right), "{left}");
        }
    }

    #[test]
    fn about_a_fifth_is_held_out() {
        let words = ["ash", "birch", "cedar", "fir", "hazel", "lime", "oak", "pine", "rowan", "yew"];
        let mut held_out = 0;
        for left in words {
            for middle in words {
                for right in words {
                    held_out += usize::from(side(&format!("{left} {middle} {right}")) == Side::HeldOut);
                }
            }
        }
        assert!((160..240).contains(&held_out), "{held_out} of 1000");
    }

    #[test]
    fn a_fifth_of_everyday_texts_is_kept_for_validation() {
        let mut split = Split::default();
        let texts = (0..20).map(|label| Example { text: String::new(), label, weight: 1.0 });
        split.learn_everyday(texts.collect());
        let kept: Vec<usize> = split.everyday_validation.iter().map(|example| example.label).collect();
        assert_eq!((kept, split.train.len()), (vec![0, 5, 10, 15], 16));
    }

    #[test]
    fn a_held_out_question_is_never_learnt() {
        let mut split = Split::default();
        for number in 0..200 {
            let text = format!("question {}", "x".repeat(number));
            split.learn(&text, Example { text: text.clone(), label: 0, weight: 1.0 });
        }
        let learnt = split.train.iter().chain(&split.validation);
        assert!(learnt.clone().count() > 100);
        assert!(learnt.clone().all(|example| side(&example.text) != Side::HeldOut));
    }
}
