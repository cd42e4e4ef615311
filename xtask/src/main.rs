//! Chores of the repository: `cargo xtask tidy | ci | upstream | docs | cases | bench`.
//!
//! Knows the repository's layout and its rules; knows nothing of what the crates do.

mod attack;
mod bench;
mod bounds;
mod cases;
mod ci;
mod clients;
mod crash;
mod docs;
mod endurance;
mod line;
mod markdown;
mod page;
mod peers;
mod process;
mod records;
mod runs;
mod tidy;
mod upstream;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask tidy                 the rules of the house: module docs, crate direction, module cycles, sizes, names
cargo xtask ci                   what CI runs: format, lints, tidy, tests
cargo xtask attack               500 attempts and 200 texts with personal data, through every door and looper, and what got through
cargo xtask upstream [--port N]  a scripted backend for examples/deep-research.yaml, on 127.0.0.1:9101
cargo xtask docs                 the pages of docs/ that are generated from the code
cargo xtask cases [--data DIR]   the collected user cases, and the tests that carry each
cargo xtask fusion-page          docs/fusion.md, from one real run
cargo xtask looper-runs [--kept] [NAME …] docs/loopers/runs, from ten real questions a looper; what was asked before is not asked again
cargo xtask bench [NAME …]       the benchmarks behind the figures of docs/benchmarks.md
cargo xtask bench-peers [--rounds N] [--bolt PROGRAM] [--litellm PROGRAM] [--portkey PROGRAM] Chorus against nginx and a direct connection, with wrk
cargo xtask bench-instructions     how many instructions a request and a streamed chunk take, counted by valgrind
cargo xtask bolt [--cpu NAME]    a release build whose code is laid out by what runs, with llvm-bolt; for processors like that one
cargo xtask endurance [--minutes N] [--drift PERCENT]  Chorus under load with a backend that fails; memory, sockets, records, usage
cargo xtask crash [--times N]    Chorus killed under load, over and over; records and waiting workflows";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["tidy"] => tidy::run(&root()),
        ["ci"] => ci::run(&root()),
        ["attack"] => attack::run(&root()),
        ["upstream", rest @ ..] => upstream::run(rest),
        ["docs"] => docs::run(&root()),
        ["cases", rest @ ..] => cases::run(&root(), rest),
        ["fusion-page"] => page::run(&root()),
        ["looper-runs", names @ ..] => runs::run(&root(), names),
        ["bench-peers", rest @ ..] => peers::run(&root(), rest),
        ["bench-instructions"] => peers::instructions(&root()),
        ["bolt", words @ ..] => peers::bolt(&root(), words),
        ["bench-upstream", rest @ ..] => peers::backend(rest),
        ["endurance", rest @ ..] => endurance::run(&root(), rest),
        ["crash", rest @ ..] => crash::run(&root(), rest),
        ["bench", names @ ..] => bench::run(&root(), names),
        _ => {
            say(HELP);
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// One line on standard output.
pub(crate) fn say(text: &str) {
    let _ = writeln!(std::io::stdout().lock(), "{text}");
}
