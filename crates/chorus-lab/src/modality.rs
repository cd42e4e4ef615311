//! The modality task: whether text, an image or both are wanted.
//!
//! It knows the labels. Invariant: no sentence of the fixture is learnt. All texts that ask for an image are our own.

use std::path::Path;

use crate::corpus;
use crate::example::{Example, Split};
use crate::fault::LabFault;
use crate::phrases;

/// The classes, in the order of probabilities: text, an image, both.
pub(crate) const LABELS: [&str; 3] = ["AR", "DIFFUSION", "BOTH"];

const TEXT: usize = 0;

const OWN_TRAIN: &str = include_str!("../data/modality_train.tsv");
const OWN_EVAL: &str = include_str!("../data/modality_eval.tsv");
/// Written after the training text; no line of that was written for it.
const OWN_LAST: &str = include_str!("../data/modality_last.tsv");
const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");

/// Texts that one template gives at most.
const DRAWS: usize = 30;
const OWN_WEIGHT: f32 = 1.0;
/// Questions and requests that want text.
const QUESTION_WEIGHT: f32 = 0.5;
const GRADED_STEP: usize = 12;
const INTENT_STEP: usize = 30;

/// Reads and splits everything that the task uses.
pub(crate) fn split(data: &Path) -> Result<Split, LabFault> {
    let mut split = Split::default();
    let everyday = corpus::labelled_lines("everyday_train.tsv", EVERYDAY_TRAIN)?;
    let mut texts: Vec<String> = everyday.into_iter().map(|(_, text)| text.to_owned()).collect();
    texts.extend(corpus::graded(data)?.into_iter().step_by(GRADED_STEP).map(|graded| graded.question));
    texts.extend(corpus::intents(data)?.into_iter().step_by(INTENT_STEP));
    for text in texts {
        split.learn(&text.clone(), Example { text, label: TEXT, weight: QUESTION_WEIGHT });
    }
    // They are of one class: they cannot choose a penalty, and are all learnt.
    split.train.append(&mut split.validation);
    phrases::learn(&mut split, ("modality_train.tsv", OWN_TRAIN), &LABELS, (DRAWS, OWN_WEIGHT))?;
    phrases::hold_out(&mut split, "Own requests", ("modality_eval.tsv", OWN_EVAL), &LABELS)?;
    phrases::hold_out(&mut split, "Own requests written last", ("modality_last.tsv", OWN_LAST), &LABELS)?;
    Ok(split)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_requests_cover_every_label_in_every_language_and_are_kept_apart() {
        let learnt = phrases::expand("modality_train.tsv", OWN_TRAIN, 400).unwrap();
        let fixture = phrases::lines("modality_eval.tsv", OWN_EVAL).unwrap();
        let last = phrases::lines("modality_last.tsv", OWN_LAST).unwrap();
        assert!(fixture.len() >= 80);
        for language in ["en", "de", "es", "fr", "pt", "it", "zh", "ja", "ru", "ko", "tr", "pl", "ar", "hi"] {
            for label in LABELS {
                let of = |phrase: &&phrases::Phrase<'_>| phrase.language == language && phrase.label == label;
                assert!(learnt.iter().filter(of).count() >= 6, "{language} {label}");
                assert!(fixture.iter().filter(of).count() >= 1, "{language} {label}");
            }
        }
        for phrase in fixture.iter().chain(&last) {
            assert!(LABELS.contains(&phrase.label), "{}", phrase.label);
            assert!(learnt.iter().all(|other| other.text != phrase.text), "{}", phrase.text);
        }
    }
}
