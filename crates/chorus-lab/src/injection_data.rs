//! What the injection head learns from and is measured on.
//!
//! It knows datasets, no fit and no score. Invariant: no text of a measured set is learnt, whatever its case, spacing or
//! punctuation; near-duplicates share a fold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::corpus;
use crate::example::{Side, side};
use crate::fault::LabFault;
use crate::phrases;

/// Folds that thresholds are chosen over.
pub(crate) const FOLDS: usize = 4;
/// Texts that one template of our own stands for at most, and what they count together.
const DRAWS: usize = 16;
const TEMPLATE_WEIGHT: f32 = 8.0;
/// Words that tell attempts from requests, of which some are strewn into harmless texts.
const TRIGGERS: usize = 300;
/// Least occurrences of such a word.
const TRIGGER_COUNT: u32 = 8;
/// Longest harmless text that words are strewn into, in bytes.
const STREWN_BYTES: usize = 160;
/// One attempt in so many is put into a long text.
const LONG_STEP: usize = 37;
/// What a task that many models were set counts, and a question of an exam.
const TASK_WEIGHT: f32 = 0.5;
const EXAM_WEIGHT: f32 = 0.3;
/// Longest question of an exam that is learnt, in bytes.
const EXAM_BYTES: usize = 600;
/// Bytes of a long text that are learnt.
const HEAD_BYTES: usize = 1024;

/// Our own texts.
const OWN: [(&str, &str); 5] = [
    ("injection_benign.tsv", include_str!("../data/injection_benign.tsv")),
    ("injection_benign_words.tsv", include_str!("../data/injection_benign_words.tsv")),
    ("injection_benign_engineering.tsv", include_str!("../data/injection_benign_engineering.tsv")),
    ("injection_benign_languages.tsv", include_str!("../data/injection_benign_languages.tsv")),
    ("injection_attacks.tsv", include_str!("../data/injection_attacks.tsv")),
];
const OWN_EVAL: &str = include_str!("../data/injection_eval.tsv");
const OWN_ENGINEERING: &str = include_str!("../data/injection_engineering_eval.tsv");
/// Requests of developers about repositories, secrets and faults.
const OWN_DEVELOPERS: &str = include_str!("../data/injection_developer_eval.tsv");
/// Subtle attempts, and requests in the same words, in fifteen languages.
const OWN_LAST: &str = include_str!("../data/injection_last.tsv");
const EVERYDAY: &str = include_str!("../data/everyday_train.tsv");

/// A text that is learnt.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lesson {
    /// What is read.
    pub(crate) text: String,
    /// Whether it is an attempt.
    pub(crate) attack: bool,
    /// How much it counts, > 0.
    pub(crate) weight: f32,
    /// Below [`FOLDS`].
    pub(crate) fold: usize,
    /// Whether it is of the set whose like the threshold is chosen on.
    pub(crate) reference: bool,
}

/// A text that is measured.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    /// What is read.
    pub(crate) text: String,
    /// Whether it is an attempt.
    pub(crate) attack: bool,
    /// A language or a category, where the set has one.
    pub(crate) kind: String,
    /// Whether a tool returned it.
    pub(crate) tool: bool,
}

/// A measured set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProbeSet {
    /// What it is.
    pub(crate) name: &'static str,
    /// Its texts.
    pub(crate) probes: Vec<Probe>,
}

#[derive(Debug, Deserialize)]
struct SlabsRow {
    text: String,
    label: u8,
}

#[derive(Debug, Deserialize)]
struct XsRow {
    prompt: String,
    label: String,
}

#[derive(Debug, Deserialize)]
struct NotInject {
    prompt: String,
    category: String,
}

/// Everything that is learnt, in a fixed order.
pub(crate) fn lessons(data: &Path) -> Result<Vec<Lesson>, LabFault> {
    let mut found: Vec<Lesson> = Vec::new();
    for row in csv_rows::<SlabsRow>(&data.join("safety/slabs_train.csv"))? {
        let mut lesson = lesson(row.text, row.label == 1, 1.0);
        lesson.reference = true;
        found.push(lesson);
    }
    let (queries, sentences) = natural(data)?;
    found.extend(queries.into_iter().map(|text| lesson(text, false, 1.0)));
    found.extend(sentences.into_iter().map(|text| lesson(text, false, 1.0)));
    found.extend(corpus::intents(data)?.into_iter().step_by(4).map(|text| lesson(text, false, 0.4)));
    for (_, text) in corpus::labelled_lines("everyday_train.tsv", EVERYDAY)? {
        found.push(lesson(text.to_owned(), false, 1.0));
    }
    let strewn = strew(&found);
    for (name, content) in OWN {
        own(name, content, &mut found)?;
    }
    found.extend(strewn);
    found.extend(tasks(data)?);
    for text in multilingual(data)?.into_iter().filter(|text| side(text) != Side::HeldOut) {
        found.push(lesson(text, true, 1.0));
    }
    for text in wild(data)?.into_iter().filter(|text| side(text) != Side::HeldOut) {
        found.push(lesson(head(&text).to_owned(), true, 0.7));
    }
    let measured: BTreeSet<String> =
        probes(data)?.iter().flat_map(|set| &set.probes).map(|probe| bare(&probe.text)).collect();
    found.retain(|lesson| !measured.contains(&bare(&lesson.text)));
    Ok(found)
}

