//! Reads the public datasets that heads learn from.
//!
//! It knows files and their fields, no task and no label of ours. Invariant: a line that cannot be read is a fault
//! with its number, never skipped.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::fault::LabFault;

/// A question of MMLU-Pro with the answers of many models.
#[derive(Debug, Deserialize)]
pub(crate) struct MmluPro {
    /// One of 14.
    pub(crate) category: String,
    /// Where the question was taken from, for example `ori_mmlu-virology`.
    pub(crate) src: String,
    pub(crate) question: String,
    pub(crate) options: Vec<String>,
    /// Letter of the right option.
    pub(crate) answer: String,
    /// Letter that each model chose; none where its answer could not be parsed.
    pub(crate) pred: BTreeMap<String, Option<String>>,
}

impl MmluPro {
    /// Share of models that chose the right option, 0 to 1.
    pub(crate) fn solve_rate(&self) -> f32 {
        let right =
            self.pred.values().filter(|choice| choice.as_deref() == Some(self.answer.as_str())).count();
        right as f32 / self.pred.len().max(1) as f32
    }
}

/// A prompt of MMLU with the outcome of a weak and a strong model.
#[derive(Debug, Deserialize)]
pub(crate) struct RoutedMmlu {
    /// One of 57.
    pub(crate) subject: String,
    prompt: String,
    #[serde(rename = "mistralai/Mixtral-8x7B-Instruct-v0.1")]
    weak: String,
    #[serde(rename = "gpt-4-1106-preview")]
    strong: String,
}

impl RoutedMmlu {
    /// The question without its options.
    pub(crate) fn stem(&self) -> &str {
        self.prompt.split("\nA. ").next().unwrap_or(&self.prompt)
    }

    /// How many of the two models were right, as a share.
    pub(crate) fn solve_rate(&self) -> f32 {
        [&self.weak, &self.strong].iter().filter(|outcome| outcome.as_str() == "True").count() as f32 / 2.0
    }
}

/// A query with the graded scores of several models.
#[derive(Debug, Deserialize)]
pub(crate) struct Graded {
    pub(crate) question: String,
    scores: BTreeMap<String, f32>,
}

impl Graded {
    /// Mean score, 0 to 1.
    pub(crate) fn solve_rate(&self) -> f32 {
        self.scores.values().sum::<f32>() / self.scores.len().max(1) as f32
    }
}

/// `outcomes/mmlu_pro.jsonl.gz`.
pub(crate) fn mmlu_pro(data: &Path) -> Result<Vec<MmluPro>, LabFault> {
    json_lines(&data.join("outcomes/mmlu_pro.jsonl.gz"))
}

/// `outcomes/routellm_mmlu.jsonl.gz`.
pub(crate) fn routed_mmlu(data: &Path) -> Result<Vec<RoutedMmlu>, LabFault> {
    json_lines(&data.join("outcomes/routellm_mmlu.jsonl.gz"))
}

/// `outcomes/llmrouter_train.json.gz`.
pub(crate) fn graded(data: &Path) -> Result<Vec<Graded>, LabFault> {
    json(&data.join("outcomes/llmrouter_train.json.gz"))
}

/// A query of LLMRouter's data with the task that it was taken from.
#[derive(Debug, Deserialize)]
pub(crate) struct Query {
    /// For example `trivia_qa`.
    pub(crate) task_name: String,
    pub(crate) query: String,
}

/// `outcomes/llmrouter_queries.jsonl.gz`: training and test parts together.
pub(crate) fn tasks(data: &Path) -> Result<Vec<Query>, LabFault> {
    json_lines(&data.join("outcomes/llmrouter_queries.jsonl.gz"))
}

/// `tasks/halueval_general.json.gz`: what people asked an assistant to do, without the answers.
pub(crate) fn instructions(data: &Path) -> Result<Vec<String>, LabFault> {
    #[derive(Deserialize)]
    struct Row {
        user_query: String,
    }
    let rows: Vec<Row> = json_lines(&data.join("tasks/halueval_general.json.gz"))?;
    Ok(rows.into_iter().map(|row| row.user_query).collect())
}

/// A part of a set that its makers divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    Train,
    Test,
}

impl Part {
    fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Test => "test",
        }
    }
}

/// A part of CLINC150: text and intent.
pub(crate) fn clinc(data: &Path, part: Part) -> Result<Vec<(String, String)>, LabFault> {
    let mut parts: BTreeMap<String, Vec<(String, String)>> = json(&data.join("intents/clinc150.json.gz"))?;
    Ok(parts.remove(part.as_str()).unwrap_or_default())
}

