//! The complexity task: whether a text is easy or hard for a language model, seen from the text alone.
//!
//! It knows how outcomes become labels. Invariant: as the domain task's, no near-duplicate of a held-out question
//! is learnt. Easy and hard are what many models got right or wrong, so the head is a prior and no verdict.

use std::path::Path;

use crate::corpus;
use crate::example::{Example, Side, Split, side};
use crate::fault::LabFault;
use crate::phrases;

/// The classes, in the order of probabilities.
pub(crate) const LABELS: [&str; 2] = ["easy", "hard"];

const EASY: usize = 0;
const HARD: usize = 1;

const OWN_TRAIN: &str = include_str!("../data/complexity_train.tsv");
const OWN_EVAL: &str = include_str!("../data/complexity_eval.tsv");
/// Written after the templates; no template was written for it.
const LAST: &str = include_str!("../data/complexity_last.tsv");
const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");
/// Tasks that somebody sets, hard ones beside easy ones of the same subjects.
const TEMPLATES: &str = include_str!("../data/complexity_templates.tsv");
/// Cases, proofs and faults beside greetings, look-ups and errands, in fifteen languages.
const LANGUAGES: &str = include_str!("../data/complexity_languages.tsv");
/// Written before a head had learnt the lines above; it holds no sentence of theirs.
const LANGUAGES_EVAL: &str = include_str!("../data/complexity_languages_eval.tsv");

/// A question that fewer of the models solved is hard, one that more solved is easy; between them lies no label.
/// Of MMLU-Pro's questions, answered by 29 models, 51% are hard by this and 24% easy.
const HARD_BELOW: f32 = 0.35;
const EASY_ABOVE: f32 = 0.65;

/// A text of our own: exams are many and unlike requests.
const OWN_WEIGHT: f32 = 8.0;
/// A text of our own in one of many languages: they are many, and say the same things.
const LANGUAGE_WEIGHT: f32 = 4.0;
/// Texts that one template gives at most.
const DRAWS: usize = 24;
const EVERYDAY_WEIGHT: f32 = 1.0;
const INTENT_WEIGHT: f32 = 0.5;
const INTENT_STEP: usize = 40;

/// Reads and splits everything that the task uses.
pub(crate) fn split(data: &Path) -> Result<Split, LabFault> {
    let mut split = Split::default();
    let mut exam = Vec::new();
    let mut mixed = Vec::new();
    for question in corpus::mmlu_pro(data)? {
        add(&mut split, &mut exam, question.question.clone(), question.solve_rate());
    }
    for routed in corpus::routed_mmlu(data)? {
        add(&mut split, &mut exam, routed.stem().to_owned(), routed.solve_rate());
    }
    for query in corpus::graded(data)? {
        let rate = query.solve_rate();
        add(&mut split, &mut mixed, query.question, rate);
    }
    for text in corpus::intents(data)?.into_iter().step_by(INTENT_STEP) {
        split.learn(&text.clone(), Example { text, label: EASY, weight: INTENT_WEIGHT });
    }
    for (_, text) in corpus::labelled_lines("everyday_train.tsv", EVERYDAY_TRAIN)? {
        split.train.push(Example { text: text.to_owned(), label: EASY, weight: EVERYDAY_WEIGHT });
    }
    split.train.extend(own("complexity_train.tsv", OWN_TRAIN, OWN_WEIGHT)?);
    split.train.extend(templates("complexity_templates.tsv", TEMPLATES, OWN_WEIGHT)?);
    split.train.extend(templates("complexity_languages.tsv", LANGUAGES, LANGUAGE_WEIGHT)?);
    split.held_out.push(("MMLU-Pro and MMLU, held-out fifth".to_owned(), exam));
    split.held_out.push(("LLMRouter's mixed tasks, held-out fifth".to_owned(), mixed));
    let fixture = own("complexity_eval.tsv", OWN_EVAL, 1.0)?;
    split
        .held_out
        .push(("Expert and everyday prompts in several languages, own fixture".to_owned(), fixture));
    let last = own("complexity_last.tsv", LAST, 1.0)?;
    split.held_out.push(("Tasks and requests, own fixture written last".to_owned(), last));
    let languages = ("complexity_languages_eval.tsv", LANGUAGES_EVAL);
    phrases::hold_out(&mut split, "Expert and everyday prompts", languages, &LABELS)?;
    Ok(split)
}