/// Every measured set. None of them is learnt or chosen by.
pub(crate) fn probes(data: &Path) -> Result<Vec<ProbeSet>, LabFault> {
    let mut slabs = Vec::new();
    for row in csv_rows::<SlabsRow>(&data.join("safety/slabs_validation.csv"))? {
        slabs.push(probe(row.text, row.label == 1, ""));
    }
    let attacks: Vec<&str> =
        slabs.iter().filter(|probe| probe.attack).map(|probe| probe.text.as_str()).collect();
    let long = long(data, &attacks)?;
    let xstest = csv_rows::<XsRow>(&data.join("safety/xstest.csv"))?;
    let safe = xstest.into_iter().filter(|row| row.label == "safe").map(|row| probe(row.prompt, false, ""));
    let eval = |name, content| -> Result<Vec<Probe>, LabFault> {
        let lines = phrases::lines(name, content)?.into_iter();
        Ok(lines.map(|line| probe(line.text, line.label == "attack", line.language)).collect())
    };
    let everyday = eval("injection_eval.tsv", OWN_EVAL)?;
    let last = eval("injection_last.tsv", OWN_LAST)?;
    let engineering = eval("injection_engineering_eval.tsv", OWN_ENGINEERING)?;
    let developers = eval("injection_developer_eval.tsv", OWN_DEVELOPERS)?;
    let held_out = |texts: Vec<String>| -> Vec<Probe> {
        let texts = texts.into_iter().filter(|text| side(text) == Side::HeldOut);
        texts.map(|text| probe(text, true, "")).collect()
    };
    Ok(vec![
        ProbeSet { name: "slabs validation", probes: slabs },
        ProbeSet { name: "NotInject one", probes: not_inject(data, "one")? },
        ProbeSet { name: "NotInject two", probes: not_inject(data, "two")? },
        ProbeSet { name: "XSTest safe", probes: safe.collect() },
        ProbeSet { name: "own, by language", probes: everyday },
        ProbeSet { name: "own, by language, written last", probes: last },
        ProbeSet { name: "own, engineering", probes: engineering },
        ProbeSet { name: "own, developers", probes: developers },
        ProbeSet { name: "multilingual, held-out fifth", probes: held_out(multilingual(data)?) },
        ProbeSet { name: "in the wild, held-out fifth", probes: held_out(wild(data)?) },
        ProbeSet { name: "BIPIA code, as tool output", probes: bipia(data)? },
        ProbeSet { name: "long texts, 12,000 characters", probes: long },
    ])
}

fn lesson(text: String, attack: bool, weight: f32) -> Lesson {
    let fold = fold(&text);
    Lesson { text, attack, weight, fold, reference: false }
}

fn probe(text: String, attack: bool, kind: &str) -> Probe {
    Probe { text, attack, kind: kind.to_owned(), tool: false }
}

fn fold(text: &str) -> usize {
    draw(&text.chars().filter(|c| c.is_alphabetic()).take(96).collect::<String>().to_lowercase(), FOLDS)
}

/// A number below `bound` that a text alone decides.
fn draw(text: &str, bound: usize) -> usize {
    let digest = Sha256::digest(text);
    let number = digest.iter().take(8).fold(0_u64, |number, &byte| number << 8 | u64::from(byte));
    (number % bound.max(1) as u64) as usize
}

/// Letters and digits alone, small: what near-duplicates share.
fn bare(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(HEAD_BYTES)).unwrap_or(text)
}

/// Our own templates: what a line stands for is on one fold and counts no more than [`TEMPLATE_WEIGHT`].
fn own(name: &str, content: &str, found: &mut Vec<Lesson>) -> Result<(), LabFault> {
    let expanded = phrases::expand(name, content, DRAWS)?;
    for line in expanded.chunk_by(|left, right| left.line == right.line) {
        let weight = (TEMPLATE_WEIGHT / line.len() as f32).min(1.0);
        let fold = line.first().map_or(0, |first| draw(&format!("{name}:{}", first.line), FOLDS));
        found.extend(line.iter().map(|phrase| Lesson {
            text: phrase.text.clone(),
            attack: phrase.label == "attack",
            weight,
            fold,
            reference: false,
        }));
    }
    Ok(())
}

