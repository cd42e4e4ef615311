//! The user feedback task: what a message says of the answer before it.
//!
//! It knows the labels and which texts are none of them. Invariant: no message of the fixture is learnt. There is no
//! public data of this kind under a free licence: all messages that give feedback are our own.

use std::path::Path;

use crate::corpus::{self, Part};
use crate::example::{Example, Split};
use crate::fault::LabFault;
use crate::phrases;
use crate::report::PhraseFigures;
use chorus_signals::feedback_words;

/// The classes, in the order of probabilities; `none` is a new question, a continuation or anything else.
pub(crate) const LABELS: [&str; 5] =
    ["none", "need_clarification", "satisfied", "want_different", "wrong_answer"];

pub(crate) const NONE: usize = 0;

const OWN_TRAIN: &str = include_str!("../data/feedback_train.tsv");
const OWN_EVAL: &str = include_str!("../data/feedback_eval.tsv");
/// Written after the training text; no line of that was written for it.
const OWN_LAST: &str = include_str!("../data/feedback_last.tsv");
const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");

/// Texts that one template gives at most.
const DRAWS: usize = 24;
const OWN_WEIGHT: f32 = 1.0;
/// Questions and requests that stand for themselves, and say nothing of an answer.
const QUESTION_WEIGHT: f32 = 0.5;
const GRADED_STEP: usize = 8;
const INTENT_STEP: usize = 25;
/// CLINC150's intents that do answer somebody.
const REPLIES: [&str; 6] = ["thank_you", "yes", "no", "maybe", "repeat", "cancel"];

/// Reads and splits everything that the task uses.
pub(crate) fn split(data: &Path) -> Result<Split, LabFault> {
    let mut split = Split::default();
    for (_, text) in corpus::labelled_lines("everyday_train.tsv", EVERYDAY_TRAIN)? {
        learn_question(&mut split, text);
    }
    for query in corpus::graded(data)?.into_iter().step_by(GRADED_STEP) {
        learn_question(&mut split, &query.question);
    }
    for (text, intent) in corpus::clinc(data, Part::Train)?.into_iter().step_by(INTENT_STEP) {
        if !REPLIES.contains(&intent.as_str()) {
            learn_question(&mut split, &text);
        }
    }
    // The public questions are of one class: they cannot choose a penalty, and are all learnt.
    split.train.append(&mut split.validation);
    phrases::learn(&mut split, ("feedback_train.tsv", OWN_TRAIN), &LABELS, (DRAWS, OWN_WEIGHT))?;
    phrases::hold_out(&mut split, "Own messages", ("feedback_eval.tsv", OWN_EVAL), &LABELS)?;
    phrases::hold_out(&mut split, "Own messages written last", ("feedback_last.tsv", OWN_LAST), &LABELS)?;
    Ok(split)
}

/// How well the signal's phrases tell on their own.
pub(crate) fn phrase_figures(examples: &[Example]) -> PhraseFigures {
    let (mut right, mut with_kind, mut wrong, mut chances) = (0_usize, 0_usize, 0_usize, 0_usize);
    for example in examples {
        let named = feedback_words::kind(&example.text).map(feedback_words::Kind::label);
        let label = LABELS.get(example.label).copied();
        let has_kind = example.label != NONE;
        with_kind += usize::from(has_kind);
        right += usize::from(named.is_some() && named == label);
        wrong += usize::from(named.is_some() && named != label);
        chances += LABELS.len() - 1 - usize::from(has_kind);
    }
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    PhraseFigures { right: share(right, with_kind), wrong: share(wrong, chances) }
}

fn learn_question(split: &mut Split, text: &str) {
    split.learn(text, Example { text: text.to_owned(), label: NONE, weight: QUESTION_WEIGHT });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_counted_by_whether_they_name_the_label() {
        let example = |label, text: &str| Example { text: text.to_owned(), label, weight: 1.0 };
        let figures = phrase_figures(&[
            example(2, "danke"),
            example(4, "It rained."),
            example(NONE, "Danke, und die Donau?"),
            example(NONE, "Peru?"),
        ]);
        // Of two messages with a kind one is named; of 3 + 3 + 4 + 4 chances to name a wrong one, one is taken.
        assert_eq!(figures, PhraseFigures { right: 0.5, wrong: 1.0 / 14.0 });
    }

    #[test]
    fn own_messages_cover_every_label_in_every_language_and_are_kept_apart() {
        let learnt = phrases::expand("feedback_train.tsv", OWN_TRAIN, 400).unwrap();
        let fixture = phrases::lines("feedback_eval.tsv", OWN_EVAL).unwrap();
        let last = phrases::lines("feedback_last.tsv", OWN_LAST).unwrap();
        assert!(fixture.len() >= 200);
        for language in ["en", "de", "es", "fr", "pt", "it", "zh", "ja", "ru", "ko", "tr", "pl", "ar", "hi"] {
            for label in LABELS {
                let of = |phrase: &&phrases::Phrase<'_>| phrase.language == language && phrase.label == label;
                assert!(learnt.iter().filter(of).count() >= 5, "{language} {label}");
                assert!(fixture.iter().filter(of).count() >= 1, "{language} {label}");
            }
        }
        for phrase in fixture.iter().chain(&last) {
            assert!(LABELS.contains(&phrase.label), "{}", phrase.label);
            assert!(learnt.iter().all(|other| other.text != phrase.text), "{}", phrase.text);
        }
    }
}
