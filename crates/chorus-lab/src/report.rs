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
    /// What a signal would report, for a task with a threshold.
    pub reported: Option<Reported>,
}
