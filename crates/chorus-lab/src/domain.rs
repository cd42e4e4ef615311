//! The domain task: which of the 14 categories of MMLU-Pro a text belongs to.
//!
//! It knows the task's labels and how datasets map to them. Invariant: no near-duplicate of a held-out MMLU-Pro
//! question is learnt from any dataset, and no fixture question is learnt at all.

use std::collections::BTreeMap;
use std::path::Path;

use chorus_spec::MMLU_CATEGORIES;
use sha2::{Digest, Sha256};

use crate::corpus::{self, MmluPro};
use crate::example::{Example, Side, Split, side};
use crate::fault::LabFault;
use crate::phrases;

const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");
const TASKS_TRAIN: &str = include_str!("../data/tasks_train.tsv");
const TEMPLATES: &str = include_str!("../data/domain_train.tsv");
const EVERYDAY_EVAL: &str = include_str!("../data/everyday_eval.tsv");
/// Messages of chats, which mostly speak of the answer before them and of no subject.
const MESSAGES: &str = include_str!("../data/feedback_train.tsv");
/// The kinds of them that do, and the lists of theirs that bring in a subject.
const SUBJECTLESS: [&str; 3] = ["need_clarification", "satisfied", "want_different"];
const SUBJECTS: [&str; 4] = ["{fact}", "{topic}", "{fail}", "{thing}"];
const SUBJECTLESS_EVAL: &str = include_str!("../data/domain_subjectless.tsv");
/// Written after the templates; no template was written for it.
const LAST: &str = include_str!("../data/domain_last.tsv");

/// An exam question's options say more of its field than its stem does; the pair is a second, lighter example.
const WITH_OPTIONS_WEIGHT: f32 = 0.3;
/// A question of the older MMLU.
const MMLU_WEIGHT: f32 = 0.5;
/// A short everyday question of our own: together they count about as much as two fifths of MMLU-Pro's stems.
const EVERYDAY_WEIGHT: f32 = 4.0;
/// A task that somebody sets: to compare, design, draft, debug. Exams have none of them, requests many.
const TASK_WEIGHT: f32 = 2.0;
/// Texts that one template gives at most in one category, and what each counts.
const DRAWS: usize = 48;
const TEMPLATE_WEIGHT: f32 = 0.25;
/// One pair of letters in so many is exchanged in the second copy of an everyday text, which counts this much of the first.
const MISSPELT: u8 = 10;
const MISSPELT_WEIGHT: f32 = 0.25;
/// Texts that one message without a subject gives at most.
const MESSAGE_DRAWS: usize = 4;
/// The label of a template that is of every category: there `{topic}` stands for the category's list of topics.
const EVERY_CATEGORY: &str = "*\t";
/// A request to an assistant, which belongs to no field of study.
const INTENT_WEIGHT: f32 = 0.2;
/// One request in so many is taken.
const INTENT_STEP: usize = 40;

