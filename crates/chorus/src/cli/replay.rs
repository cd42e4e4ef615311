//! What is recorded of runs beside their records, and how it is played again.

use super::{Bound, Source};
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// What `--record` keeps of each run, for `chorus replay`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Record {
    /// What it was asked, and what models answered.
    Content,
    /// The same with placeholders in the place of personal data and credentials; what decides by these decides otherwise
    /// when it is played.
    Redacted,
}

/// Flags of `replay`.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run's id (`run_…`).
    pub(crate) id: String,
    /// What it is executed by: a bundle, a v0.3 configuration or a policy (default: the configuration that served it, from the
    /// versions that are kept beside the run records).
    pub(crate) file: Option<PathBuf>,
    /// Print one JSON document instead of text.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) bound: Bound,
    #[command(flatten)]
    pub(crate) source: Source,
}
