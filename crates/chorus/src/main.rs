//! The command line: parse, call one function, print.
//!
//! The only room that reads the environment, prints, and sets the exit status.

mod cli;
mod commands;
mod huge_pages;
mod log;
mod policy_file;
mod printer;
mod pull_progress;
mod setup;
mod stock;
mod stores;
mod terminal;
mod trace;

use clap::Parser;
use std::process::ExitCode;

/// A request makes some hundreds of small allocations on whichever thread is free; the system's allocator pays for that
/// with page faults (a sixth of a routed request's time, `cargo bench -p chorus-server --bench overhead`).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = cli::Cli::parse();
    let _log = log::start(cli.log.as_deref().unwrap_or(cli.command.default_log()));
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return terminal::failed(&error.into()),
    };
    let code = match runtime.block_on(commands::dispatch(cli)) {
        Ok(code) => code,
        Err(error) => terminal::failed(&error),
    };
    // Threads of in-process models may still be in a forward pass; nothing waits for them.
    runtime.shutdown_background();
    code
}
