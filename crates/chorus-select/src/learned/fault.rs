//! Why an artifact is not used.

/// Why an artifact is not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArtifactFault {
    /// The file cannot be had.
    #[error("{0}")]
    Absent(String),
    /// Its bytes are not what they should be.
    #[error("the artifact cannot be read: {0}")]
    Unreadable(String),
    /// It is of another kind or version.
    #[error("the artifact is of another format: {0}")]
    Format(String),
    /// It was learnt on another encoder's vectors.
    #[error("the artifact was learnt with the encoder {wanted}, and {found} is loaded; train it again")]
    Encoder {
        /// The artifact's.
        wanted: String,
        /// The one that is loaded.
        found: String,
    },
    /// Its vectors have another length.
    #[error("the artifact's vectors have {wanted} numbers, the encoder's {found}; train it again")]
    Dimension {
        /// The artifact's.
        wanted: usize,
        /// The encoder's.
        found: usize,
    },
    /// It does not know a candidate.
    #[error(
        "the artifact knows {known}, and not the candidate(s) {missing}; train it for this decision's models"
    )]
    Models {
        /// Models that it knows.
        known: String,
        /// Candidates that it does not.
        missing: String,
    },
}

impl ArtifactFault {
    /// Refuses a pool with a model that is not known: what was learnt of some models says nothing of another.
    pub(crate) fn pool(known: &[&str], pool: &[&str]) -> Result<(), Self> {
        let missing: Vec<String> =
            pool.iter().filter(|it| !known.contains(it)).map(|it| format!("`{it}`")).collect();
        if missing.is_empty() {
            return Ok(());
        }
        let known: Vec<String> = known.iter().map(|it| format!("`{it}`")).collect();
        Err(Self::Models { known: known.join(", "), missing: missing.join(", ") })
    }
}