/// Reads and splits everything that the task uses.
pub(crate) fn split(data: &Path) -> Result<Split, LabFault> {
    let mut split = Split::default();
    let questions = corpus::mmlu_pro(data)?;
    let subjects = subject_labels(&questions);
    let mut held_out = Vec::new();
    for question in &questions {
        let Some(label) = label(&question.category) else {
            continue;
        };
        let stem = Example { text: question.question.clone(), label, weight: 1.0 };
        if side(&question.question) == Side::HeldOut {
            held_out.push(stem);
            continue;
        }
        split.learn(&question.question, stem);
        let text = format!("{}\n{}", question.question, question.options.join("\n"));
        split.learn(&question.question, Example { text, label, weight: WITH_OPTIONS_WEIGHT });
    }
    for routed in corpus::routed_mmlu(data)? {
        if let Some(&label) = subjects.get(routed.subject.as_str()) {
            let text = routed.stem().to_owned();
            split.learn(routed.stem(), Example { text, label, weight: MMLU_WEIGHT });
        }
    }
    for text in corpus::intents(data)?.into_iter().step_by(INTENT_STEP) {
        if let Some(label) = label("other") {
            split.learn(&text.clone(), Example { text, label, weight: INTENT_WEIGHT });
        }
    }
    let fitted = split.train.len();
    split.learn_everyday(everyday("everyday_train.tsv", EVERYDAY_TRAIN, EVERYDAY_WEIGHT)?);
    split.learn_everyday(everyday("tasks_train.tsv", TASKS_TRAIN, TASK_WEIGHT)?);
    let copies: Vec<Example> = split.train.iter().skip(fitted).filter_map(misspelt).collect();
    split.train.extend(copies);
    split.train.extend(templates("domain_train.tsv", TEMPLATES)?);
    split.train.extend(subjectless("feedback_train.tsv", MESSAGES)?);
    split.held_out.push(("MMLU-Pro, held-out fifth, question text alone".to_owned(), held_out));
    let fixture = everyday("everyday_eval.tsv", EVERYDAY_EVAL, 1.0)?;
    split.held_out.push(("Short everyday questions, own fixture".to_owned(), fixture));
    let last = everyday("domain_last.tsv", LAST, 1.0)?;
    split.held_out.push(("Requests of many forms, own fixture written last".to_owned(), last));
    let title = "Turns without a subject, own fixture";
    phrases::hold_out(&mut split, title, ("domain_subjectless.tsv", SUBJECTLESS_EVAL), &MMLU_CATEGORIES)?;
    Ok(split)
}

fn everyday(name: &str, content: &str, weight: f32) -> Result<Vec<Example>, LabFault> {
    let lines = corpus::labelled_lines(name, content)?.into_iter().enumerate();
    let examples = lines.map(|(number, (category, text))| {
        let label = label(category).ok_or_else(|| {
            LabFault::content(Path::new(name), number + 1, &format!("no category {category}"))
        })?;
        Ok(Example { text: text.to_owned(), label, weight })
    });
    examples.collect()
}

/// What the templates of all categories stand for: requests of many forms on many topics, so that a form tells no
/// category. All are fitted on; everyday questions, which nobody made from a template, choose penalty and temperature.
fn templates(name: &str, content: &str) -> Result<Vec<Example>, LabFault> {
    let mut found = Vec::new();
    for (label, category) in MMLU_CATEGORIES.iter().enumerate() {
        let own = content.lines().map(|line| match line.strip_prefix(EVERY_CATEGORY) {
            Some(rest) => format!("{category}\t{}\n", rest.replace("{topic}", &format!("{{{category}}}"))),
            None => format!("{line}\n"),
        });
        let own: String = own.collect();
        let phrases = phrases::expand(name, &own, DRAWS)?.into_iter();
        let phrases = phrases.filter(|phrase| phrase.label == *category);
        found.extend(phrases.map(|phrase| Example { text: phrase.text, label, weight: TEMPLATE_WEIGHT }));
    }
    Ok(found)
}

/// An everyday text of Latin letters as hasty people type it, one pair of letters in ten exchanged: the encoder makes another
/// thing of a word that is misspelt (case D23).
fn misspelt(example: &Example) -> Option<Example> {
    if !example.text.is_ascii() {
        return None;
    }
    let mut letters: Vec<char> = example.text.chars().collect();
    for at in 1..letters.len() {
        let inside = letters.get(at - 1..=at).is_some_and(|pair| pair.iter().all(|c| c.is_alphabetic()));
        let draw = Sha256::digest(format!("{at} {}", example.text)).first().copied().unwrap_or_default();
        if inside && draw % MISSPELT == 0 {
            letters.swap(at - 1, at);
        }
    }
    let weight = example.weight * MISSPELT_WEIGHT;
    Some(Example { text: letters.into_iter().collect(), weight, ..example.clone() })
}

/// Messages that speak of an answer and of no subject, in all languages: `other`.
fn subjectless(name: &str, content: &str) -> Result<Vec<Example>, LabFault> {
    let is_kept = |line: &&str| {
        let label = line.split('\t').next().unwrap_or_default();
        label.starts_with('@') || SUBJECTLESS.contains(&label) && !SUBJECTS.iter().any(|it| line.contains(it))
    };
    let kept: String = content.lines().filter(is_kept).map(|line| format!("{line}\n")).collect();
    let found = phrases::expand(name, &kept, MESSAGE_DRAWS)?.into_iter();
    let example = |text| Some(Example { text, label: label("other")?, weight: TEMPLATE_WEIGHT });
    Ok(found.filter_map(|phrase| example(phrase.text)).collect())
}

