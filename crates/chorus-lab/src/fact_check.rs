//! The fact check task: whether an answer to a text would state facts that have to be checked.
//!
//! It knows how datasets map to the two labels. Invariant: no near-duplicate of a held-out question is learnt from any
//! dataset, and no fixture question is learnt at all.

use std::collections::BTreeSet;
use std::path::Path;

use crate::corpus::{self, Part};
use crate::example::{Example, Side, Split, side};
use crate::fault::LabFault;
use crate::phrases;

/// The classes, in the order of probabilities.
pub(crate) const LABELS: [&str; 2] = ["no_fact_check_needed", "needs_fact_check"];

const NOT_NEEDED: usize = 0;
const NEEDED: usize = 1;

const OWN_TRAIN: &str = include_str!("../data/fact_check_train.tsv");
const OWN_EVAL: &str = include_str!("../data/fact_check_eval.tsv");
/// Written after the training text; no line of that was written for it.
const OWN_LAST: &str = include_str!("../data/fact_check_last.tsv");
/// Requests to explain and to prove, beside questions of fact that are worded alike; none of it was written for.
const OWN_EXPLAINING: &str = include_str!("../data/fact_check_explaining.tsv");
const EVERYDAY_TRAIN: &str = include_str!("../data/everyday_train.tsv");

/// Texts that one template gives at most.
const DRAWS: usize = 24;
const OWN_WEIGHT: f32 = 1.5;
const EVERYDAY_WEIGHT: f32 = 1.5;
const TASK_WEIGHT: f32 = 0.5;
const PUBLIC_WEIGHT: f32 = 0.5;

/// Tasks that somebody sets, by category: to compare, design, draft, debug.
const TASKS_TRAIN: &str = include_str!("../data/tasks_train.tsv");

/// Categories of everyday questions that ask for facts; mathematics does not, and the others mix facts with concepts.
const KNOWLEDGE: [&str; 3] = ["health", "history", "law"];
/// Categories whose questions are of concepts when they open with one of [`TEACHING`].
const CONCEPTS: [&str; 8] = [
    "biology",
    "chemistry",
    "computer science",
    "economics",
    "engineering",
    "philosophy",
    "physics",
    "psychology",
];
/// How a question opens that asks to be taught a concept, in small letters.
const TEACHING: [&str; 6] =
    ["explain ", "how does ", "how do ", "what is the difference ", "what's the difference ", "what is a "];
/// How a question of history opens that asks for causes, in small letters: it is neither a fact nor a concept.
const CAUSES: [&str; 3] = ["why ", "how did ", "what caused "];
/// Tasks of LLMRouter's data whose queries ask for knowledge, and those that are reckoned, written or reasoned.
const ASKING: [&str; 2] = ["natural_qa", "trivia_qa"];
const MAKING: [&str; 7] =
    ["math", "mbpp", "gsm8k", "human_eval", "commongen", "agentverse-logicgrid", "agentverse-mgsm"];
/// CLINC150's intents of either kind; the others depend on who answers.
const FACTUAL_INTENTS: [&str; 4] = ["calories", "nutrition_info", "international_visa", "vaccines"];
const OTHER_INTENTS: [&str; 28] = [
    "greeting",
    "goodbye",
    "thank_you",
    "yes",
    "no",
    "maybe",
    "tell_joke",
    "are_you_a_bot",
    "what_is_your_name",
    "how_old_are_you",
    "who_made_you",
    "do_you_have_pets",
    "what_are_your_hobbies",
    "what_can_i_ask_you",
    "change_language",
    "change_user_name",
    "alarm",
    "timer",
    "reminder",
    "todo_list_update",
    "shopping_list",
    "play_music",
    "roll_dice",
    "flip_coin",
    "repeat",
    "make_call",
    "calculator",
    "meal_suggestion",
];
const INTENT_STEP: usize = 6;
/// Words that open an instruction to make something up.
const MAKERS: [&str; 18] = [
    "generate",
    "create",
    "write",
    "compose",
    "suggest",
    "come",
    "construct",
    "make",
    "design",
    "imagine",
    "brainstorm",
    "rewrite",
    "draft",
    "edit",
    "produce",
    "propose",
    "calculate",
    "compute",
];

/// Reads and splits everything that the task uses.
pub(crate) fn split(data: &Path) -> Result<Split, LabFault> {
    let mut split = Split::default();
    let mut held_out = Vec::new();
    for (text, label) in public(data)? {
        let example = Example { text, label, weight: PUBLIC_WEIGHT };
        if side(&example.text) == Side::HeldOut {
            held_out.push(Example { weight: 1.0, ..example });
        } else {
            split.learn(&example.text.clone(), example);
        }
    }
    for (category, text) in corpus::labelled_lines("everyday_train.tsv", EVERYDAY_TRAIN)? {
        if let Some(label) = everyday(category, text) {
            split.train.push(Example { text: text.to_owned(), label, weight: EVERYDAY_WEIGHT });
        }
    }
    for (category, text) in corpus::labelled_lines("tasks_train.tsv", TASKS_TRAIN)? {
        if !KNOWLEDGE.contains(&category) {
            split.train.push(Example { text: text.to_owned(), label: NOT_NEEDED, weight: TASK_WEIGHT });
        }
    }
    phrases::learn(&mut split, ("fact_check_train.tsv", OWN_TRAIN), &LABELS, (DRAWS, OWN_WEIGHT))?;
    phrases::hold_out(&mut split, "Own sentences", ("fact_check_eval.tsv", OWN_EVAL), &LABELS)?;
    phrases::hold_out(&mut split, "Own sentences written last", ("fact_check_last.tsv", OWN_LAST), &LABELS)?;
    let explaining = ("fact_check_explaining.tsv", OWN_EXPLAINING);
    phrases::hold_out(&mut split, "Own explanations and their like", explaining, &LABELS)?;
    split.held_out.push(("Public questions and tasks, held-out fifth".to_owned(), held_out));
    Ok(split)
}

