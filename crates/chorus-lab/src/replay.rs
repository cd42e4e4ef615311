//! Replay: loopers run over answers that real models once gave, through the code that serves live traffic, and are
//! compared with the best single model.
//!
//! What is learned (weights, thresholds, which model is best) is learned on one half of the questions; figures are of the
//! other half, where nothing else is said. **Invariant:** an answer that could not be read counts as wrong, and every call
//! that a looper makes is paid.

mod bootstrap;
mod cascade;
mod fit;
mod plans;
mod prices;
mod record;
mod recorded;
mod score;
mod search;
mod tune;

use crate::fault::LabFault;
use chorus_collab::poll::PollPolicy;
use plans::Learned;
use prices::Prices;
use record::{Half, Row};
use search::Search;
use std::fmt;
use std::path::PathBuf;

pub use bootstrap::Interval;
pub use score::StrategyRow;

/// Share of the best fixed model's cost that the two learned cascades may take on the training half. A little below the
/// 50% and 60% that are promised for questions not seen, because the cost of other questions differs by chance: its
/// standard error over six thousand questions is half a point.
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
    /// The learned cascades; each is an asset for a bundle.
    pub learned: Vec<LearnedCascade>,
    /// How many cascades were tried on the training half to find them.
    pub tried: usize,
    /// What the calls are priced by.
    pub prices: String,
}

/// A cascade that the training half taught.
#[derive(Debug, Clone)]
pub struct LearnedCascade {
    /// What it is called.
    pub name: &'static str,
    /// What it is, in a line.
    pub told: String,
    /// Its accuracy on the training half, each fold judged by weights of the others; the best of all that were tried, so
    /// it flatters.
    pub expected: f64,
    /// The rule itself.
    pub policy: PollPolicy,
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
        let (cascades, tried) = learn(&learned, &training, &prices, note)?;
        let over_all = learned.compare(&learned.plain()?, &everything, &prices)?;
        let mut strategies = learned.plain()?;
        strategies.extend(learned.votes()?);
        for cascade in &cascades {
            strategies.push((format!("learned cascade, {}", cascade.name), cascade.policy.clone()));
            self.write(cascade.name, &cascade.policy)?;
        }
        let rows_held_out = learned.compare(&strategies, &held_out, &prices)?;
        Ok(ReplayReport {
            questions: (rows.len(), held_out.len()),
            oracle: score::oracle(&held_out),
            best_fixed: learned.best_fixed,
            over_all,
            held_out: rows_held_out,
            learned: cascades,
            tried,
            prices: prices.explained(),
        })
    }
}

/// The cascades that the search finds, one a cap.
fn learn(
    learned: &Learned,
    training: &[&Row],
    prices: &Prices,
    note: &mut dyn FnMut(&str),
) -> Result<(Vec<LearnedCascade>, usize), LabFault> {
    let Learned { best_fixed, strengths } = learned;
    let (found, tried) =
        Search { training, prices, best_fixed, strengths }.run(&CAPS.map(|(_, cap)| cap), note)?;
    let named = CAPS.into_iter().zip(found).map(|((name, _), found)| LearnedCascade {
        name,
        told: found.told,
        expected: found.accuracy,
        policy: found.policy,
    });
    Ok((named.collect(), tried))
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
        writeln!(f, "\n{} cascades were tried on the training half; the best under each cap:", self.tried)?;
        for cascade in &self.learned {
            let LearnedCascade { name, told, expected, .. } = cascade;
            writeln!(f, "- {name}: {told}; {expected:.4} in cross-validation")?;
        }
        writeln!(f, "\nCosts are shares of what {} costs.\n{}", self.best_fixed, self.prices)
    }
}

fn table(f: &mut fmt::Formatter<'_>, rows: &[StrategyRow]) -> fmt::Result {
    writeln!(
        f,
        "| strategy | accuracy | gain, points (95%) | cost, equal lengths (95%) | cost, recorded lengths | calls |"
    )?;
    writeln!(f, "|---|---|---|---|---|---|")?;
    for row in rows {
        let (gain, cost) = (row.gain_interval, row.cost_interval);
        writeln!(
            f,
            "| {} | {:.4} | {:+.2} ({:+.2} to {:+.2}) | {:.1}% ({:.1} to {:.1}) | {:.1}% | {:.2} |",
            row.name,
            row.accuracy,
            100.0 * row.gain,
            100.0 * gain.low,
            100.0 * gain.high,
            100.0 * row.cost,
            100.0 * cost.low,
            100.0 * cost.high,
            100.0 * row.cost_by_length,
            row.calls
        )?;
    }
    Ok(())
}
