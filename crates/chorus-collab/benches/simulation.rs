//! Ten thousand runs of each looper in simulation, with all that must hold in every one of them.
//!
//! `cargo xtask bench simulation`. The simulation is the one of `tests/simulation`, which makes a few hundred runs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "a simulation stops at the first broken promise, and a benchmark prints"
)]

#[path = "../tests/simulation/cases.rs"]
mod cases;
#[path = "../tests/simulation/dice.rs"]
mod dice;
#[path = "../tests/simulation/team.rs"]
mod team;
#[path = "../tests/simulation/workflow.rs"]
mod workflow;

use std::time::Instant;

const RUNS: u64 = 10_000;

fn main() {
    println!(
        "| looper | runs | answers | faults | client left | calls | seconds |\n|---|---|---|---|---|---|---|"
    );
    for case in &cases::ALL {
        let began = Instant::now();
        let seen = cases::simulate(case, RUNS);
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "| {} | {RUNS} | {} | {} | {} | {} | {seconds:.2} |",
            case.name, seen.answers, seen.faults, seen.left, seen.calls
        );
    }
}
