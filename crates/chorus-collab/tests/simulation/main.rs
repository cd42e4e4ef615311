//! Loopers in simulation: seeded teams with scattered latencies, failures and answers, under a virtual clock.
//!
//! The modules are `cfg(test)` because clippy lets only such modules unwrap outside test functions.

#[cfg(test)]
mod cases;
#[cfg(test)]
mod dice;
#[cfg(test)]
mod team;
#[cfg(test)]
mod workflow;

#[cfg(test)]
mod tests {
    use crate::cases::{ALL, simulate};

    /// Runs of each looper here; `cargo xtask bench simulation` makes ten thousand.
    const RUNS: u64 = 300;

    #[test]
    fn every_looper_keeps_its_promises_in_simulation() {
        for case in &ALL {
            let seen = simulate(case, RUNS);
            // A simulation in which nothing goes wrong, or nothing right, would show nothing.
            assert!(seen.answers > 0 && seen.faults > 0 && seen.left > 0, "{}: {seen:?}", case.name);
        }
    }

    #[test]
    fn the_same_seed_is_the_same_run() {
        for case in &ALL {
            assert_eq!(simulate(case, 20), simulate(case, 20), "{}", case.name);
        }
    }
}
