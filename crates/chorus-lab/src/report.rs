//! What a training run gave: the head and its figures over held-out sets.

use crate::metrics::{Metrics, Reported};
use chorus_infer::heads::Head;

/// What a run gave.
#[derive(Debug)]
pub struct Report {
    /// The head, as written.
    pub head: Head,
    /// Examples that it was fitted on.
    pub trained_on: usize,
    /// The L2 penalty that did best on the validation part.
    pub penalty: f64,
    /// Figures over the held-out sets.
    pub sets: Vec<EvaluatedSet>,
    /// How well the phrases tell that the signal adds, where it adds any; over validation messages of our own.
    pub phrases: Option<PhraseFigures>,
}

/// Figures over one held-out set.
#[derive(Debug)]
pub struct EvaluatedSet {
    /// What the set is.
    pub name: String,
    /// Its figures.
    pub metrics: Metrics,
    /// Area under the ROC curve of the second class, for a task of two classes.
    pub auroc: Option<f64>,
    /// What a signal would report by the head alone, for a task with a threshold.
    pub reported: Option<Reported>,
    /// The same by the head and phrases, where the signal adds them.
    pub with_phrases: Option<Reported>,
}

/// How often a phrase is found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PhraseFigures {
    /// The share of messages with a kind in which phrases name it.
    pub right: f64,
    /// The share of messages in which phrases name a given kind that is not theirs, averaged over kinds.
    pub wrong: f64,
}