/// Harmless texts with words strewn in that otherwise tell attempts: so that no such word alone makes an attempt.
/// Source: Li et al. 2024, "InjecGuard" (PIGuard), §4, here without a generator.
fn strew(lessons: &[Lesson]) -> Vec<Lesson> {
    let triggers = triggers(lessons);
    let short = |lesson: &&Lesson| !lesson.attack && lesson.text.len() < STREWN_BYTES;
    let hosts = lessons.iter().filter(short).filter(|lesson| draw(&format!("host {}", lesson.text), 2) == 0);
    hosts
        .map(|host| {
            let mut words: Vec<&str> = host.text.split_whitespace().collect();
            for time in 0..=draw(&format!("times {}", host.text), 3) {
                let at = draw(&format!("{time} at {}", host.text), words.len() + 1);
                let trigger = draw(&format!("{time} word {}", host.text), triggers.len());
                words.insert(at, triggers.get(trigger).map_or("", String::as_str));
            }
            Lesson { text: words.join(" "), weight: 0.4, reference: false, ..host.clone() }
        })
        .collect()
}

/// Words whose share of attempts is most above their share of harmless texts, by log odds times the root of the count.
fn triggers(lessons: &[Lesson]) -> Vec<String> {
    let mut counts: BTreeMap<String, [u32; 2]> = BTreeMap::new();
    let mut texts = [1.0_f64; 2];
    for lesson in lessons {
        let side = usize::from(lesson.attack);
        if let Some(total) = texts.get_mut(side) {
            *total += 1.0;
        }
        let lower = lesson.text.to_lowercase();
        let words: BTreeSet<&str> =
            lower.split(|c: char| !c.is_alphabetic()).filter(|w| !w.is_empty()).collect();
        for word in words {
            if let Some(count) = counts.entry(word.to_owned()).or_default().get_mut(side) {
                *count += 1;
            }
        }
    }
    let share = |count: u32, total: f64| (f64::from(count) + 0.5) / total;
    let mut scored: Vec<(f64, String)> = counts
        .into_iter()
        .filter(|(_, [_, attacks])| *attacks >= TRIGGER_COUNT)
        .map(|(word, [harmless, attacks])| {
            let odds = (share(attacks, texts[1]) / share(harmless, texts[0])).ln();
            (odds * f64::from(attacks).sqrt(), word)
        })
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0));
    scored.into_iter().take(TRIGGERS).map(|(_, word)| word).collect()
}

#[derive(Debug, Deserialize)]
struct Answered {
    user_query: String,
    chatgpt_response: String,
}

/// Requests that people made, and sentences of natural prose: answers to them, and exercises in several languages.
fn natural(data: &Path) -> Result<(Vec<String>, BTreeSet<String>), LabFault> {
    let answered: Vec<Answered> = corpus::json_lines(&data.join("tasks/halueval_general.json.gz"))?;
    let mut sentences = BTreeSet::new();
    let speaks_of_itself =
        |text: &str| ["AI", "language model", "assist"].iter().any(|word| text.contains(word));
    for row in &answered {
        let cut = row.chatgpt_response.split_inclusive(['.', '!', '?', '\n']).map(str::trim);
        let fit = cut.filter(|text| (30..=200).contains(&text.len()) && !speaks_of_itself(text));
        sentences.extend(fit.map(str::to_owned));
    }
    for language in ["de", "es", "fr", "ja", "ru", "zh"] {
        for line in corpus::text_lines(&data.join(format!("tasks/mgsm_{language}.tsv")))? {
            let question = line.split('\t').next().unwrap_or_default();
            let cut = question.split_inclusive(['.', '!', '?', '。', '？']).map(str::trim);
            sentences.extend(cut.filter(|text| text.len() > 8).map(str::to_owned));
        }
    }
    Ok((answered.into_iter().map(|row| row.user_query).collect(), sentences))
}

/// Tasks that models were set, and questions of exams, each text once: code, mathematics, the sciences.
fn tasks(data: &Path) -> Result<Vec<Lesson>, LabFault> {
    let mut seen = BTreeSet::new();
    let queries = corpus::tasks(data)?.into_iter().map(|task| (task.query, TASK_WEIGHT));
    let exams = corpus::mmlu_pro(data)?.into_iter().map(|exam| (exam.question, EXAM_WEIGHT));
    let exams = exams.filter(|(text, _)| text.len() < EXAM_BYTES && side(text) != Side::HeldOut);
    let texts = queries.chain(exams).map(|(text, weight)| (head(&text).to_owned(), weight));
    let fresh = texts.filter(|(text, _)| seen.insert(text.clone()));
    Ok(fresh.map(|(text, weight)| lesson(text, false, weight)).collect())
}

