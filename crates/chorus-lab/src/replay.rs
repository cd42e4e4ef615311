//! Replay: loopers run over answers that real models once gave, through the code that serves live traffic, and are
//! compared with the best single model.
//!
//! What is learned (weights, thresholds, which model is best) is learned on one half of the questions; figures are of the
//! other half, where nothing else is said. **Invariant:** an answer that could not be read counts as wrong, and every call
//! that a looper makes is paid.

mod fit;
mod plans;
mod prices;
mod record;
mod recorded;
mod score;
mod tune;

use crate::fault::LabFault;
use chorus_collab::poll::PollPolicy;
use plans::Learned;
use prices::Prices;
use record::{Half, Row};
use std::fmt;
use std::path::PathBuf;

pub use score::StrategyRow;

/// Share of the best fixed model's cost that the two learned cascades may take on the training half. A little below the
/// 50% and 60% that are promised for questions not seen.
const CAPS: [(&str, f64); 2] = [("thrifty", 0.49), ("careful", 0.59)];

/// The replay of MMLU-Pro.
#[derive(Debug, Clone)]
pub struct Replay {
    /// Folder with the datasets.
    pub data_dir: PathBuf,
    /// Where the learned policies are written, one JSON file each; nowhere when absent.
    pub out_dir: Option<PathBuf>,
}

/// What it gave.
#[derive(Debug, Clone)]
pub struct ReplayReport {
    /// Questions in all, and held out.
    pub questions: (usize, usize),
    /// The model that is best alone on the training half.
    pub best_fixed: String,
    /// Over all questions.
    pub over_all: Vec<StrategyRow>,
    /// Over the held-out half.
    pub held_out: Vec<StrategyRow>,
    /// The share of held-out questions that at least one model answers rightly.
    pub oracle: f64,
    /// The learned cascades, by name; each is an asset for a bundle.
    pub policies: Vec<(&'static str, PollPolicy)>,
    /// What the calls are priced by.
    pub prices: String,
}

impl Replay {
    /// Runs it.
    ///
    /// # Errors
    /// [`LabFault`]: the data is absent or not what it should be.
    pub fn run(&self, note: &mut dyn FnMut(&str)) -> Result<ReplayReport, LabFault> {
        let rows = record::read(&self.data_dir)?;
        let prices = Prices::read(&self.data_dir)?;
        let half = |half: Half| rows.iter().filter(|row| row.half() == half).collect::<Vec<&Row>>();
        let (training, held_out) = (half(Half::Training), half(Half::HeldOut));
        let everything: Vec<&Row> = rows.iter().collect();
        note(&format!("{} questions, {} of them held out", rows.len(), held_out.len()));

        let learned = Learned::from(&training, &prices)?;
        note(&format!("best alone on the training half: {}", learned.best_fixed));
        let cascades =
            CAPS.into_iter().map(|(name, cap)| Ok((name, learned.cascade(&training, &prices, cap)?)));
        let policies = cascades.collect::<Result<Vec<_>, LabFault>>()?;

        let over_all = learned.compare(&learned.plain()?, &everything, &prices)?;
        let mut strategies = learned.plain()?;
        strategies.extend(learned.votes()?);
        for (name, policy) in &policies {
            strategies.push((format!("learned cascade, {name}"), policy.clone()));
            self.write(name, policy)?;
        }
        let rows_held_out = learned.compare(&strategies, &held_out, &prices)?;
        Ok(ReplayReport {
            questions: (rows.len(), held_out.len()),
            oracle: score::oracle(&held_out),
            best_fixed: learned.best_fixed,
            over_all,
            held_out: rows_held_out,
            policies,
            prices: prices.explained(),
        })
    }
}

impl Replay {
    fn write(&self, name: &str, policy: &PollPolicy) -> Result<(), LabFault> {
        let Some(dir) = &self.out_dir else { return Ok(()) };
        let path = dir.join(format!("poll-{name}.json"));
        let text = serde_json::to_vec(policy).map_err(|fault| LabFault::content(&path, 1, &fault))?;
        std::fs::write(&path, text).map_err(|cause| LabFault::file(&path, cause))
    }
}

impl fmt::Display for ReplayReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "All {} questions", self.questions.0)?;
        table(f, &self.over_all)?;
        writeln!(f, "\nHeld-out half, {} questions; the rest taught", self.questions.1)?;
        table(f, &self.held_out)?;
        writeln!(f, "\nOracle (some model is right): {:.4}", self.oracle)?;
        writeln!(f, "\nCosts are shares of what {} costs.\n{}", self.best_fixed, self.prices)
    }
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[StrategyRow]) -> fmt::Result {
    writeln!(
        f,
        "| {:<50} | accuracy | gain, points | cost, equal lengths | cost, recorded lengths | calls |",
        "strategy"
    )?;
    writeln!(f, "|{}|---|---|---|---|---|", "-".repeat(52))?;
    for row in rows {
        writeln!(
            f,
            "| {:<50} | {:.4} | {:+.2} ± {:.2} | {:.1}% | {:.1}% | {:.2} |",
            row.name,
            row.accuracy,
            100.0 * row.gain,
            100.0 * row.gain_error,
            100.0 * row.cost,
            100.0 * row.cost_by_length,
            row.calls
        )?;
    }
    Ok(())
}
