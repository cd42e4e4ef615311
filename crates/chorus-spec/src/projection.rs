//! Evidence combined: partitions make members exclusive, scores add them up, mappings name bands of a score.

use crate::{NumericPredicate, Place, SignalKey};

/// All projections of a recipe; scores stand in an order in which each uses only earlier ones.
#[derive(Debug, Default, Clone)]
pub struct Projections {
    /// Exclusive groups.
    pub partitions: Vec<Partition>,
    /// Weighted sums, topologically sorted (a score may read the outputs of mappings over earlier scores).
    pub scores: Vec<Score>,
    /// Named bands.
    pub mappings: Vec<Mapping>,
}

/// Of several domain or embedding signals at most one stays matched.
#[derive(Debug, Clone)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// What happens to the winner's confidence.
    pub semantics: PartitionSemantics,
    /// Member signals, all of one family.
    pub members: Vec<SignalKey>,
    /// The member that wins when none matched.
    pub default: Option<SignalKey>,
    /// Where it was written.
    pub place: Place,
}

/// What happens to a partition winner's confidence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PartitionSemantics {
    /// It stays.
    Exclusive,
    /// It becomes the winner's softmax share.
    SoftmaxExclusive {
        /// Greater is flatter; above 0, default 1.
        temperature: f64,
    },
}

/// A weighted sum of evidence.
#[derive(Debug, Clone)]
pub struct Score {
    /// Its name.
    pub name: String,
    /// What is summed.
    pub inputs: Vec<ScoreInput>,
    /// Where it was written.
    pub place: Place,
}

/// One term of a [`Score`].
#[derive(Debug, Clone)]
pub struct ScoreInput {
    /// Where its value comes from.
    pub source: InputSource,
    /// Factor.
    pub weight: f64,
    /// How the source becomes a number.
    pub value: ValueSource,
}

/// Where a score's term comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum InputSource {
    /// A signal or a mapping's output.
    Signal(SignalKey),
    /// Another score, by name.
    Score(String),
    /// A knowledge base's metric.
    KbMetric {
        /// The knowledge base.
        kb: String,
        /// The metric.
        metric: String,
    },
}

/// How a source becomes a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueSource {
    /// `matched` or `miss`.
    Binary {
        /// Value when matched; default 1.
        matched: f64,
        /// Value when not; default 0.
        miss: f64,
    },
    /// The confidence when matched, else 0.
    Confidence,
    /// The raw value, matched or not.
    Raw,
    /// The value of a score.
    Score,
}

/// Named bands of one score.
#[derive(Debug, Clone)]
pub struct Mapping {
    /// Its name.
    pub name: String,
    /// The score it reads.
    pub source: String,
    /// How many outputs may match.
    pub method: MappingMethod,
    /// How distance from a band's edge becomes confidence; `None` is confidence 1.
    pub calibration: Option<Calibration>,
    /// The bands, in order.
    pub outputs: Vec<MappingOutput>,
    /// Where it was written.
    pub place: Place,
}

/// How many outputs of a mapping may match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MappingMethod {
    /// The first band that holds the score.
    ThresholdBands,
    /// Every band that holds it.
    MultiEmit,
}

/// Confidence = 1/(1+e^(−slope·distance)).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Calibration {
    /// Default 12.
    pub slope: f64,
}

/// One named band.
#[derive(Debug, Clone)]
pub struct MappingOutput {
    /// The name that rules use with `type: projection`.
    pub name: String,
    /// The band; no bound at all holds every value.
    pub band: NumericPredicate,
}