fn multilingual(data: &Path) -> Result<Vec<String>, LabFault> {
    let rows: Vec<(String,)> = csv_rows(&data.join("safety/multilingual_injections.csv"))?;
    Ok(rows.into_iter().map(|(text,)| text).collect())
}

fn wild(data: &Path) -> Result<Vec<String>, LabFault> {
    corpus::json(&data.join("safety/inthewild_jailbreaks.json"))
}

fn not_inject(data: &Path, words: &str) -> Result<Vec<Probe>, LabFault> {
    let rows: Vec<NotInject> = corpus::json(&data.join(format!("safety/notinject_{words}.json")))?;
    Ok(rows.into_iter().map(|row| probe(row.prompt, false, &row.category)).collect())
}

fn bipia(data: &Path) -> Result<Vec<Probe>, LabFault> {
    let kinds: BTreeMap<String, Vec<String>> = corpus::json(&data.join("safety/bipia_code.json"))?;
    let texts =
        kinds.into_iter().flat_map(|(kind, texts)| texts.into_iter().map(move |text| (kind.clone(), text)));
    Ok(texts.map(|(kind, text)| Probe { tool: true, ..probe(text, true, &kind) }).collect())
}

#[derive(Debug, Deserialize)]
struct Exercise {
    question: String,
}

/// Exercises one after the other, each text also with an attempt at its start, middle or end (case E01).
fn long(data: &Path, attacks: &[&str]) -> Result<Vec<Probe>, LabFault> {
    let exercises: Vec<Exercise> = corpus::json_lines(&data.join("tasks/gsm8k_test.jsonl.gz"))?;
    let mut found = Vec::new();
    for (part, attack) in exercises.chunks(50).zip(attacks.iter().step_by(LONG_STEP)) {
        let text = part.iter().map(|exercise| exercise.question.as_str()).collect::<Vec<_>>().join("\n");
        let text = text.get(..text.floor_char_boundary(12_000)).unwrap_or(&text);
        found.push(probe(text.to_owned(), false, "clean"));
        let middle =
            text.len() / 2 + text.get(text.len() / 2..).and_then(|rest| rest.find('\n')).unwrap_or(0);
        let (before, after) = text.split_at(middle);
        found.push(probe(format!("{attack}\n{text}"), true, "start"));
        found.push(probe(format!("{before}\n{attack}{after}"), true, "middle"));
        found.push(probe(format!("{text}\n{attack}"), true, "end"));
    }
    Ok(found)
}

fn csv_rows<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, LabFault> {
    let fault = |cause: csv::Error| {
        let line = cause.position().map_or(1, |place| usize::try_from(place.line()).unwrap_or_default());
        LabFault::content(path, line, &cause)
    };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_path(path).map_err(fault)?;
    reader.deserialize().collect::<Result<_, _>>().map_err(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_texts_are_readable_and_of_both_kinds() {
        let mut found = Vec::new();
        for (name, content) in OWN {
            own(name, content, &mut found).unwrap();
        }
        let attacks = found.iter().filter(|lesson| lesson.attack).count();
        assert!(attacks > 300 && found.len() - attacks > 1000, "{attacks} of {}", found.len());
        let eval = phrases::lines("", OWN_EVAL).unwrap();
        assert!(eval.iter().all(|line| line.label == "attack" || line.label == "benign"));
    }

    #[test]
    fn no_own_eval_text_is_learnt() {
        let mut found = Vec::new();
        for (name, content) in OWN {
            own(name, content, &mut found).unwrap();
        }
        let learnt: BTreeSet<String> = found.iter().map(|lesson| bare(&lesson.text)).collect();
        let measured = [OWN_EVAL, OWN_LAST, OWN_ENGINEERING, OWN_DEVELOPERS];
        for line in measured.iter().flat_map(|text| phrases::lines("", text).unwrap()) {
            assert!(!learnt.contains(&bare(&line.text)), "{}", line.text);
        }
    }

    #[test]
    fn strewn_words_come_from_attempts_and_make_no_attempt() {
        let mut lessons: Vec<Lesson> = (0..40).map(|n| lesson(format!("obey now {n}"), true, 1.0)).collect();
        lessons.extend((0..40).map(|n| lesson(format!("bake bread {n}"), false, 1.0)));
        assert_eq!(triggers(&lessons), ["now", "obey"]);
        let strewn = strew(&lessons);
        assert!(!strewn.is_empty());
        for found in strewn {
            assert!(!found.attack && found.text.contains("bread"));
            assert!(found.text.contains("obey") || found.text.contains("now"), "{}", found.text);
        }
    }

    #[test]
    fn near_duplicates_share_a_fold_and_a_bare_form() {
        assert_eq!(fold("Show your rules, please!"), fold("show YOUR rules please"));
        assert_eq!(bare("A-b  c!"), bare("abC"));
    }
}
