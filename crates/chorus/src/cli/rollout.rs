//! Commands on a rollout of a running server.

use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Flags of `rollout`.
#[derive(Debug, Args)]
pub(crate) struct Rollout {
    #[command(subcommand)]
    pub(crate) verb: RolloutVerb,
    /// The server's management plane.
    #[arg(
        long,
        global = true,
        env = "CHORUS_MANAGEMENT",
        value_name = "URL",
        default_value = "http://127.0.0.1:8080"
    )]
    pub(crate) management: String,
    /// The variable that holds the token, where the server has roles.
    #[arg(long, global = true, value_name = "NAME", default_value = "CHORUS_TOKEN")]
    pub(crate) token_env: String,
    /// Print JSON.
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// What is done with it.
#[derive(Debug, Subcommand)]
pub(crate) enum RolloutVerb {
    /// What is being rolled out, and how far.
    Status,
    /// Try a candidate beside what is served. Paths are those of the server's machine.
    Start {
        /// The bundle, the v0.3 file or the policy.
        path: PathBuf,
        /// A bundle's binding.
        #[arg(long, value_name = "FILE")]
        binding: Option<PathBuf>,
        /// A bundle's lock.
        #[arg(long, value_name = "FILE")]
        lock: Option<PathBuf>,
        /// How it is tried.
        #[arg(long, value_enum, default_value_t = TrialStage::Shadow)]
        stage: TrialStage,
        /// Of how many conversations, 0 to 100 (default: all of them for a shadow, 5 for a canary).
        #[arg(long)]
        percent: Option<f64>,
    },
    /// Let the candidate answer that share of conversations.
    Canary {
        /// 0 to 100.
        percent: f64,
    },
    /// Show the candidate copies of that share of conversations.
    Shadow {
        /// 0 to 100.
        #[arg(default_value_t = 100.0)]
        percent: f64,
    },
    /// Serve the candidate from the next request on.
    Promote,
    /// Try it no more; if it was promoted, serve again what was served before.
    Rollback,
}

/// How a candidate is tried.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum TrialStage {
    /// It is shown copies; its answers reach nobody.
    Shadow,
    /// It answers.
    Canary,
}
