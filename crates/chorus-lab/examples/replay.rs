//! `cargo run --release -p chorus-lab --example replay -- DATA`: loopers over recorded answers.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program prints")]

use chorus_lab::Replay;
use std::process::ExitCode;

fn main() -> ExitCode {
    let data_dir = std::env::args().nth(1).unwrap_or_else(|| "../shared/data".to_owned()).into();
    match (Replay { data_dir, out_dir: None }).run(&mut |text| eprintln!("{text}")) {
        Ok(report) => {
            println!("{report}");
            ExitCode::SUCCESS
        }
        Err(fault) => {
            eprintln!("{fault}");
            ExitCode::FAILURE
        }
    }
}
