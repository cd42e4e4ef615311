//! Flags of `chorus keys`.

use clap::{Args, Subcommand};
use std::path::PathBuf;

/// What to do with API keys.
#[derive(Debug, Subcommand)]
pub(crate) enum Keys {
    /// Make a key and print it, this once.
    Create {
        /// Whose requests it marks: the user of authorization rules and limits.
        #[arg(long)]
        user: String,
        /// A group that the user is in; may be given several times.
        #[arg(long, value_name = "GROUP")]
        group: Vec<String>,
        /// What it is for, for people.
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        at: KeysAt,
    },
    /// All keys, without what opens anything.
    List {
        /// Print JSON, one key a line.
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        at: KeysAt,
    },
    /// Revoke a key, for good and at once.
    Revoke {
        /// Its id, as `list` shows it.
        id: String,
        #[command(flatten)]
        at: KeysAt,
    },
}

/// Where keys are kept.
#[derive(Debug, Args)]
pub(crate) struct KeysAt {
    /// Where keys are kept (default: beside the run records).
    #[arg(long, env = "CHORUS_KEYS", value_name = "FILE")]
    pub(crate) keys_file: Option<PathBuf>,
    /// A v0.3 configuration whose `services.api_keys` may name a database instead.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}