/// The class of an everyday question, where its category and its opening say it.
fn everyday(category: &str, text: &str) -> Option<usize> {
    let text = text.to_lowercase();
    let opens = |openings: &[&str]| openings.iter().any(|opening| text.starts_with(opening));
    let teaching = opens(&TEACHING);
    match category {
        "math" => Some(NOT_NEEDED),
        "history" if opens(&CAUSES) => None,
        _ if teaching => CONCEPTS.contains(&category).then_some(NOT_NEEDED),
        _ => KNOWLEDGE.contains(&category).then_some(NEEDED),
    }
}

/// Texts of public datasets with their class; each text once.
fn public(data: &Path) -> Result<Vec<(String, usize)>, LabFault> {
    let mut found = Vec::new();
    let trained: BTreeSet<String> = corpus::graded(data)?.into_iter().map(|graded| graded.question).collect();
    for query in corpus::tasks(data)?.into_iter().filter(|query| trained.contains(&query.query)) {
        if let Some(label) = either(&query.task_name, &ASKING, &MAKING) {
            found.push((query.query, label));
        }
    }
    for (text, intent) in corpus::clinc(data, Part::Train)?.into_iter().step_by(INTENT_STEP) {
        if let Some(label) = either(&intent, &FACTUAL_INTENTS, &OTHER_INTENTS) {
            found.push((text, label));
        }
    }
    for text in corpus::instructions(data)? {
        let opening = text.split_whitespace().next().unwrap_or_default().to_lowercase();
        if MAKERS.contains(&opening.as_str()) {
            found.push((text, NOT_NEEDED));
        }
    }
    let mut seen = BTreeSet::new();
    found.retain(|(text, _)| seen.insert(text.clone()));
    Ok(found)
}

fn either(name: &str, needed: &[&str], not_needed: &[&str]) -> Option<usize> {
    match () {
        () if needed.contains(&name) => Some(NEEDED),
        () if not_needed.contains(&name) => Some(NOT_NEEDED),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_sentences_cover_both_labels_in_every_language_and_are_kept_apart() {
        let learnt = phrases::expand("fact_check_train.tsv", OWN_TRAIN, 400).unwrap();
        let fixture = phrases::lines("fact_check_eval.tsv", OWN_EVAL).unwrap();
        let last = phrases::lines("fact_check_last.tsv", OWN_LAST).unwrap();
        let explaining = phrases::lines("fact_check_explaining.tsv", OWN_EXPLAINING).unwrap();
        assert!(fixture.len() >= 150);
        for language in ["en", "de", "es", "fr", "pt", "it", "zh", "ja", "ru", "ko", "tr", "pl", "ar", "hi"] {
            for label in LABELS {
                let of = |phrase: &&phrases::Phrase<'_>| phrase.language == language && phrase.label == label;
                assert!(learnt.iter().filter(of).count() >= 9, "{language} {label}");
                assert!(fixture.iter().filter(of).count() >= 2, "{language} {label}");
            }
        }
        for phrase in fixture.iter().chain(&last).chain(&explaining) {
            assert!(LABELS.contains(&phrase.label), "{}", phrase.label);
            assert!(learnt.iter().all(|other| other.text != phrase.text), "{}", phrase.text);
        }
    }

    #[test]
    fn a_concept_to_be_taught_is_no_fact_to_be_checked() {
        for (category, text, want) in [
            ("law", "When was the code adopted?", Some(NEEDED)),
            ("law", "Explain what a tort is", None),
            ("history", "Why did the guilds fade?", None),
            ("history", "When did the guilds fade?", Some(NEEDED)),
            ("physics", "How does a lens bend light?", Some(NOT_NEEDED)),
            ("physics", "Who found the electron?", None),
            ("math", "What is 3 plus 4?", Some(NOT_NEEDED)),
        ] {
            assert_eq!(everyday(category, text), want, "{text}");
        }
    }

    #[test]
    fn a_name_is_of_one_kind_or_of_none() {
        assert_eq!(either("trivia_qa", &ASKING, &MAKING), Some(NEEDED));
        assert_eq!(either("gsm8k", &ASKING, &MAKING), Some(NOT_NEEDED));
        assert_eq!(either("commonsense_qa", &ASKING, &MAKING), None);
    }
}
