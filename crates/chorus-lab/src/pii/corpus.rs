//! Texts with labelled places, from the public set.
//!
//! It knows one file's fields. **Invariant:** texts of one template are on one side, so that the held-out half has sentences
//! that nobody has seen.

use std::fs;
use std::io::{BufRead, BufReader};
use std::ops::Range;
use std::path::Path;

use chorus_signals::pii::Entity;
use flate2::read::MultiGzDecoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::fault::LabFault;

/// Which half a text is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    /// May be looked at and learnt from.
    Development,
    /// Only measured.
    HeldOut,
}

/// A text with what is in it.
#[derive(Debug, Clone)]
pub(super) struct Labelled {
    pub(super) text: String,
    /// Kinds and their places in characters, in the text's order.
    pub(super) spans: Vec<(Entity, Range<usize>)>,
    pub(super) half: Half,
}

#[derive(Deserialize)]
struct RowWire {
    full_text: String,
    spans: Vec<SpanWire>,
    template_id: i64,
}

#[derive(Deserialize)]
struct SpanWire {
    entity_type: String,
    start_position: usize,
    end_position: usize,
}

/// `pii/presidio_synth.json`.
pub(super) fn read(data: &Path) -> Result<Vec<Labelled>, LabFault> {
    let path = data.join("pii/presidio_synth.json");
    let bytes = fs::read(&path).map_err(|cause| LabFault::file(&path, cause))?;
    let rows: Vec<RowWire> =
        serde_json::from_slice(&bytes).map_err(|cause| LabFault::content(&path, cause.line(), &cause))?;
    let labelled = rows.into_iter().map(|row| {
        let mut spans = Vec::with_capacity(row.spans.len());
        for span in row.spans {
            let entity = Entity::ALL.into_iter().find(|entity| entity.name() == span.entity_type);
            let unknown = || LabFault::content(&path, 1, &format!("no kind {}", span.entity_type));
            spans.push((entity.ok_or_else(unknown)?, span.start_position..span.end_position));
        }
        spans.sort_by_key(|(_, place)| place.start);
        Ok(Labelled { text: row.full_text, spans, half: half(row.template_id) })
    });
    labelled.collect()
}

#[derive(Deserialize)]
struct ProblemWire {
    question: String,
}

/// `tasks/gsm8k_train.jsonl.gz`: word problems of school mathematics, most of them about people.
pub(super) fn word_problems(data: &Path) -> Result<Vec<String>, LabFault> {
    let path = data.join("tasks/gsm8k_train.jsonl.gz");
    let file = fs::File::open(&path).map_err(|cause| LabFault::file(&path, cause))?;
    let lines = BufReader::new(MultiGzDecoder::new(file)).lines().enumerate();
    let problems = lines.map(|(number, line)| {
        let line = line.map_err(|cause| LabFault::file(&path, cause))?;
        let problem: ProblemWire =
            serde_json::from_str(&line).map_err(|cause| LabFault::content(&path, number + 1, &cause))?;
        Ok(problem.question)
    });
    problems.collect()
}

/// The half of a template: a digest's first bit.
fn half(template: i64) -> Half {
    let digest = Sha256::digest(template.to_string());
    if digest.first().is_some_and(|byte| byte.is_multiple_of(2)) { Half::Development } else { Half::HeldOut }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_halves_have_templates() {
        let held_out = (0..200).filter(|template| half(*template) == Half::HeldOut).count();
        assert!((80..120).contains(&held_out), "{held_out}");
    }

    #[test]
    fn a_file_is_read_or_its_fault_is_named() {
        let dir = tempfile::tempdir().unwrap();
        assert!(matches!(read(dir.path()), Err(LabFault::File { .. })));
        fs::create_dir(dir.path().join("pii")).unwrap();
        let write = |text: &str| fs::write(dir.path().join("pii/presidio_synth.json"), text).unwrap();
        write(
            r#"[{"full_text":"I am Ada","spans":[{"entity_type":"PERSON","start_position":5,"end_position":8}],"template_id":1}]"#,
        );
        assert_eq!(read(dir.path()).unwrap()[0].spans, [(Entity::Person, 5..8)]);
        write(
            r#"[{"full_text":"","spans":[{"entity_type":"SHOE","start_position":0,"end_position":0}],"template_id":1}]"#,
        );
        assert!(matches!(read(dir.path()), Err(LabFault::Content { .. })));
    }
}
