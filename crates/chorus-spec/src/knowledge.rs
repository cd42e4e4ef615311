//! Knowledge bases: labelled exemplars that signals and projections compare a request with.

use crate::{Place, PrototypeScoring};

/// One knowledge base, as declared; its exemplars stand in the manifest.
#[derive(Debug, Clone)]
pub struct KnowledgeBase {
    /// Its name.
    pub name: String,
    /// The folder of the manifest, as written.
    pub path: String,
    /// The manifest in that folder; default `labels.json`.
    pub manifest: String,
    /// Least similarity of a label in 0..=1.
    pub threshold: f64,
    /// Thresholds of single labels.
    pub label_thresholds: Vec<(String, f64)>,
    /// Groups of labels, in order of the file.
    pub groups: Vec<(String, Vec<String>)>,
    /// Numbers that projections read (`type: kb_metric`).
    pub metrics: Vec<KbMetric>,
    /// How exemplars become prototypes.
    pub prototypes: PrototypeScoring,
    /// Where it was written.
    pub place: Place,
}

/// A number about a request: the best score of one group less the best score of the other.
#[derive(Debug, Clone)]
pub struct KbMetric {
    /// Its name.
    pub name: String,
    /// The group that counts for it.
    pub positive: String,
    /// The group that counts against it.
    pub negative: String,
}