/// Adds a question to its side when its solve rate says what it is.
fn add(split: &mut Split, held_out: &mut Vec<Example>, question: String, solve_rate: f32) {
    let label = match solve_rate {
        rate if rate < HARD_BELOW => HARD,
        rate if rate > EASY_ABOVE => EASY,
        _ => return,
    };
    let example = Example { text: question, label, weight: 1.0 };
    if side(&example.text) == Side::HeldOut {
        held_out.push(example);
    } else {
        split.learn(&example.text.clone(), example);
    }
}

/// What templates stand for: all of it is fitted on, exam questions choose penalty and temperature.
fn templates(name: &str, content: &str, weight: f32) -> Result<Vec<Example>, LabFault> {
    let phrases = phrases::expand(name, content, DRAWS)?;
    let examples = phrases.into_iter().map(|phrase| {
        let label = phrases::label_of(&phrase, &LABELS, name)?;
        Ok(Example { text: phrase.text, label, weight })
    });
    examples.collect()
}

fn own(name: &str, content: &str, weight: f32) -> Result<Vec<Example>, LabFault> {
    let lines = corpus::labelled_lines(name, content)?.into_iter().enumerate();
    let examples = lines.map(|(number, (class, text))| {
        let label = LABELS
            .iter()
            .position(|&name| name == class)
            .ok_or_else(|| LabFault::content(Path::new(name), number + 1, &format!("no class {class}")))?;
        Ok(Example { text: text.to_owned(), label, weight })
    });
    examples.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_solve_rate_in_the_middle_gives_no_label() {
        let (mut split, mut held_out) = (Split::default(), Vec::new());
        for (question, rate) in [("alpha", 0.1), ("beta", 0.5), ("gamma", 0.9), ("delta", 0.2)] {
            add(&mut split, &mut held_out, question.to_owned(), rate);
        }
        let mut all: Vec<_> = split.train.iter().chain(&split.validation).chain(&held_out).collect();
        all.sort_by(|left, right| left.text.cmp(&right.text));
        let labels: Vec<_> = all.iter().map(|example| (example.text.as_str(), example.label)).collect();
        assert_eq!(labels, [("alpha", HARD), ("delta", HARD), ("gamma", EASY)]);
    }

    #[test]
    fn own_prompts_are_kept_apart() {
        let learnt = own("complexity_train.tsv", OWN_TRAIN, 1.0).unwrap();
        let fixture = own("complexity_eval.tsv", OWN_EVAL, 1.0).unwrap();
        let mut learnt_templates = templates("complexity_templates.tsv", TEMPLATES, 1.0).unwrap();
        learnt_templates.extend(templates("complexity_languages.tsv", LANGUAGES, 1.0).unwrap());
        for class in [EASY, HARD] {
            assert!(learnt_templates.iter().filter(|example| example.label == class).count() >= 200);
        }
        let learnt: Vec<Example> = learnt.into_iter().chain(learnt_templates).collect();
        assert!(fixture.iter().filter(|example| example.label == HARD).count() >= 20);
        let last = own("complexity_last.tsv", LAST, 1.0).unwrap();
        let mut measured = Split::default();
        phrases::hold_out(&mut measured, "", ("", LANGUAGES_EVAL), &LABELS).unwrap();
        let languages = measured.held_out.iter().flat_map(|(_, examples)| examples);
        for example in fixture.iter().chain(&last).chain(languages) {
            assert!(learnt.iter().all(|other| other.text != example.text), "{}", example.text);
        }
    }
}
