//! One file a command.

mod ask;
pub(crate) mod bundle;
mod candidates;
mod check;
mod explain;
mod keys;
mod lab;
mod models;
mod policy;
mod replay;
mod rollout;
mod runs;
mod serve;

use crate::cli::{Cli, Command};
use std::process::ExitCode;

/// Runs the command that was asked for.
pub(crate) async fn dispatch(cli: Cli) -> anyhow::Result<ExitCode> {
    match cli.command {
        Command::Serve(flags) => serve::run(flags, None).await,
        Command::ExtProc(flags) => serve::run(flags.serve, Some(flags.grpc_port)).await,
        Command::Ask(flags) => ask::run(flags).await,
        Command::Explain(flags) => explain::run(flags).await,
        Command::Check(flags) => check::run(&flags),
        Command::Policy(verb) => policy::run(verb).await,
        Command::Artifact(verb) => bundle::run(verb).await,
        Command::Models(command) => models::run(command).await,
        Command::Runs(command) => runs::run(command).await,
        Command::Rollout(flags) => rollout::run(flags).await,
        Command::Replay(flags) => replay::run(flags).await,
        Command::Keys(command) => keys::run(command).await,
        Command::Lab(command) => lab::run(command).await,
    }
}