/// Requests to an assistant: the training parts of CLINC150 and BANKING77, in the files' order.
pub(crate) fn intents(data: &Path) -> Result<Vec<String>, LabFault> {
    let mut texts: Vec<String> = clinc(data, Part::Train)?.into_iter().map(|(text, _)| text).collect();
    texts.extend(banking(data, Part::Train)?.into_iter().map(|(text, _)| text));
    Ok(texts)
}

/// A part of BANKING77: text and intent.
pub(crate) fn banking(data: &Path, part: Part) -> Result<Vec<(String, String)>, LabFault> {
    let lines = text_lines(&data.join(format!("intents/banking77_{}.csv", part.as_str())))?;
    // The label after the last comma has no comma of its own; the text may be quoted.
    let rows = lines.iter().skip(1).filter_map(|line| line.rsplit_once(','));
    Ok(rows.map(|(text, intent)| (text.trim_matches('"').replace("\"\"", "\""), intent.to_owned())).collect())
}

/// `intents/clinc150_domains.json`: the subject of each intent of CLINC150.
pub(crate) fn clinc_subjects(data: &Path) -> Result<BTreeMap<String, String>, LabFault> {
    let subjects: BTreeMap<String, Vec<String>> = json(&data.join("intents/clinc150_domains.json"))?;
    let pairs = subjects.into_iter();
    Ok(pairs
        .flat_map(|(subject, intents)| intents.into_iter().map(move |it| (it, subject.clone())))
        .collect())
}

/// Our own sentences, one `label<tab>text` a line.
pub(crate) fn labelled_lines<'a>(name: &str, content: &'a str) -> Result<Vec<(&'a str, &'a str)>, LabFault> {
    let lines = content.lines().enumerate();
    let split = lines.map(|(number, line)| {
        line.split_once('\t')
            .ok_or_else(|| LabFault::content(Path::new(name), number + 1, &"expected `label<tab>text`"))
    });
    split.collect()
}

/// One JSON value a line.
pub(crate) fn json_lines<T: DeserializeOwned>(path: &Path) -> Result<Vec<T>, LabFault> {
    let lines = text_lines(path)?;
    let parsed = lines.iter().enumerate().map(|(number, line)| {
        serde_json::from_str(line).map_err(|cause| LabFault::content(path, number + 1, &cause))
    });
    parsed.collect()
}

pub(crate) fn json<T: DeserializeOwned>(path: &Path) -> Result<T, LabFault> {
    serde_json::from_reader(open(path)?).map_err(|cause| LabFault::content(path, cause.line(), &cause))
}

/// The lines of a file.
pub(crate) fn text_lines(path: &Path) -> Result<Vec<String>, LabFault> {
    open(path)?.lines().collect::<Result<_, _>>().map_err(|cause| LabFault::file(path, cause))
}

/// Opens a file, unpacking it when its name ends in `.gz`.
fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>, LabFault> {
    let file = File::open(path).map_err(|cause| LabFault::file(path, cause))?;
    let reader: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    Ok(BufReader::new(reader))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTED: &str = r#"{"subject": "virology", "prompt": "What is a capsid?\nA. a shell\nB. a drug\nAnswer:",
        "mistralai/Mixtral-8x7B-Instruct-v0.1": "False", "gpt-4-1106-preview": "True"}"#;

    #[test]
    fn a_routed_prompt_gives_its_stem_and_rate() {
        let routed: RoutedMmlu = serde_json::from_str(ROUTED).unwrap();
        assert_eq!((routed.stem(), routed.solve_rate()), ("What is a capsid?", 0.5));
    }

    #[test]
    fn an_unparsed_answer_counts_as_wrong() {
        let text = r#"{"category": "law", "src": "x", "question": "q", "options": ["a", "b"], "answer": "B",
            "pred": {"m1": "B", "m2": null, "m3": "A", "m4": "B"}}"#;
        assert_eq!(serde_json::from_str::<MmluPro>(text).unwrap().solve_rate(), 0.5);
    }

    #[test]
    fn a_broken_line_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("rows.jsonl");
        std::fs::write(&path, format!("{}\n{{broken\n", ROUTED.replace('\n', " "))).unwrap();
        let fault = json_lines::<RoutedMmlu>(&path).unwrap_err().to_string();
        assert!(fault.contains("rows.jsonl:2:"), "{fault}");
        let fault = labelled_lines("own.tsv", "law\tIs it?\nno tab").unwrap_err().to_string();
        assert!(fault.contains("own.tsv:2:"), "{fault}");
    }
}
