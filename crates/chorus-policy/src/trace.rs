//! How the projections of one request came out, in the contract's JSON shape.
//!
//! Plain values, filled by the stages that made them. Source: contract v0.3, Appendix B, `projectiontrace/trace.go`,
//! schema version 1. **Invariant:** only settled projections are listed.

use chorus_spec::Family;
use serde::Serialize;

/// Partitions, scores and mappings of one request, each in recipe order.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectionTrace {
    /// Always `"1"`.
    pub schema_version: &'static str,
    /// Exclusive groups that are settled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionResolution>,
    /// Scores whose inputs are all known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub scores: Vec<ScoreBreakdown>,
    /// Mappings of those scores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mappings: Vec<MappingDecision>,
}

impl Default for ProjectionTrace {
    fn default() -> Self {
        Self { schema_version: "1", partitions: Vec::new(), scores: Vec::new(), mappings: Vec::new() }
    }
}

/// Which member of a partition stayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionResolution {
    /// The partition.
    pub group_name: String,
    /// The family of its members.
    pub signal_type: Family,
    /// `exclusive` or `softmax_exclusive`.
    pub semantics: &'static str,
    /// Of the softmax.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The members that matched, in the partition's order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub contenders: Vec<PartitionContender>,
    /// The member that stays matched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner: Option<String>,
    /// Its confidence afterwards.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winner_score: Option<f64>,
    /// Its confidence before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_winner_score: Option<f64>,
    /// How far it is ahead of the second: of shares under softmax, else of confidences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin: Option<f64>,
    /// Whether the default member stands in because none matched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub default_used: bool,
}

/// One member that matched.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartitionContender {
    /// The member.
    pub name: String,
    /// Its confidence.
    pub raw_score: f64,
    /// Its softmax share, when there is a softmax of at least two.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub normalized_score: Option<f64>,
}

/// How a score came to its total.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScoreBreakdown {
    /// The score.
    pub name: String,
    /// The sum of the contributions.
    pub total: f64,
    /// Its terms.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputPart>,
}

/// One term of a score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct InputPart {
    /// A family, `projection` for another score, or `kb_metric`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The signal or the score; for a knowledge base's metric, `kb.metric`.
    pub name: String,
    /// Factor.
    pub weight: f64,
    /// What the source gave.
    pub value: f64,
    /// `weight · value`.
    pub contribution: f64,
}

/// How a mapping read its score.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MappingDecision {
    /// The mapping.
    pub mapping_name: String,
    /// The score.
    pub source_score: String,
    /// The score's total.
    pub score_value: f64,
    /// The first band that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selected_output: Option<String>,
    /// The confidence of that output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f64>,
    /// How far the score is from that band's nearest bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub boundary_distance: Option<f64>,
    /// Every band, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<OutputStep>,
}

/// One band of a mapping.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OutputStep {
    /// The output's name.
    pub name: String,
    /// Whether it was emitted.
    pub matched: bool,
    /// How far the score is from its nearest bound.
    pub boundary_distance: f64,
}
