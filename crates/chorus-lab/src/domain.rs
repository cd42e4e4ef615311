//! The domain task: which of the 14 categories of MMLU-Pro a text belongs to.
//!
//! It knows the task's labels and how datasets map to them. Invariant: no near-duplicate of a held-out MMLU-Pro
//! question is learnt from any dataset, and no fixture question is learnt at all.

use std::collections::BTreeMap;
use std::path::Path;

use chorus_spec::MMLU_CATEGORIES;

use crate::corpus::{self, MmluPro};
use crate::example::{Example, Side, Split, side};
use crate::fault::LabFault;
use crate::phrases;

const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");
const TASKS_TRAIN: &str = include_str!("../data/tasks_train.tsv");
const TEMPLATES: &str = include_str!("../data/domain_train.tsv");
const EVERYDAY_EVAL: &str = include_str!("../data/everyday_eval.tsv");
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
    split.learn_everyday(everyday("everyday_train.tsv", EVERYDAY_TRAIN, EVERYDAY_WEIGHT)?);
    split.learn_everyday(everyday("tasks_train.tsv", TASKS_TRAIN, TASK_WEIGHT)?);
    split.train.extend(templates("domain_train.tsv", TEMPLATES)?);
    split.held_out.push(("MMLU-Pro, held-out fifth, question text alone".to_owned(), held_out));
    let fixture = everyday("everyday_eval.tsv", EVERYDAY_EVAL, 1.0)?;
    split.held_out.push(("Short everyday questions, own fixture".to_owned(), fixture));
    let last = everyday("domain_last.tsv", LAST, 1.0)?;
    split.held_out.push(("Requests of many forms, own fixture written last".to_owned(), last));
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
        let learnt: Vec<String> = tasks.iter().map(|example| plain(&example.text)).chain(learnt).collect();
        let last = everyday("", LAST, 1.0).unwrap();
        for example in everyday("", EVERYDAY_EVAL, 1.0).unwrap().iter().chain(&last) {
            assert!(!learnt.contains(&plain(&example.text)), "{}", example.text);
        }
    }
}
