//! The record: a question, and what each model answered. It knows no looper.

use crate::corpus;
use crate::fault::LabFault;
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::path::Path;

/// Options of most questions (A to J), which a vote is weighed against.
pub(super) const ALTERNATIVES: usize = 10;

/// A question of MMLU-Pro with the answers of many models.
#[derive(Debug, Deserialize)]
pub(super) struct Row {
    pub(super) id: u64,
    /// One of 14.
    pub(super) category: String,
    /// Letter of the right option.
    pub(super) answer: String,
    /// Letter that each model chose; none where its answer could not be read.
    pub(super) pred: BTreeMap<String, Option<String>>,
    /// Characters of each model's answer.
    pub(super) out_chars: BTreeMap<String, usize>,
}

/// Which half a question belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Half {
    Training,
    HeldOut,
}

/// Parts of the training half: what is learned on the others is judged on one.
pub(super) const FOLDS: u8 = 3;

impl Row {
    /// Which fold of its half it belongs to, below [`FOLDS`]: by the second byte of SHA-256 over the id in decimal.
    pub(super) fn fold(&self) -> u8 {
        let digest = Sha256::digest(self.id.to_string().as_bytes());
        digest.get(1).map_or(0, |byte| byte % FOLDS)
    }

    /// By the lowest bit of the first byte of SHA-256 over the id in decimal.
    pub(super) fn half(&self) -> Half {
        let digest = Sha256::digest(self.id.to_string().as_bytes());
        match digest.first().map(|byte| byte & 1) {
            Some(1) => Half::HeldOut,
            _ => Half::Training,
        }
    }

    /// The letter that the model chose.
    pub(super) fn chosen(&self, model: &str) -> Option<&str> {
        self.pred.get(model)?.as_deref()
    }

    pub(super) fn chars(&self, model: &str) -> usize {
        self.out_chars.get(model).copied().unwrap_or_default()
    }

    pub(super) fn is_right(&self, letter: Option<&str>) -> bool {
        letter.is_some_and(|letter| letter.eq_ignore_ascii_case(&self.answer))
    }
}

/// `outcomes/mmlu_pro.jsonl.gz`.
pub(super) fn read(data: &Path) -> Result<Vec<Row>, LabFault> {
    corpus::json_lines(&data.join("outcomes/mmlu_pro.jsonl.gz"))
}

/// All models, in order of their names.
pub(super) fn models(rows: &[&Row]) -> Vec<String> {
    let mut names: Vec<String> = rows.iter().flat_map(|row| row.pred.keys().cloned()).collect();
    names.sort_unstable();
    names.dedup();
    names
}
