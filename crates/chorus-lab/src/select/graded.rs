//! Questions with the graded answers of several models, as vectors.
//!
//! It knows the files of LLMRouter's data. Invariant: columns stand in the order of the models' names.

use crate::corpus;
use crate::fault::LabFault;
use crate::regression::dot;
use chorus_infer::TextEncoder;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Texts that are encoded between two lines of progress.
const ENCODED_AT_ONCE: usize = 512;

/// One question.
#[derive(Debug, Deserialize)]
struct RowWire {
    question: String,
    scores: BTreeMap<String, f32>,
}

/// Questions and what each model reached on them.
#[derive(Debug, Clone, Default)]
pub(super) struct Graded {
    pub(super) models: Vec<String>,
    pub(super) dimension: usize,
    texts: Vec<String>,
    tasks: Vec<String>,
    /// Row by row.
    pub(super) vectors: Vec<f32>,
    /// Row by row, in 0..=1.
    pub(super) scores: Vec<f32>,
}

impl Graded {
    /// The training part, each question with its task.
    pub(super) fn training(
        data: &Path,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LabFault> {
        let tasks: BTreeMap<String, String> =
            corpus::tasks(data)?.into_iter().map(|it| (it.query.trim().to_owned(), it.task_name)).collect();
        let mut it = Self::read(&data.join("outcomes/llmrouter_train.json.gz"), encoder, progress)?;
        let task = |text: &String| tasks.get(text.trim()).cloned().unwrap_or_default();
        it.tasks = it.texts.iter().map(task).collect();
        Ok(it)
    }

    /// The test part.
    pub(super) fn test(
        data: &Path,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LabFault> {
        Self::read(&data.join("outcomes/llmrouter_test.json.gz"), encoder, progress)
    }

    fn read(
        path: &Path,
        encoder: &dyn TextEncoder,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, LabFault> {
        let rows: Vec<RowWire> = corpus::json(path)?;
        let models: Vec<String> =
            rows.first().map(|it| it.scores.keys().cloned().collect()).unwrap_or_default();
        let mut it = Self { models, dimension: encoder.dimension(), ..Self::default() };
        for row in rows {
            if !row.scores.keys().eq(it.models.iter()) {
                return Err(LabFault::content(path, 1, &"not every question has scores of the same models"));
            }
            it.scores.extend(row.scores.values());
            it.texts.push(row.question);
        }
        for (at, texts) in it.texts.chunks(ENCODED_AT_ONCE).enumerate() {
            progress(&format!("{}: {} of {} encoded", path.display(), at * ENCODED_AT_ONCE, it.texts.len()));
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            it.vectors.extend(encoder.encode(&texts)?.into_iter().flatten());
        }
        Ok(it)
    }

    pub(super) fn len(&self) -> usize {
        self.texts.len()
    }

    /// Vectors, in order.
    pub(super) fn rows(&self) -> impl ExactSizeIterator<Item = &[f32]> + Clone {
        self.vectors.chunks_exact(self.dimension.max(1))
    }

    /// Scores, in order.
    pub(super) fn grades(&self) -> impl ExactSizeIterator<Item = &[f32]> + Clone {
        self.scores.chunks_exact(self.models.len().max(1))
    }

    /// Mean score of each model.
    pub(super) fn means(&self) -> Vec<f64> {
        let mut sums = vec![0.0; self.models.len()];
        for row in self.grades() {
            sums.iter_mut().zip(row).for_each(|(sum, it)| *sum += f64::from(*it));
        }
        let count = self.len().max(1) as f64;
        sums.into_iter().map(|sum| sum / count).collect()
    }

    /// The names of all tasks, in their order.
    pub(super) fn task_names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.tasks.iter().filter(|it| !it.is_empty()).cloned().collect();
        names.sort();
        names.dedup();
        names
    }

    /// The questions of a task, and all others.
    pub(super) fn split(&self, task: &str) -> (Self, Self) {
        let (mut own, mut others) = (self.empty(), self.empty());
        for (((text, name), vector), grades) in
            self.texts.iter().zip(&self.tasks).zip(self.rows()).zip(self.grades())
        {
            let part = if name == task { &mut own } else { &mut others };
            part.texts.push(text.clone());
            part.tasks.push(name.clone());
            part.vectors.extend_from_slice(vector);
            part.scores.extend_from_slice(grades);
        }
        (own, others)
    }

    fn empty(&self) -> Self {
        Self { models: self.models.clone(), dimension: self.dimension, ..Self::default() }
    }

    /// Digest of texts and scores.
    pub(super) fn digest(&self) -> String {
        let mut digest = Sha256::new();
        for (text, grades) in self.texts.iter().zip(self.grades()) {
            digest.update((text.len() as u64).to_le_bytes());
            digest.update(text);
            grades.iter().for_each(|it| digest.update(it.to_le_bytes()));
        }
        format!("sha256:{}", hex::encode(digest.finalize()))
    }

    /// Distance and index of the nearest questions of each, itself left out, nearest first.
    pub(super) fn neighbours(&self, count: usize) -> Vec<Vec<(f32, usize)>> {
        let of = |(at, row): (usize, &[f32])| {
            let mut nearest: Vec<(f32, usize)> = self
                .rows()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(other, it)| (1.0 - dot(row, it), other))
                .collect();
            let count = count.min(nearest.len());
            if count > 0 && count < nearest.len() {
                nearest.select_nth_unstable_by(count - 1, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            }
            nearest.truncate(count);
            nearest.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            nearest
        };
        self.rows().enumerate().map(of).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Two tasks in two directions: `a` is right on one, `b` on the other.
    pub(in super::super) fn two_tasks() -> Graded {
        let mut it =
            Graded { models: vec!["a".to_owned(), "b".to_owned()], dimension: 4, ..Graded::default() };
        for at in 0..60 {
            let first = at % 2 == 0;
            let side = (at as f32 * 0.7).sin() * 0.1;
            let row = if first { [1.0, side, 0.0, 0.0] } else { [0.0, 0.0, 1.0, side] };
            let length = row.iter().map(|it: &f32| it * it).sum::<f32>().sqrt();
            it.texts.push(format!("question {at}"));
            it.tasks.push(if first { "one" } else { "two" }.to_owned());
            it.vectors.extend(row.map(|it| it / length));
            it.scores.extend(if first { [1.0, 0.0] } else { [0.0, 1.0] });
        }
        it
    }

    #[test]
    fn tasks_are_split_and_neighbours_are_of_the_same_kind() {
        let all = two_tasks();
        assert_eq!(all.task_names(), ["one", "two"]);
        let (own, others) = all.split("one");
        assert_eq!((own.len(), others.len()), (30, 30));
        assert_eq!(own.means(), [1.0, 0.0]);
        for (at, nearest) in all.neighbours(5).iter().enumerate() {
            assert!(
                nearest.len() == 5 && nearest.iter().all(|(_, other)| *other != at && other % 2 == at % 2)
            );
            assert!(nearest.is_sorted_by(|a, b| a.0 <= b.0));
        }
        assert_ne!(own.digest(), others.digest());
    }
}