fn label(category: &str) -> Option<usize> {
    MMLU_CATEGORIES.iter().position(|&name| name == category)
}

/// MMLU's 57 subjects by category, as MMLU-Pro itself assigned those it took over.
fn subject_labels(questions: &[MmluPro]) -> BTreeMap<&str, usize> {
    let assigned = questions
        .iter()
        .filter_map(|question| Some((question.src.strip_prefix("ori_mmlu-")?, label(&question.category)?)));
    // Two subjects that MMLU-Pro left out.
    let left_out = [("moral_scenarios", "philosophy"), ("college_medicine", "health")];
    let left_out = left_out.iter().filter_map(|&(subject, category)| Some((subject, label(category)?)));
    left_out.chain(assigned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_questions_cover_every_category() {
        for (name, content, least) in [
            ("everyday_train.tsv", EVERYDAY_TRAIN, 25),
            ("tasks_train.tsv", TASKS_TRAIN, 10),
            ("everyday_eval.tsv", EVERYDAY_EVAL, 10),
        ] {
            let examples = everyday(name, content, 1.0).unwrap();
            for (label, category) in MMLU_CATEGORIES.iter().enumerate() {
                let count = examples.iter().filter(|example| example.label == label).count();
                assert!(count >= least, "{name}: {count} of {category}");
            }
        }
    }

    #[test]
    fn d23_a_misspelt_copy_keeps_its_letters_and_most_of_their_places() {
        let example =
            Example { text: "How do whales breathe while they sleep?".to_owned(), label: 3, weight: 4.0 };
        let copy = misspelt(&example).unwrap();
        let sorted = |text: &str| {
            let mut letters: Vec<char> = text.chars().collect();
            letters.sort_unstable();
            letters
        };
        assert_ne!(copy.text, example.text);
        assert_eq!((sorted(&copy.text), copy.label, copy.weight), (sorted(&example.text), 3, 1.0));
        let same = copy.text.chars().zip(example.text.chars()).filter(|(a, b)| a == b).count();
        assert!(same * 2 > example.text.len(), "{}", copy.text);
        assert_eq!(misspelt(&Example { text: "为什么".to_owned(), ..example }), None);
    }

    #[test]
    fn templates_cover_every_category() {
        let examples = templates("domain_train.tsv", TEMPLATES).unwrap();
        for (label, category) in MMLU_CATEGORIES.iter().enumerate() {
            let of: Vec<&Example> = examples.iter().filter(|example| example.label == label).collect();
            assert!(of.len() >= 200, "{} of {category}", of.len());
            assert!(of.iter().all(|example| !example.text.contains(['{', '}', '|'])), "{category}");
        }
    }

    #[test]
    fn no_fixture_question_is_learnt() {
        let plain = |text: &str| text.to_lowercase().replace(|letter: char| !letter.is_alphanumeric(), "");
        let learnt: Vec<String> =
            everyday("", EVERYDAY_TRAIN, 1.0).unwrap().iter().map(|example| plain(&example.text)).collect();
        let mut tasks = everyday("", TASKS_TRAIN, 1.0).unwrap();
        tasks.extend(templates("", TEMPLATES).unwrap());
        tasks.extend(subjectless("", MESSAGES).unwrap());
        let learnt: Vec<String> = tasks.iter().map(|example| plain(&example.text)).chain(learnt).collect();
        let last = everyday("", LAST, 1.0).unwrap();
        let fixtures = [everyday("", EVERYDAY_EVAL, 1.0).unwrap(), last].concat();
        let turns = phrases::lines("", SUBJECTLESS_EVAL).unwrap();
        let turns = turns.iter().map(|turn| &turn.text);
        for text in fixtures.iter().map(|example| &example.text).chain(turns) {
            assert!(!learnt.contains(&plain(text)), "{text}");
        }
    }
}
